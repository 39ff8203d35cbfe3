package simulation

import "testing"

// breakages are the steps to leave out, and for each a schedule that notices it. Which one does changes with the
// simulation: TestBreakages says the new one.
var breakages = map[Breakage]uint64{
	NoRevocation: 4, PromiseNotDurable: 375, VoteTwice: 168, PositionIgnored: 11, TermlessPosition: 242,
	TermForgotten: 29, VoterKept: 30, ShrinkUnrecorded: 999, RuleTooEarly: 165, NoBarrier: 6, NotSuperseded: 3,
	CloneFromOld: 179, StrangersCount: 174, NoConfirmation: 1, NoCompare: 675, PromoteBeforeStop: 20, NoJoinCheck: 1,
	TermHistoryNotStored: 1, WinsAfterPromise: 59, RenewInPlace: 34, NoFence: 3, PreemptsUnasked: 21, OpensUnproven: 1,
	OpensUnasked: 328, LateCommand: 4129, DiscardsFirst: 93, DiscardsUnasked: 222, KilledTooEarly: 11,
	CountsUnheard: 76,
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
