package witness

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"toban.dev/internal/ha"
	"toban.dev/internal/ha/machine"
)

// lease fails some times before it has something on record.
type lease struct {
	asked  int
	fails  int
	err    error
	answer time.Duration
}

func (l *lease) Operate(ctx context.Context, _ ha.WitnessOperation) (ha.HardState, ha.WitnessAnswer, error) {
	l.asked++
	select {
	case <-time.After(l.answer):
	case <-ctx.Done():
		return ha.HardState{}, ha.WitnessAnswer{}, ctx.Err()
	}
	if l.asked <= l.fails {
		return ha.HardState{}, ha.WitnessAnswer{}, l.err
	}
	return ha.HardState{Voter: "uid"}, ha.WitnessAnswer{Granted: true}, nil
}

func TestAskTheWitness(t *testing.T) {
	conflict := fmt.Errorf("write the Lease: %w", ErrConflict)
	hold, preempt := ha.WitnessOperation{ReadLease: 4}, ha.WitnessOperation{Preempt: &ha.Ballot{Term: 5}}
	for name, c := range map[string]struct {
		lease     lease
		operation ha.WitnessOperation
		failed    bool
		asked     int
	}{
		"it answers":                           {lease{answer: time.Second}, hold, false, 1},
		"it fails":                             {lease{fails: 1, err: errors.New("no such Lease")}, preempt, true, 1},
		"another was faster":                   {lease{fails: 1, err: conflict}, hold, true, 1},
		"another was faster than who preempts": {lease{fails: 2, err: conflict}, preempt, false, 3},
		"it does not answer":                   {lease{answer: time.Hour}, preempt, true, 1},
		"another is always faster, and slow": {
			lease{fails: 1000, err: conflict, answer: 2 * time.Second}, preempt, true, 3,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				got := Ask(t.Context(), &c.lease, machine.AskWitness{ID: 7, Operation: c.operation},
					func(at time.Time) time.Duration { return at.Sub(began) })
				if got.ID != 7 || got.Failed != c.failed || c.lease.asked != c.asked || got.Answer.Granted == c.failed {
					t.Errorf("the answer is %+v after %d questions", got, c.lease.asked)
				}
				if took := time.Since(began); took > deadline || got.Asked > took {
					t.Errorf("asked at %v, it took %v", got.Asked, took)
				}
				if !c.failed && got.Asked < time.Duration(c.asked-1)*retryConflict {
					t.Errorf("asked at %v, before it was conflict", got.Asked)
				}
			})
		})
	}
}
