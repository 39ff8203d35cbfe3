package volume

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"toban.dev/internal/ha"
)

// heardOf is what a probe tells when each of its writes takes so long, and whoever is told takes so long to hear it.
func heardOf(
	t *testing.T, lasts, takes, hearing time.Duration,
) (longest time.Duration, last time.Duration, writes int) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		last = -1
		p := Probe{
			write: func() error {
				writes++
				time.Sleep(takes)
				return nil
			},
			tell: func(unwritten time.Duration) {
				longest, last = max(longest, unwritten), unwritten
				time.Sleep(hearing)
			},
			done: func(error) {},
		}
		ended := make(chan struct{})
		go func() { _ = p.Run(ctx); close(ended) }()
		time.Sleep(lasts)
		cancel()
		<-ended
		time.Sleep(takes) // the last write ends, too
	})
	return longest, last, writes
}

func TestAWriteThatDoesNotComeBackIsTold(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		lasts, takes, hearing time.Duration
		stalls, over          bool
	}{
		"a volume that is fast":                 {time.Minute, time.Millisecond, 0, false, false},
		"one that is busy":                      {time.Minute, 1500 * time.Millisecond, 0, false, false},
		"one that stalls":                       {time.Hour, 24 * time.Hour, 0, true, false},
		"one that goes on after it":             {9300 * time.Millisecond, 9 * time.Second, 0, true, true},
		"an agent that pauses itself meanwhile": {8 * time.Second, 9 * time.Second, 7 * time.Second, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			longest, last, writes := heardOf(t, c.lasts, c.takes, c.hearing)
			if stalls := longest > ha.StallLimit; stalls != c.stalls {
				t.Errorf("the longest wait that is told of is %s", longest)
			}
			if c.stalls && (last == 0) != c.over {
				t.Errorf("in the end %s is told", last)
			}
			if c.stalls && !c.over && writes != 1 {
				t.Errorf("%d writes hang", writes)
			}
		})
	}
}

// A stall is known soon enough for a failover within 4 s: 0.5 s until the next write begins, then the limit, then a
// look.
func TestAStallIsToldInTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		told := make(chan time.Duration, 1)
		p := Probe{
			write: func() error {
				if time.Since(began) > 0 {
					time.Sleep(time.Hour)
				}
				return nil
			},
			tell: func(unwritten time.Duration) {
				if unwritten > ha.StallLimit && len(told) == 0 {
					told <- time.Since(began)
				}
			},
			done: func(error) {},
		}
		ctx, cancel := context.WithCancel(t.Context())
		go func() { _ = p.Run(ctx) }()
		if after := <-told; after > 2800*time.Millisecond {
			t.Errorf("after %s", after)
		}
		cancel()
		time.Sleep(2 * time.Hour)
	})
}

func TestAWriteInPlaceTakesTheSameRoomAgain(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "writable")
	for range 3 {
		if err := writeInPlace(path); err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(path); err != nil || info.Size() != 21 {
			t.Fatalf("%v, %v", info, err)
		}
	}
	if err := writeInPlace(filepath.Join(path, "below")); err == nil ||
		!errors.Is(err, os.ErrInvalid) && err.Error() == "" {
		t.Error("a file below a file was written")
	}
}
