package keep_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

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

// TestCopiesOfHistories copies an archive while leaders come and go, retention removes and a run is cut off at random.
func TestCopiesOfHistories(t *testing.T) {
	archivetest.SmallSegments(t)
	for seed := range uint64(30) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) { copyHistory(t, seed) })
	}
}

func copyHistory(t *testing.T, seed uint64) {
	w := keep.NewWorld(t, seed)
	if err := format.Claim(t.Context(), w.Bucket(), archivetest.Owner); err != nil {
		t.Fatal(err)
	}
	copied, random := buckettest.NewMemory(), rand.New(rand.NewPCG(seed, 7))
	killed := errors.New("killed")
	for range 8 {
		for range 5 {
			w.Step()
		}
		left := random.IntN(60)
		copied.Clock = w.Bucket().Clock
		copied.Fault = func(bool) error {
			if left--; left < 0 {
				return killed
			}
			return nil
		}
		options := second.Options{First: w.Bucket().Without(), Second: copied, Owner: archivetest.Owner.UID,
			Policy: keep.Policy{Count: 2, Now: w.Bucket().Clock}}
		_, _ = second.Copy(t.Context(), options)
		keeptest.SeeRestorable(t, copied, second.LacksWAL)
		copied.Fault = func(bool) error { return nil }
		if random.IntN(3) == 0 {
			continue
		}
		if _, err := second.Copy(t.Context(), options); err != nil {
			w.Fatal("%v", err)
		}
		lookAtCopy(w, copied)
		if t.Failed() {
			w.Fatal("seed %d", seed)
		}
	}
}

// lookAtCopy sees that a copy has all of its archive that can be restored, and leads as far.
func lookAtCopy(w *keep.World, store *buckettest.Memory) {
	w.T().Helper()
	copied := keeptest.SeeRestorable(w.T(), store, second.LacksWAL)
	archive, err := book.Read(w.T().Context(), w.Bucket().Without())
	if err != nil {
		w.Fatal("%v", err)
	}
	for _, name := range keeptest.Missing(w.Bucket(), store) {
		id, ofBackup := format.BackupOf(name)
		whole := slices.ContainsFunc(archive.Backups, func(b format.Backup) bool {
			_, err := archive.Chain(b.ID)
			return b.ID == id && err == nil && second.LacksWAL(archive, b) == ""
		})
		if ofBackup && whole || !ofBackup && !strings.HasPrefix(name, "probe-") {
			w.T().Errorf("the copy lacks %s", name)
		}
	}
	for _, history := range append(archive.TermHistories(), []ha.TermStart(nil)) {
		there, ok := archive.Window(history)
		here, has := copied.Window(history)
		if ok && (!has || here.To < there.To) {
			w.T().Errorf("along %v the archive reaches to %s, the copy to %s", history, there.To, here.To)
		}
	}
}

// What is of a branch that was left is copied too, whether its term is stale or was never written down by its leader.
func TestWALOfABranchThatWasLeftIsFoundForACopy(t *testing.T) {
	c := keep.TwiceTheSameTimeline()
	stale := c.Backups[0]
	c.Terms[2003].WAL = c.Terms[2003].WAL[:1]
	if lacks := second.LacksWAL(c, stale); lacks != "" {
		t.Errorf("of one with a stale term it lacks %s", lacks)
	}
	at := wal.LSN(5 * wal.SegmentSize)
	c.Terms[1004] = &book.Term{TermHistory: append(slices.Clone(c.Terms[1002].TermHistory),
		ha.TermStart{Term: 1003, LSN: at, Timeline: 3}, ha.TermStart{Term: 1004, LSN: at + 0x4000, Timeline: 4})}
	keep.AddWAL(&c, 1004, 4, 5, archivetest.Day(2))
	unwritten := format.Backup{ID: "unwritten", Term: 1003, StartLSN: at + 0x100, StopLSN: at + 0x200, StopTimeline: 3}
	if lacks := second.LacksWAL(c, unwritten); lacks != "" {
		t.Errorf("of a leader that has archived nothing it lacks %s", lacks)
	}
	unwritten.Term = 1005
	if lacks := second.LacksWAL(c, unwritten); lacks != "what term 1005 continues" {
		t.Errorf("of one that nobody knows it lacks %q", lacks)
	}
}
