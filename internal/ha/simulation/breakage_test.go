package simulation

import "testing"

// TestBreakages leaves out one step at a time: the invariants must notice. Most are noticed
// within some hundred schedules.
func TestBreakages(t *testing.T) {
	const room = 10_000
	for _, broken := range []Breakage{
		NoRevocation, PromiseNotDurable, VoteTwice, PositionIgnored, TermlessPosition, TermForgotten, VoterKept,
		ShrinkUnrecorded, RuleTooEarly, NoBarrier, NotSuperseded, CloneFromOld, StrangersCount, NoConfirmation,
		NoCompare, PromoteBeforeStop, NoJoinCheck, TermHistoryNotStored, WinsAfterPromise, RenewInPlace, NoFence,
		PreemptsUnasked, OpensUnproven, OpensUnasked, LateCommand, DiscardsFirst, DiscardsUnasked, KilledTooEarly,
		CountsUnheard,
	} {
		t.Run(string(broken), func(t *testing.T) {
			failed, ran := sweep(broken, 1, 1+room, nil)
			if failed == none {
				t.Fatalf("not noticed in %d schedules", ran)
			}
			t.Logf("seed %d: %s", failed, Run(failed, broken, false).Failure)
		})
	}
}
