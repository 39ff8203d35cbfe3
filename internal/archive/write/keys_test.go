package write

import (
	"slices"
	"strings"
	"testing"
	"time"

	"toban.dev/internal/archive/archivetest"
	"toban.dev/internal/archive/book"
	"toban.dev/internal/archive/bucket/buckettest"
	"toban.dev/internal/archive/format"
	"toban.dev/internal/ha"
	"toban.dev/internal/wal"
)

// rotated is an archive in which the leader of term 1 has begun to encrypt for a second key, and has failed while it
// wrote segments side by side for the first.
func rotated(t *testing.T) (b *buckettest.Memory, first, second *format.Encoder) {
	archivetest.SmallSegments(t)
	first, second = mustEncoder(t, 0), mustEncoder(t, 1)
	b = buckettest.NewMemory()
	begin := wal.LSN(3 * format.SegmentSize)
	history := []ha.TermStart{{Term: 1, Timeline: 1}}
	source := &archivetest.Source{Terms: history, End: begin + wal.LSN(3*format.SegmentSize) + 100, Begin: begin}
	for _, e := range []*format.Encoder{first, second} {
		a, err := NewArchiver(ArchiverOptions{Bucket: b, Owner: archivetest.Owner, Encoder: e, Source: source,
			TermHistory: history, Secret: []byte("nonce"), Now: func() time.Time { return b.Clock }})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := a.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
		source.End += wal.LSN(2 * format.SegmentSize)
		if _, err := a.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
		if e == first { // it was written side by side, and the one before it was not
			delete(b.Objects, format.TermFolder(1)+e.Name(format.SegmentOf(1, 4).String()))
		}
	}
	return b, first, second
}

func mustEncoder(t *testing.T, key int) *format.Encoder {
	e, err := format.NewEncoder(archivetest.Keys[key].Recipient().String())
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// Each piece of WAL is told to need the key that it needs, and from the moment of a change both at most.
func TestWhichKeyWALNeeds(t *testing.T) {
	b, first, second := rotated(t)
	c, err := book.Read(t.Context(), b)
	if err != nil || len(c.Strangers) > 0 {
		t.Fatalf("%v, strangers: %v", err, c.Strangers)
	}
	both := []string{first.Recipient(), second.Recipient()}
	slices.Sort(both)
	want := map[uint64][]string{3: {first.Recipient()}, 4: both, 5: both, 6: both, 7: both, 8: both,
		9: {second.Recipient()}, 10: {second.Recipient()}}
	for _, w := range c.Terms[1].WAL {
		if w.Segment.Number == 8 && w.From > 0 {
			want[8] = []string{second.Recipient()} // behind where the WAL ended when the key was changed
		}
		if got := book.RecipientsOf(c.Terms[1].KeyNotes(), w.Piece); !slices.Equal(got, want[w.Segment.Number]) {
			t.Errorf("%s: %v, want %v", w.Object.Name, got, want[w.Segment.Number])
		}
	}
	if uses := c.KeyUses(); len(uses) != 2 || uses[0].WAL == 0 || uses[1].WAL == 0 {
		t.Errorf("the keys: %+v", uses)
	}
}

// A leader that goes on with the same key notes it once; another one notes it after it, and its first again.
func TestKeyIsNotedOnce(t *testing.T) {
	b, first, second := rotated(t)
	for range 2 {
		for _, e := range []*format.Encoder{second, second, first} {
			a := &termFolder{&ArchiverOptions{Bucket: b, Encoder: e}, format.TermFolder(1)}
			if err := a.noteKey(t.Context(), wal.LSN(8*format.SegmentSize), wal.LSN(8*format.SegmentSize)); err != nil {
				t.Fatal(err)
			}
		}
	}
	c, err := book.Read(t.Context(), b)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, n := range c.Terms[1].KeyNotes() {
		got = append(got, n.Recipient)
	}
	f, s := first.Recipient(), second.Recipient()
	if want := []string{f, s, f, s, f}; !slices.Equal(got, want) {
		t.Errorf("the notes are for %v, want %v", got, want)
	}
}

// A server may have WAL for longer than the archive. What its leader archives once more is encrypted for the present
// key, and that is noted, whether that key is new or not.
func TestTheKeyIsNotedOfWALThatIsArchivedOnceMore(t *testing.T) {
	b, _, second := rotated(t)
	for name := range b.Objects {
		if plain, _, _ := format.PlainName(name); strings.HasPrefix(plain,
			format.TermFolder(1)+format.SegmentOf(1, 3).String()) {
			delete(b.Objects, name) // as retention does
		}
	}
	source := &archivetest.Source{Terms: []ha.TermStart{{Term: 1, Timeline: 1}}, End: wal.LSN(11 * format.SegmentSize),
		Begin: wal.LSN(3 * format.SegmentSize)}
	a, err := NewArchiver(ArchiverOptions{Bucket: b, Owner: archivetest.Owner, Encoder: second, Source: source,
		TermHistory: source.Terms, Secret: []byte("nonce"), Now: func() time.Time { return b.Clock }})
	if err != nil {
		t.Fatal(err)
	}
	mustStep(t, a)
	c, err := book.Read(t.Context(), b)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(c.Terms[1].WAL, func(w book.WAL) bool { return w.Segment.Number == 3 })
	if i < 0 {
		t.Fatal("it was not archived once more")
	}
	of := book.RecipientsOf(c.Terms[1].KeyNotes(), c.Terms[1].WAL[i].Piece)
	if !slices.Contains(of, second.Recipient()) {
		t.Errorf("it is told to need %v, and needs %s", of, second.Recipient())
	}
}

// What a former version has written has no note. It is not taken for what the next one writes, nor is its backup.
func TestKeysOfAFormerVersion(t *testing.T) {
	b, first, second := rotated(t)
	for name := range b.Objects {
		if _, rest, _ := format.ParseTerm(name); len(rest) > 4 && rest[:4] == format.KeyPrefix {
			delete(b.Objects, name)
		}
	}
	c, err := book.Read(t.Context(), b)
	if err != nil {
		t.Fatal(err)
	}
	if uses := c.KeyUses(); len(uses) != 1 || uses[0].Recipient != "" {
		t.Errorf("without notes: %+v", uses)
	}
	a := &termFolder{&ArchiverOptions{Bucket: b, Encoder: second}, format.TermFolder(1)}
	if err := a.noteKey(t.Context(), wal.LSN(7*format.SegmentSize), wal.LSN(7*format.SegmentSize)); err != nil {
		t.Fatal(err)
	}
	c, err = book.Read(t.Context(), b)
	if err != nil {
		t.Fatal(err)
	}
	notes := c.Terms[1].KeyNotes()
	before := book.RecipientsOf(notes, format.Piece{Segment: format.SegmentOf(1, 6), From: 0,
		To: uint32(format.SegmentSize)})
	after := book.RecipientsOf(notes, format.Piece{Segment: format.SegmentOf(1, 7), From: 0,
		To: uint32(format.SegmentSize)})
	if !slices.Equal(before, []string{""}) || !slices.Equal(after, []string{second.Recipient()}) {
		t.Errorf("before the note %q, after it %q", before, after)
	}
	c = book.Catalogue{Backups: []format.Backup{
		{ID: "a", Manifest: format.Object{Name: format.FileManifest + ".zst.age"}},
		{ID: "b", Manifest: format.Object{Name: format.FileManifest + ".zst.age"}, Recipient: first.Recipient()},
		{ID: "c", Manifest: format.Object{Name: format.FileManifest + ".zst"}},
	}}
	want := []book.KeyUse{{Recipient: "", Backups: 1}, {Recipient: first.Recipient(), Backups: 1}}
	if uses := c.KeyUses(); !slices.Equal(uses, want) {
		t.Errorf("of backups: %+v, want %+v", uses, want)
	}
}
