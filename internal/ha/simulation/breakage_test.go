package simulation

import "testing"

// TestBreakages leaves out one step at a time: the invariants must notice. The
// search begins a little before a schedule that is known to notice, so that all of them
// fit into a minute; when a change of the schedules moves that, there is room for it.
func TestBreakages(t *testing.T) {
	const room = 10_000
	for _, c := range []struct {
		broken Breakage
		from   uint64
	}{
		{NoRevocation, 1}, {PromiseNotDurable, 1}, {VoteTwice, 1}, {PositionIgnored, 1}, {TermlessPosition, 1},
		{TermForgotten, 1}, {VoterKept, 1}, {ShrinkUnrecorded, 1}, {RuleTooEarly, 1}, {NoBarrier, 1},
		{NotSuperseded, 1}, {CloneFromOld, 1}, {StrangersCount, 1}, {NoConfirmation, 1}, {NoCompare, 1},
		{PromoteBeforeStop, 1}, {NoJoinCheck, 1}, {LineageNotStored, 1}, {WinsAfterPromise, 1}, {RenewInPlace, 1}, {NoFence, 1}, {OvertakesUnasked, 1}, {OldWord, 1}, {OpensUnasked, 1},
		{LateCommand, 1}, {DiscardsFirst, 1}, {DiscardsUnasked, 1}, {KilledTooEarly, 1},
	} {
		t.Run(string(c.broken), func(t *testing.T) {
			failed, ran := sweep(c.broken, c.from, c.from+room, nil)
			if failed == none {
				t.Fatalf("not noticed in %d schedules", ran)
			}
			t.Logf("seed %d, after %d: %s", failed, failed-c.from+1, Run(failed, c.broken, false).Failure)
		})
	}
}
