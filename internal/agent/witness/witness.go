// Package witness asks the witness of two instances, of which only one may go on alone.
package witness

import (
	"context"
	"errors"
	"time"

	"toban.dev/internal/ha"
	"toban.dev/internal/ha/machine"
	"toban.dev/internal/pause"
)

// How long is waited for an answer, and until it is written again after another has.
const (
	deadline      = 5 * time.Second
	retryConflict = 10 * time.Millisecond
)

// ErrConflict says that somebody else has changed what is on record meanwhile.
var ErrConflict = errors.New("somebody else has changed it meanwhile")

// Object is what has the witness's record.
type Object interface {
	// Operate does something at the witness, and says what is on record then; its Voter is the identity of the object.
	// It fails with ErrConflict when somebody else was faster.
	Operate(ctx context.Context, o ha.WitnessOperation) (ha.HardState, ha.WitnessAnswer, error)
}

// Ask asks the witness for the machine. What somebody else has changed meanwhile is changed again only by who preempts.
// When it was asked is told by the clock at.
func Ask(
	ctx context.Context, object Object, e machine.AskWitness, at func(time.Time) time.Duration,
) machine.WitnessAnswered {
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	for {
		asked := time.Now()
		m, answer, err := object.Operate(ctx, e.Operation)
		again := errors.Is(err, ErrConflict) && e.Operation.Preempt != nil
		if again && pause.For(ctx, retryConflict) {
			continue
		}
		return machine.WitnessAnswered{ID: e.ID, Asked: at(asked), HardState: m, Answer: answer, Failed: err != nil}
	}
}
