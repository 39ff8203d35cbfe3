package backup

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"toban.dev/internal/archive/bucket"
	"toban.dev/internal/ha"
	"toban.dev/internal/wal"
)

func newTestArchiver(t testing.TB, b bucket.Bucket, source Source, history []ha.TermStart) *Archiver {
	t.Helper()
	encoder, err := NewEncoder("")
	if err != nil {
		t.Fatal(err)
	}
	a, err := NewArchiver(ArchiverOptions{
		Bucket: b, Owner: testOwner, Encoder: encoder, Source: source, TermHistory: history,
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

// TestPartsFollowEachOther follows the names in a folder while WAL comes.
func TestPartsFollowEachOther(t *testing.T) {
	smallSegments(t)
	history := []ha.TermStart{{Term: 1, Timeline: 1}}
	source := &testSource{history: history}
	b := newMemoryBucket()
	a := newTestArchiver(t, b, source, history)
	const first, second = "000000010000000000000000", "000000010000000000000001"
	want := []string{FileArchive, TermFolder(1) + FileLineage}
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
		source.flushed = c.flushed
		mustStep(t, a)
		for _, name := range c.added {
			want = append(want, TermFolder(1)+name)
		}
		slices.Sort(want)
		got := slices.DeleteFunc(slices.Sorted(maps.Keys(b.objects)),
			func(name string) bool { return strings.HasPrefix(name, TermFolder(1)+"began-") })
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
type recycled struct{ *testSource }

func (r recycled) Open(name string) (File, error) {
	s, _ := wal.ParseSegment(name, segmentSize)
	s.Number += 3
	return &testFile{r.testSource, s}, nil
}

func TestRecycledFileIsNotArchived(t *testing.T) {
	smallSegments(t)
	history := []ha.TermStart{{Term: 1, Timeline: 1}}
	a := newTestArchiver(t, newMemoryBucket(), recycled{&testSource{history: history, flushed: 1 << 20}}, history)
	if _, err := a.Step(t.Context()); !errors.Is(err, errRecycled) || a.State().Archived != 0 || a.State().Err == nil {
		t.Errorf("%v, %+v", err, a.State())
	}
}

// ours is the owner of the archives here.
var ours = Owner{UID: "u", Namespace: "n", Name: "db", SystemIdentifier: "7"}

func TestClaim(t *testing.T) {
	for name, c := range map[string]struct {
		there string
		taken bool
		ok    bool
	}{
		"nobody's": {"", false, true},
		"ours":     {`{"format":1,"uid":"u","namespace":"n","name":"db","systemIdentifier":"7"}`, false, true},
		"another SampleDB's": {
			`{"format":1,"uid":"v","namespace":"n","name":"db","systemIdentifier":"7"}`, true, false,
		},
		"another system's": {
			`{"format":1,"uid":"u","namespace":"n","name":"db","systemIdentifier":"8"}`, true, false,
		},
		"of a format to come":     {`{"format":2,"uid":"u","systemIdentifier":"7"}`, false, false},
		"not to be understood":    {`{`, false, false},
		"of somebody without UID": {`{"format":1}`, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			b := newMemoryBucket()
			if c.there != "" {
				_ = b.Put(t.Context(), FileArchive, []byte(c.there))
			}
			err := Claim(t.Context(), b, ours)
			if (err == nil) != c.ok || errors.Is(err, ErrTaken) != c.taken {
				t.Errorf("%v", err)
			}
			var taken *TakenError
			if c.taken && (!errors.As(err, &taken) || taken.Owner.Name != "db") {
				t.Errorf("%v does not name the owner", err)
			}
			if c.there != "" && string(b.objects[FileArchive].content) != c.there {
				t.Error("it was written")
			}
		})
	}
}

func TestLostAnswerToClaim(t *testing.T) {
	b := newMemoryBucket()
	b.fault = func(after bool) error {
		if after {
			return errInjected
		}
		return nil
	}
	if err := Claim(t.Context(), b, ours); !errors.Is(err, errInjected) {
		t.Fatal(err)
	}
	b.fault = func(bool) error { return nil }
	if err := Claim(t.Context(), b, ours); err != nil {
		t.Error(err)
	}
}

func TestBackupJSON(t *testing.T) {
	b := Backup{
		ID: "x", Type: TypeFull, StartLSN: 0x1A1F00028, StopLSN: 0x1A2000000, Term: 42, Started: time.Unix(1, 0).UTC(),
	}
	text, err := json.Marshal(b)
	if err != nil {
		t.Fatal(err)
	}
	var raw map[string]any
	if err := json.Unmarshal(text, &raw); err != nil || raw["startLSN"] != "1/A1F00028" || raw["type"] != "full" {
		t.Errorf("%s: %v", text, err)
	}
	var back Backup
	if err := json.Unmarshal(text, &back); err != nil || back.StartLSN != b.StartLSN ||
		back.StopLSN != b.StopLSN || back.Term != 42 {
		t.Errorf("%+v: %v", back, err)
	}
}

// TestUnreadDeletesNothing is invariant 9.
func TestUnreadDeletesNothing(t *testing.T) {
	b := newMemoryBucket()
	for name, text := range map[string]string{
		"base/a/backup.json":        `{"id":"a","type":"full","term":1}`,
		"base/b/backup.json":        `{"id":"b","type":"full","term":1,"stopped":"2026-01-01T00:00:00Z"}`,
		"wal/00000001/lineage.json": `{"term":1,"starts":[{"term":1,"lsn":"0/0","timeline":1}]}`, "readme.txt": "",
		"wal/old": "", "base/x": "",
	} {
		_ = b.Put(t.Context(), name, []byte(text))
	}
	policy := Policy{Count: 1, Now: b.clock}
	c, err := Read(t.Context(), b)
	if err != nil || len(c.Strangers) != 3 || len(Retain(c, policy).Names) == 0 {
		t.Fatalf("%+v: %v", c, err)
	}
	for _, name := range []string{"wal/00000001/lineage.json", "base/c/backup.json", FileArchive} {
		spoilt := b.without()
		_ = spoilt.Put(t.Context(), name, []byte("{"))
		if c, err := Read(t.Context(), spoilt); err != nil || len(Retain(c, policy).Names) > 0 {
			t.Errorf("%s can't be read: %+v, %v", name, Retain(c, policy), err)
		}
	}
	b.fault = func(bool) error { return errInjected }
	if _, err := Read(t.Context(), b); !errors.Is(err, errInjected) {
		t.Error(err)
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
	segment, _ := wal.ParseSegment(name, segmentSize)
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
		testWAL([]ha.TermStart{{Term: 1}}, f.segment.Start()+wal.LSN(off)+wal.LSN(at), header[:16])
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
		a := newTestArchiver(b, newMemoryBucket(), &benchSource{size, segment}, []ha.TermStart{{Term: 1, Timeline: 1}})
		if _, err := a.Step(b.Context()); err != nil || a.State().Archived != size {
			b.Fatal(err, a.State())
		}
	}
}

// stoppedServer has its files, and answers nobody.
type stoppedServer struct{ *testSource }

func (stoppedServer) Flushed(context.Context) (wal.LSN, error) { return 0, errors.New("no connection") }

// What a server has written last is archived when it has stopped, however long a commit may wait.
func TestAStoppedServerIsArchivedToItsEnd(t *testing.T) {
	smallSegments(t)
	history := []ha.TermStart{{Term: 1, Timeline: 1}}
	source := &testSource{history: history, flushed: 1000}
	b := newMemoryBucket()
	a := newTestArchiver(t, b, source, history)
	a.MaxLag = time.Hour
	mustStep(t, a)
	if s := a.State(); s.Archived != 0 {
		t.Fatalf("a commit does not wait: %+v", s)
	}
	source.flushed = 3*32768 + 100
	a.Source = stoppedServer{source}
	if err := a.Finish(t.Context(), 3*32768+100); err != nil {
		t.Fatal(err)
	}
	if s := a.State(); s.Archived != 3*32768+100 {
		t.Errorf("it is archived up to %s", s.Archived)
	}
	if _, there := b.objects[TermFolder(1)+"000000010000000000000003.00000000-00000064.zst"]; !there {
		t.Errorf("the archive has %q", slices.Sorted(maps.Keys(b.objects)))
	}
}

// An archive that has failed is not waited for.
func TestAnArchiveThatHasFailedIsNotFinished(t *testing.T) {
	smallSegments(t)
	history := []ha.TermStart{{Term: 1, Timeline: 1}}
	source := &testSource{history: history, flushed: 1 << 20}
	b := newMemoryBucket()
	a := newTestArchiver(t, b, recycled{source}, history)
	if _, err := a.Step(t.Context()); !errors.Is(err, errRecycled) {
		t.Fatal(err)
	}
	before := len(b.objects)
	if err := a.Finish(t.Context(), 1<<20); !errors.Is(err, errRecycled) || len(b.objects) != before {
		t.Errorf("%v, and the archive has %q", err, slices.Sorted(maps.Keys(b.objects)))
	}
}
