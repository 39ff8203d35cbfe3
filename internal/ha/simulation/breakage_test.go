package simulation

import "testing"

// TestBreakages leaves out one step at a time: the invariants must notice.
func TestBreakages(t *testing.T) {
	for _, c := range []struct {
		broken Breakage
		seeds  uint64
	}{
		{NoRevocation, 2000}, {PromiseNotDurable, 200}, {VoteTwice, 500}, {PositionIgnored, 5000}, {TermlessPosition, 2000},
		{TermForgotten, 200}, {VoterKept, 2000}, {ShrinkUnrecorded, 200}, {RuleTooEarly, 200}, {NoBarrier, 2000},
		{NotSuperseded, 200}, {CloneFromOld, 3000}, {StrangersCount, 200}, {NoConfirmation, 200}, {NoCompare, 8000},
		{NoJoinCheck, 200}, {LineageNotStored, 200}, {NoFence, 500}, {WinsAfterPromise, 3000},
		// Not noticed yet, or not tried for long enough: PromoteBeforeStop,
		// StaleAction.
	} {
		t.Run(string(c.broken), func(t *testing.T) {
			failed, ran := sweep(c.broken, 1, c.seeds, nil)
			if failed == ^uint64(0) {
				t.Fatalf("not noticed in %d schedules", ran)
			}
			t.Logf("seed %d: %s", failed, Run(failed, c.broken, false).Failure)
		})
	}
}
