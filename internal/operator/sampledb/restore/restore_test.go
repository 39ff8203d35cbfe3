package restore

import (
	"math"
	"testing"
	"time"
)

// Each try downloads all again: one that can't succeed must not do so for ever each few minutes.
func TestARestoreIsTriedLessAndLessOften(t *testing.T) {
	for failures, want := range map[int32]time.Duration{
		0: 5 * time.Minute, 1: 5 * time.Minute, 2: 10 * time.Minute, 3: 20 * time.Minute, 4: 40 * time.Minute,
		8: 640 * time.Minute, 9: 12 * time.Hour, 100: 12 * time.Hour, math.MaxInt16: 12 * time.Hour,
	} {
		if got := restorePause(failures); got != want {
			t.Errorf("after %d failures: %s, want %s", failures, got, want)
		}
	}
}
