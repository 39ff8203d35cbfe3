package write

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"toban.dev/internal/archive/archivetest"
	"toban.dev/internal/archive/bucket/buckettest"
	"toban.dev/internal/archive/format"
	"toban.dev/internal/ha"
	"toban.dev/internal/wal"
)

func TestWhatALeaderNotesOfItsClock(t *testing.T) {
	archivetest.SmallSegments(t)
	history := []ha.TermStart{{Term: 1, Timeline: 1}}
	source := &archivetest.Source{Terms: history, End: 1000}
	b := buckettest.NewMemory()
	at := archivetest.Hour(8)
	begin := func() *Archiver {
		a := newTestArchiver(t, b, source, history)
		a.Now = func() time.Time { return at }
		return a
	}
	want := func(names ...string) {
		t.Helper()
		var got []string
		for _, name := range slices.Sorted(maps.Keys(b.Objects)) {
			if _, ok := format.ParseClockNote(strings.TrimPrefix(name, format.TermFolder(1))); ok {
				got = append(got, strings.TrimPrefix(name, format.TermFolder(1)))
			}
		}
		if !slices.Equal(got, names) {
			t.Errorf("at %s it has noted %q, expected %q", at, got, names)
		}
	}
	a := begin()
	b.Fault = func(bool) error { return buckettest.ErrInjected }
	if _, err := a.Step(t.Context()); !errors.Is(err, buckettest.ErrInjected) {
		t.Fatal(err)
	}
	b.Fault = func(bool) error { return nil }
	at = archivetest.Hour(9) // it began at 8
	source.End = 2000
	mustStep(t, a)
	began := "began-00000000000003E8-20261120T080000.000000Z"
	want(began)
	at = archivetest.Hour(10)
	a = begin() // another process
	mustStep(t, a)
	want(began)

	b.Fault = func(bool) error { return buckettest.ErrInjected }
	for ; at.Before(archivetest.Hour(12)); at = at.Add(time.Hour) {
		source.End += wal.LSN(format.SegmentSize)
		if _, err := a.Step(t.Context()); !errors.Is(err, buckettest.ErrInjected) {
			t.Fatal(err)
		}
	}
	b.Fault = func(bool) error { return nil }
	source.Begin = format.SegmentStart(2)
	source.End += wal.LSN(format.SegmentSize)
	mustStep(t, a)
	if a.State().Gap == nil {
		t.Fatal("there is no gap")
	}
	waited := fmt.Sprintf("reached-%016X-20261120T100000.000000Z", 2000+format.SegmentSize)
	want(began, waited)
	at = archivetest.Hour(13)
	if err := a.Finish(t.Context(), source.End); err != nil {
		t.Fatal(err)
	}
	want(began, waited, fmt.Sprintf("reached-%016X-20261120T130000.000000Z", uint64(source.End)))
}
