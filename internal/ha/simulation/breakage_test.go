package simulation

import "testing"

// TestBreakages leaves out one step at a time: the invariants must notice.
func TestBreakages(t *testing.T) {
	for _, c := range []struct {
		broken Breakage
		seeds  uint64
	}{
		{NoRevocation, 20_000}, {PromiseNotDurable, 20_000}, {VoteTwice, 20_000}, {PositionIgnored, 20_000},
		{TermlessPosition, 20_000}, {TermForgotten, 20_000}, {VoterKept, 20_000}, {ShrinkUnrecorded, 20_000},
		{RuleTooEarly, 20_000}, {NoBarrier, 20_000}, {NotSuperseded, 20_000}, {CloneFromOld, 20_000},
		{StrangersCount, 20_000}, {NoConfirmation, 20_000}, {NoCompare, 20_000}, {PromoteBeforeStop, 20_000},
		{NoJoinCheck, 20_000}, {LineageNotStored, 20_000}, {StaleAction, 20_000}, {WinsAfterPromise, 20_000}, {NoFence, 20_000},
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
