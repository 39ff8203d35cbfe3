package simulation

import "testing"

// breakages are the steps to leave out, and for each a schedule that notices it. Which one does changes with the
// simulation: TestBreakages says the new one.
var breakages = map[Breakage]uint64{
	NoRevocation: 10, PromiseNotDurable: 2665, VoteTwice: 161, PositionIgnored: 11, TermlessPosition: 21,
	TermForgotten: 4, VoterKept: 94, ShrinkUnrecorded: 999, RuleTooEarly: 25, NoBarrier: 6, NotSuperseded: 5,
	CloneFromOld: 193, StrangersCount: 105, NoConfirmation: 5, NoCompare: 2196, PromoteBeforeStop: 16, NoJoinCheck: 1,
	TermHistoryNotStored: 1, WinsAfterPromise: 725, RenewInPlace: 34, NoFence: 12, PreemptsUnasked: 93,
	OpensUnproven: 1, OpensUnasked: 490, LateCommand: 8327, DiscardsFirst: 147, DiscardsUnasked: 147, KilledTooEarly: 3,
	CountsUnheard: 58,
}

// TestBreakages leaves out one step at a time: the invariants must notice. Most are noticed within some hundred
// schedules, a few within thousands, so the schedule that has noticed it before is tried first.
func TestBreakages(t *testing.T) {
	const room = 10_000
	for broken, known := range breakages {
		t.Run(string(broken), func(t *testing.T) {
			if Run(known, Whole, false).Failure != "" {
				t.Fatalf("seed %d fails with nothing left out: go test -seed %d", known, known)
			}
			if r := Run(known, broken, false); r.Failure != "" {
				t.Logf("seed %d: %s", known, r.Failure)
				return
			}
			failed, ran := sweep(broken, 1, 1+room, nil)
			if failed == none {
				t.Fatalf("not noticed in %d schedules", ran)
			}
			t.Logf("seed %d, and no more %d: write it into breakages: %s",
				failed, known, Run(failed, broken, false).Failure)
		})
	}
}
