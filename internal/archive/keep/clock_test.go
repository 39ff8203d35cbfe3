package keep_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"toban.dev/internal/archive/archivetest"
	"toban.dev/internal/archive/book"
	"toban.dev/internal/archive/bucket/buckettest"
	"toban.dev/internal/archive/format"
	"toban.dev/internal/archive/keep"
	"toban.dev/internal/archive/keep/keeptest"
	"toban.dev/internal/archive/second"
	"toban.dev/internal/ha"
	"toban.dev/internal/wal"
)

// timed is an archive whose objects get there at times of their own.
type timed struct {
	*testing.T
	bucket *buckettest.Memory
}

func newTimed(t *testing.T) timed {
	archivetest.SmallSegments(t)
	a := timed{t, buckettest.NewMemory()}
	a.bucket.Clock = archivetest.Hour(8)
	if err := format.Claim(t.Context(), a.bucket, archivetest.Owner); err != nil {
		t.Fatal(err)
	}
	return a
}

func (a timed) put(name, text string, at time.Time) {
	a.Helper()
	a.bucket.Clock = at
	if err := a.bucket.Create(a.Context(), name, []byte(text)); err != nil {
		a.Fatal(err)
	}
}

func (a timed) begin(at time.Time, starts ...ha.TermStart) {
	a.Helper()
	text, err := format.FormatTermHistory(starts)
	if err != nil {
		a.Fatal(err)
	}
	last := starts[len(starts)-1]
	a.put(format.TermFolder(last.Term)+format.FileLineage, string(text), at)
	if last.Timeline > 1 {
		a.put(format.TermFolder(last.Term)+last.Timeline.HistoryFile()+".zst.age", format.AgeIntro+"x", at)
	}
}

func (a timed) segment(term uint64, timeline wal.Timeline, number uint64, at time.Time) {
	a.Helper()
	a.put(format.TermFolder(term)+format.SegmentOf(timeline, number).String()+".zst.age", format.AgeIntro+"x", at)
}

// back is a backup that ends at a time.
func (a timed) back(id string, number uint64, at time.Time) {
	a.Helper()
	encoder, err := format.NewEncoder("")
	if err != nil {
		a.Fatal(err)
	}
	a.bucket.Clock = at.Add(-time.Hour)
	(&keeptest.Written{T: a.T, Bucket: a.bucket, Encoder: encoder}).Backup(id, number)
}

// note is one of a leader's clock.
func (a timed) note(term uint64, n format.ClockNote) {
	a.Helper()
	a.put(format.TermFolder(term)+n.Name(), "note", n.At)
}

// copied is a copy that is made at a time, as our second store has it.
func (a timed) copied(at time.Time) *buckettest.Memory {
	a.Helper()
	copied := buckettest.NewMemory()
	copied.Clock = at
	state, err := second.Copy(a.Context(), second.Options{First: a.bucket, Second: copied, Owner: archivetest.Owner.UID,
		Policy: keep.Policy{Count: 7, Now: at}})
	if err != nil || len(state.Problems) > 0 || state.Until.IsZero() {
		a.Fatalf("%+v %v", state, err)
	}
	return copied
}

// synced is a copy by another's program, whose times say nothing.
func (a timed) synced(at time.Time) *buckettest.Memory {
	copied := buckettest.NewMemory()
	for name, o := range a.bucket.Objects {
		copied.Objects[name] = buckettest.Stored{Content: o.Content, Modified: at}
	}
	return copied
}

// gapAtNoon had no archive from 11:00 to 13:00. The last WAL of before was archived at 11:00; what was missing then was
// written from 11:01 on.
func gapAtNoon(t *testing.T, noted bool) timed {
	a := newTimed(t)
	a.begin(archivetest.Hour(8), ha.TermStart{Term: 1, Timeline: 1})
	a.segment(1, 1, 3, archivetest.Hour(8))
	a.back("b1", 3, archivetest.Hour(9))
	a.segment(1, 1, 4, archivetest.Hour(10))
	a.segment(1, 1, 5, archivetest.Hour(11))
	if noted {
		a.note(1, format.ClockNote{LSN: format.SegmentStart(6) + 100, At: archivetest.Hour(11).Add(time.Minute)})
	}
	a.put(format.TermFolder(1)+format.Gap{From: format.SegmentStart(6), To: format.SegmentStart(20)}.Name(), "gap",
		archivetest.Hour(13))
	a.segment(1, 1, 20, archivetest.Hour(13))
	a.segment(1, 1, 21, archivetest.Hour(13).Add(20*time.Minute))
	a.back("b2", 21, archivetest.Hour(14))
	return a
}

// inPlaceAtNoon was restored in place at 12:00 to what it was at 11:00. It has no backup of its own branch yet.
func inPlaceAtNoon(t *testing.T, noted bool) timed {
	a := newTimed(t)
	first, fork := ha.TermStart{Term: 1, Timeline: 1}, format.SegmentStart(5)+0x100
	a.begin(archivetest.Hour(8), first)
	a.segment(1, 1, 3, archivetest.Hour(8))
	a.back("b1", 3, archivetest.Hour(9))
	a.segment(1, 1, 4, archivetest.Hour(10))
	a.segment(1, 1, 5, archivetest.Hour(11))
	a.segment(1, 1, 6, archivetest.Hour(12).Add(-time.Second))
	a.begin(archivetest.Hour(12), first, ha.TermStart{Term: 1002, LSN: fork, Timeline: 2})
	if noted {
		a.note(1, format.ClockNote{LSN: format.SegmentStart(7), At: archivetest.Hour(12).Add(-time.Second)})
		a.note(1002, format.ClockNote{Began: true, LSN: fork, At: archivetest.Hour(12)})
	}
	a.segment(1002, 2, 5, archivetest.Hour(12).Add(time.Minute))
	a.segment(1002, 2, 6, archivetest.Hour(12).Add(6*time.Minute))
	a.segment(1002, 2, 7, archivetest.Hour(12).Add(7*time.Minute))
	return a
}

// outcome is what a restore to a time comes to, where the last commit before it is followed by one in the same WAL, or
// is not. A choice that is not open is refused when its end is reached.
func outcome(t *testing.T, b *buckettest.Memory, at time.Time) (first string, open bool) {
	t.Helper()
	c, err := book.Read(t.Context(), b)
	if err != nil {
		t.Fatal(err)
	}
	got, err := c.Choose(book.Wanted{Target: book.Target{Time: at}, Now: archivetest.Hour(20).AddDate(0, 2, 0)})
	if err != nil {
		return fmt.Sprint("refused: ", errors.Is(err, book.ErrOutside)), false
	}
	return fmt.Sprintf("%s on branch %d to %s", got.Backup.ID, got.Branch, got.To), got.Open
}

// What an archive leads to does not depend on when its objects got where they are.
func TestACopyLeadsWhereTheOriginalDoes(t *testing.T) {
	for name, make := range map[string]func(*testing.T, bool) timed{
		"a gap": gapAtNoon, "a restore in place": inPlaceAtNoon,
	} {
		t.Run(name, func(t *testing.T) {
			a := make(t, true)
			copies := map[string]*buckettest.Memory{
				"copied at once":                a.copied(archivetest.Hour(14).Add(8 * time.Minute)),
				"copied a month later":          a.copied(archivetest.Hour(8).AddDate(0, 1, 0)),
				"synced with times of the past": a.synced(archivetest.Hour(1)),
				"synced a year later":           a.synced(archivetest.Hour(1).AddDate(1, 0, 0)),
			}
			for at := archivetest.Hour(8); at.Before(archivetest.Hour(16)); at = at.Add(5 * time.Minute) {
				want, open := outcome(t, a.bucket, at)
				for how, b := range copies {
					if got, stillOpen := outcome(t, b, at); got != want || open != stillOpen {
						t.Errorf("%s: %s is %s (open %v), and was %s (%v)", how, at.Format(time.TimeOnly), got,
							stillOpen, want, open)
					}
				}
			}
		})
	}
}

// Where each of these moments leads, in the archive and in a copy.
func TestAMomentThatMayBeMissing(t *testing.T) {
	minute := func(h, m int) time.Time { return archivetest.Hour(h).Add(time.Duration(m) * time.Minute) }
	for name, c := range map[string]struct {
		archive timed
		at      time.Time
		want    string
		open    bool
	}{
		"before a gap":      {gapAtNoon(t, true), minute(10, 30), "b1 on branch 1 to 0/30000", false},
		"in a gap":          {gapAtNoon(t, true), archivetest.Hour(12), "refused: true", false},
		"in a gap, unnoted": {gapAtNoon(t, false), archivetest.Hour(12), "refused: true", false},
		"after a gap":       {gapAtNoon(t, true), minute(14, 30), "b2 on branch 1 to 0/B0000", true},
		"of the branch that was left": {
			inPlaceAtNoon(t, true), minute(11, 30), "b1 on branch 1 to 0/38000", false,
		},
		"of the new branch":          {inPlaceAtNoon(t, true), minute(12, 5), "b1 on branch 1002 to 0/40000", true},
		"of the new branch, unnoted": {inPlaceAtNoon(t, false), minute(12, 5), "b1 on branch 1002 to 0/40000", true},
	} {
		t.Run(name, func(t *testing.T) {
			if got, open := outcome(t, c.archive.bucket, c.at); got != c.want || open != c.open {
				t.Errorf("it is %s (open %v), expected %s", got, open, c.want)
			}
			// A copy of what has no notes may look for it, and does not take it for reached where it is not.
			for _, at := range []time.Time{
				archivetest.Hour(14).Add(8 * time.Minute), archivetest.Hour(8).AddDate(0, 1, 0),
			} {
				got, open := outcome(t, c.archive.copied(at), c.at)
				if open && got != c.want {
					t.Errorf("copied at %s it is %s, expected %s", at, got, c.want)
				}
			}
		})
	}
}

// A leader whose WAL is there, and nobody can say what it continues, may have written what comes later.
func TestAnUnreadTermLeavesNoWindowOpen(t *testing.T) {
	a := inPlaceAtNoon(t, false)
	name := format.TermFolder(1002) + format.FileLineage
	for problem, spoil := range map[string]func(b *buckettest.Memory){
		"spoilt": func(b *buckettest.Memory) {
			b.Objects[name] = buckettest.Stored{Content: []byte("{"), Modified: b.Objects[name].Modified}
		},
		"lost": func(b *buckettest.Memory) { delete(b.Objects, name) },
	} {
		b := a.synced(archivetest.Hour(12).AddDate(0, 1, 0))
		spoil(b)
		if got, open := outcome(t, b, archivetest.Hour(12).Add(5*time.Minute)); open {
			t.Errorf("%s: it is %s", problem, got)
		}
	}
}
