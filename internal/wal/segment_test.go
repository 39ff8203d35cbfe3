package wal

import "testing"

func TestSegmentNames(t *testing.T) {
	segment := func(timeline Timeline, number uint64) Segment { return Segment{timeline, number, SegmentSize} }
	for name, c := range map[string]struct {
		text string
		want Segment
		ok   bool
	}{
		"the example of the documentation":    {"0000000300000001000000A1", segment(3, 0x1A1), true},
		"the last of a file of 4 GiB":         {"0000000100000000000000FF", segment(1, 255), true},
		"the first of the next":               {"000000010000000100000000", segment(1, 256), true},
		"the last of all":                     {"FFFFFFFFFFFFFFFF000000FF", segment(0xFFFFFFFF, 1<<40-1), true},
		"a low part that no segment has":      {"000000010000000000000100", Segment{}, false},
		"small letters, which are no names":   {"0000000300000001000000a1", Segment{}, false},
		"the end of an abandoned timeline":    {"0000000300000001000000A1.partial", Segment{}, false},
		"a backup history file of PostgreSQL": {"0000000300000001000000A1.00000028.backup", Segment{}, false},
		"nothing":                             {"", Segment{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok := ParseSegment(c.text, SegmentSize)
			if ok != c.ok || ok && (got != c.want || got.String() != c.text) {
				t.Errorf("ParseSegment(%q) = %v, %v", c.text, got, ok)
			}
		})
	}
	for _, size := range []uint64{0, 3 << 20, 2 << 30} {
		if _, ok := ParseSegment("0000000300000001000000A1", size); ok {
			t.Errorf("segments of %d bytes are none of PostgreSQL's", size)
		}
	}
}

func TestSegmentOfAnLSN(t *testing.T) {
	for lsn, want := range map[string]string{
		"0/0": "000000020000000000000000", "1/A1FFFFFF": "0000000200000001000000A1",
		"1/A2000000": "0000000200000001000000A2",
	} {
		at, err := ParseLSN(lsn)
		if err != nil {
			t.Fatal(err)
		}
		s := SegmentAt(2, at, SegmentSize)
		if s.String() != want || s.Start() > at || s.End() <= at {
			t.Errorf("%s is in %s, from %s to %s", lsn, s, s.Start(), s.End())
		}
	}
}

func TestWhereAFileBegins(t *testing.T) {
	start, err := SegmentStart("0000000100000002000000A1", SegmentSize)
	if err != nil || start.String() != "2/A1000000" {
		t.Errorf("the segment starts at %s, %v", start, err)
	}
	if start, err := SegmentStart("000000010000000200000003", 1<<30); err != nil || start.String() != "2/C0000000" {
		t.Errorf("the segment of 1 GiB starts at %s, %v", start, err)
	}
	for _, file := range []string{"", "00000001.history", "00000001000000020000000x", "0000000100000zzz000000A1"} {
		if _, err := SegmentStart(file, SegmentSize); err == nil {
			t.Errorf("%q was taken for a WAL file", file)
		}
	}
}

func TestARecordEndsAfterTheHeadersOfThePagesItGoesOver(t *testing.T) {
	pages := Pages{Page: PageSize, Segment: SegmentSize}
	for name, c := range map[string]struct {
		at     LSN
		length uint32
		want   LSN
	}{
		"within a page":                         {0x3000148, 100, 0x3000148 + 100},
		"to the very end of a page":             {0x3001F00, 0x100, 0x3002000},
		"one byte on the next page":             {0x3001F00, 0x101, 0x3002000 + 24 + 1},
		"over three pages":                      {0x3001F00, 0x100 + 8168 + 50, 0x3004000 + 24 + 50},
		"begins after a page's header":          {0x3002000, 100, 0x3002000 + 24 + 100},
		"begins after a file's header":          {0x3000000, 100, 0x3000000 + 40 + 100},
		"one byte in the next file":             {0x3FFFF00, 0x101, 0x4000000 + 40 + 1},
		"the beginning and the next page's all": {0x3002000, 8168 + 8168, 0x3006000},
		"beyond the highest position":           {MaxLSN - 10, 20000, MaxLSN},
	} {
		t.Run(name, func(t *testing.T) {
			if got := pages.RecordEnd(pages.Record(c.at), c.length); got != c.want {
				t.Errorf("ends at %s, expected %s", got, c.want)
			}
		})
	}
}
