package format

import (
	"testing"

	"toban.dev/internal/wal"
)

func TestPieceNames(t *testing.T) {
	segment := SegmentOf(3, 0x1A2)
	for name, c := range map[string]struct {
		text string
		want Piece
		ok   bool
	}{
		"a whole segment": {"0000000300000001000000A2", Piece{segment, 0, wal.SegmentSize}, true},
		"a part":          {"0000000300000001000000A2.00100000-0012F3A0", Piece{segment, 0x100000, 0x12F3A0}, true},
		"a part up to the end": {
			"0000000300000001000000A2.00000001-01000000", Piece{segment, 1, wal.SegmentSize}, true,
		},
		"a whole one as a part":    {"0000000300000001000000A2.00000000-01000000", Piece{}, false},
		"an empty part":            {"0000000300000001000000A2.00000010-00000010", Piece{}, false},
		"from behind":              {"0000000300000001000000A2.00000020-00000010", Piece{}, false},
		"beyond the segment":       {"0000000300000001000000A2.00000000-01000001", Piece{}, false},
		"a part of no segment":     {"000000030000000100000100.00000000-00000010", Piece{}, false},
		"something more behind it": {"0000000300000001000000A2.00000000-00000010.old", Piece{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok := ParsePiece(c.text)
			if ok != c.ok || ok && (got != c.want || got.String() != c.text) {
				t.Errorf("ParsePiece(%q) = %v, %v", c.text, got, ok)
			}
		})
	}
}

func TestTermFolders(t *testing.T) {
	for name, c := range map[string]struct {
		text, rest string
		term       uint64
		ok         bool
	}{
		"a term":                        {"wal/0000002A/lineage.json", "lineage.json", 42, true},
		"a term of more than 32 bits":   {"wal/1FFFFFFFF/x", "x", 0x1FFFFFFFF, true},
		"more zeros than there are":     {"wal/00000002A/x", "", 0, false},
		"fewer":                         {"wal/2A/x", "", 0, false},
		"small letters":                 {"wal/0000002a/x", "", 0, false},
		"a sign":                        {"wal/+000002A/x", "", 0, false},
		"an object in the place of one": {"wal/0000002A", "", 0, false},
		"another folder":                {"base/0000002A/x", "", 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			term, rest, ok := ParseTerm(c.text)
			if ok != c.ok || ok && (term != c.term || rest != c.rest || TermFolder(term)+rest != c.text) {
				t.Errorf("ParseTerm(%q) = %d, %q, %v", c.text, term, rest, ok)
			}
		})
	}
}

func TestUnsealed(t *testing.T) {
	for name, c := range map[string]struct {
		plain         string
		encrypted, ok bool
	}{
		"a.zst": {"a", false, true}, "a.zst.age": {"a", true, true}, "a": {"a", false, false},
		"a.age": {"a.age", false, false},
	} {
		if plain, encrypted, ok := PlainName(name); ok != c.ok || ok && (plain != c.plain || encrypted != c.encrypted) {
			t.Errorf("Unsealed(%q) = %q, %v, %v", name, plain, encrypted, ok)
		}
	}
}

func TestAPieceEndsAtALimit(t *testing.T) {
	p := Piece{SegmentOf(1, 2), 0x100, 0x200}
	start := p.Segment.Start()
	for limit, want := range map[wal.LSN]uint32{
		0: 0, start: 0, start + 0x180: 0x180, start + 0x200: 0x200, start + 0x201: 0x200,
		start + 1<<33: 0x200, wal.MaxLSN: 0x200,
	} {
		if got := p.UpTo(limit); got != want {
			t.Errorf("before %s it ends at %X, expected %X", limit, got, want)
		}
	}
}
