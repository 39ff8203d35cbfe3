package write

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"toban.dev/internal/archive/archivetest"
	"toban.dev/internal/archive/bucket"
	"toban.dev/internal/archive/bucket/buckettest"
	"toban.dev/internal/archive/format"
	"toban.dev/internal/ha"
	"toban.dev/internal/wal"
)

func newTestArchiver(t testing.TB, b bucket.Bucket, source Source, history []ha.TermStart) *Archiver {
	t.Helper()
	encoder, err := format.NewEncoder("")
	if err != nil {
		t.Fatal(err)
	}
	a, err := NewArchiver(ArchiverOptions{
		Bucket: b, Owner: archivetest.Owner, Encoder: encoder, Source: source, TermHistory: history,
	})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func mustStep(t *testing.T, a *Archiver) {
	t.Helper()
	for {
		behind, err := a.Step(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if !behind {
			return
		}
	}
}

// Backups need archive.json: a leader that has lost it writes it anew without a failover, unless it is another's by
// now.
func TestALostOwnerComesBack(t *testing.T) {
	archivetest.SmallSegments(t)
	history := []ha.TermStart{{Term: 1, Timeline: 1}}
	source := &archivetest.Source{Terms: history, End: 100}
	b, now := buckettest.NewMemory(), time.Now()
	a := newTestArchiver(t, b, source, history)
	a.Now = func() time.Time { return now }
	mustStep(t, a)
	was := b.Objects[format.FileArchive]
	for range 2 {
		delete(b.Objects, format.FileArchive)
		mustStep(t, a)
		if _, there := b.Objects[format.FileArchive]; there {
			t.Error("it asks at each step whose the archive is")
		}
		now = now.Add(reclaimEvery)
		mustStep(t, a)
		if got := b.Objects[format.FileArchive]; string(got.Content) != string(was.Content) {
			t.Errorf("it is %q, and was %q", got.Content, was.Content)
		}
	}
	delete(b.Objects, format.FileArchive)
	other := archivetest.Owner
	other.UID = "another"
	if err := format.Reclaim(t.Context(), b, other); err != nil {
		t.Fatal(err)
	}
	now = now.Add(reclaimEvery)
	if _, err := a.Step(t.Context()); !errors.Is(err, format.ErrTaken) {
		t.Errorf("another's: %v", err)
	}
}

// TestPartsFollowEachOther follows the names in a folder while WAL comes.
func TestPartsFollowEachOther(t *testing.T) {
	archivetest.SmallSegments(t)
	history := []ha.TermStart{{Term: 1, Timeline: 1}}
	source := &archivetest.Source{Terms: history}
	b := buckettest.NewMemory()
	a := newTestArchiver(t, b, source, history)
	const first, second = "000000010000000000000000", "000000010000000000000001"
	want := []string{format.FileArchive, format.TermFolder(1) + format.FileLineage}
	for _, c := range []struct {
		flushed wal.LSN
		added   []string
	}{
		{0, nil},
		{100, []string{first + ".00000000-00000064.zst"}},
		{9000, []string{first + ".00000064-00002328.zst"}},
		{9001, []string{first + ".00002328-00002329.zst"}},
		{32769, []string{first + ".00002329-00008000.zst", second + ".00000000-00000001.zst"}},
		{4 * 32768, []string{second + ".00000001-00008000.zst", "000000010000000000000002.zst",
			"000000010000000000000003.zst"}},
	} {
		source.End = c.flushed
		mustStep(t, a)
		for _, name := range c.added {
			want = append(want, format.TermFolder(1)+name)
		}
		slices.Sort(want)
		got := slices.DeleteFunc(slices.Sorted(maps.Keys(b.Objects)),
			func(name string) bool { return strings.HasPrefix(name, format.TermFolder(1)+"began-") })
		if !slices.Equal(got, want) {
			t.Errorf("at %s there is %q, not %q", c.flushed, got, want)
		}
		if s := a.State(); s.Archived != c.flushed || s.Lag() != 0 {
			t.Errorf("at %s the state is %+v", c.flushed, s)
		}
		a = newTestArchiver(t, b, source, history) // one that begins anew goes on just there
	}
}

// recycled gives files of another place.
type recycled struct{ *archivetest.Source }

func (r recycled) Open(name string) (File, error) {
	s, _ := wal.ParseSegment(name, format.SegmentSize)
	s.Number += 3
	return &archivetest.SourceFile{Source: r.Source, Segment: s}, nil
}

func TestRecycledFileIsNotArchived(t *testing.T) {
	archivetest.SmallSegments(t)
	history := []ha.TermStart{{Term: 1, Timeline: 1}}
	a := newTestArchiver(t, buckettest.NewMemory(), recycled{&archivetest.Source{Terms: history, End: 1 << 20}},
		history)
	if _, err := a.Step(t.Context()); !errors.Is(err, errRecycled) || a.State().Archived != 0 || a.State().Err == nil {
		t.Errorf("%v, %+v", err, a.State())
	}
}

// benchSource has WAL of real size, which compresses about as usual WAL does.
type benchSource struct {
	flushed wal.LSN
	segment []byte
}

func (s *benchSource) Flushed(context.Context) (wal.LSN, error) { return s.flushed, nil }
func (s *benchSource) Oldest(context.Context) (wal.LSN, error)  { return 0, nil }
func (s *benchSource) History(wal.Timeline) ([]byte, error)     { return nil, fs.ErrNotExist }
func (s *benchSource) Open(name string) (File, error) {
	segment, _ := wal.ParseSegment(name, format.SegmentSize)
	return &benchFile{s.segment, segment}, nil
}

type benchFile struct {
	content []byte
	segment wal.Segment
}

func (f *benchFile) ReadAt(p []byte, off int64) (int, error) {
	n := copy(p, f.content[off:])
	for at := 0; at+wal.PageSize <= n; at += wal.PageSize {
		var header [wal.PageSize]byte
		archivetest.WriteWAL([]ha.TermStart{{Term: 1}}, f.segment.Start()+wal.LSN(off)+wal.LSN(at), header[:16])
		copy(p[at:], header[:16])
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (f *benchFile) Close() error { return nil }

// BenchmarkCatchUp archives 512 MiB of WAL that has come together.
func BenchmarkCatchUp(b *testing.B) {
	segment := make([]byte, wal.SegmentSize)
	random := rand.NewChaCha8([32]byte{2})
	for at := 0; at < len(segment); at += 128 {
		_, _ = random.Read(segment[at : at+32]) // a quarter is noise
		for i := at + 32; i < at+128; i++ {
			segment[i] = byte(i)
		}
	}
	const size = 32 * wal.SegmentSize
	b.SetBytes(size)
	for b.Loop() {
		a := newTestArchiver(b, buckettest.NewMemory(), &benchSource{size, segment},
			[]ha.TermStart{{Term: 1, Timeline: 1}})
		if _, err := a.Step(b.Context()); err != nil || a.State().Archived != size {
			b.Fatal(err, a.State())
		}
	}
}

// stoppedServer has its files, and answers nobody.
type stoppedServer struct{ *archivetest.Source }

func (stoppedServer) Flushed(context.Context) (wal.LSN, error) { return 0, errors.New("no connection") }

// What a server has written last is archived when it has stopped, however long a commit may wait.
func TestAStoppedServerIsArchivedToItsEnd(t *testing.T) {
	archivetest.SmallSegments(t)
	history := []ha.TermStart{{Term: 1, Timeline: 1}}
	source := &archivetest.Source{Terms: history, End: 1000}
	b := buckettest.NewMemory()
	a := newTestArchiver(t, b, source, history)
	a.MaxLag = time.Hour
	mustStep(t, a)
	if s := a.State(); s.Archived != 0 {
		t.Fatalf("a commit does not wait: %+v", s)
	}
	source.End = 3*32768 + 100
	a.Source = stoppedServer{source}
	if err := a.Finish(t.Context(), 3*32768+100); err != nil {
		t.Fatal(err)
	}
	if s := a.State(); s.Archived != 3*32768+100 {
		t.Errorf("it is archived up to %s", s.Archived)
	}
	if _, there := b.Objects[format.TermFolder(1)+"000000010000000000000003.00000000-00000064.zst"]; !there {
		t.Errorf("the archive has %q", slices.Sorted(maps.Keys(b.Objects)))
	}
}

// An archive that has failed is not waited for.
func TestAnArchiveThatHasFailedIsNotFinished(t *testing.T) {
	archivetest.SmallSegments(t)
	history := []ha.TermStart{{Term: 1, Timeline: 1}}
	source := &archivetest.Source{Terms: history, End: 1 << 20}
	b := buckettest.NewMemory()
	a := newTestArchiver(t, b, recycled{source}, history)
	if _, err := a.Step(t.Context()); !errors.Is(err, errRecycled) {
		t.Fatal(err)
	}
	before := len(b.Objects)
	if err := a.Finish(t.Context(), 1<<20); !errors.Is(err, errRecycled) || len(b.Objects) != before {
		t.Errorf("%v, and the archive has %q", err, slices.Sorted(maps.Keys(b.Objects)))
	}
}
