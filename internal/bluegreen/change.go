package bluegreen

import (
	"context"
	"fmt"
	"strings"
	"time"

	"toban.dev/internal/upgrade"
)

// InTheWay is what keeps the following side from becoming the serving one now.
type InTheWay struct{ Reason, Message string }

// Error says it.
func (w InTheWay) Error() string { return w.Reason + ": " + w.Message }

// The reasons besides those of upgrade.CheckCarry.
const (
	SchemaChanged = "SchemaChanged"
	RolesDiffer   = "RolesDiffer"
	LinkBackLost  = "LinkBackLost"
)

// Look says what is in the way of a change of sides: what is not carried, looked for once more.
func (l Link) Look(ctx context.Context) error {
	noted, err := Noted(ctx, l.Serving)
	if err != nil {
		return err
	}
	if len(noted) > 0 {
		return InTheWay{SchemaChanged, "the schema was changed meanwhile: " + strings.Join(noted, "; ")}
	}
	facts, err := Examine(ctx, l.Serving)
	if err != nil {
		return err
	}
	if refusals := upgrade.CheckCarry(facts); len(refusals) > 0 {
		r := refusals[0]
		return InTheWay{r.Reason, fmt.Sprintf("%s: %s", r.Message, strings.Join(r.Objects, ", "))}
	}
	differ, err := l.SharedDiffers(ctx)
	if err != nil {
		return err
	}
	if len(differ) > 0 {
		return InTheWay{RolesDiffer, "this differs between the sides: " + strings.Join(differ, ", ")}
	}
	return nil
}

// Handed is what was done in a pause, with the time of each part.
type Handed struct {
	Sequences            int
	Look, Catch, Carried time.Duration
}

// Prepare makes the link back, which does not begin before the sides have changed.
func (l Link) Prepare(ctx context.Context, back Link, patience time.Duration) error {
	if _, err := back.Publish(ctx, patience); err != nil {
		return err
	}
	return back.Follow(ctx, 0)
}

// Hand gives the following side what it lacks to serve, when no client writes on the serving side any more and none
// will. It changes nothing that would keep the serving side from going on: whoever calls it opens one of the two.
func (l Link) Hand(ctx context.Context) (done Handed, err error) {
	at := time.Now()
	lap := func(d *time.Duration) { *d, at = time.Since(at), time.Now() }
	if err := l.Look(ctx); err != nil {
		return done, err
	}
	lap(&done.Look)
	if done.Sequences, err = l.CarrySequences(ctx); err != nil {
		return done, err
	}
	lap(&done.Carried)
	// Last, because what it waits for is on disk with all that was written there before.
	if err := l.CatchUp(ctx); err != nil {
		return done, err
	}
	lap(&done.Catch)
	return done, nil
}

// Turn ends this link for good, and has the one back begin, when the other side serves. Until then both are there, and
// neither sends what came by the other one.
func (l Link) Turn(ctx context.Context, back Link) error {
	if err := back.Enable(ctx); err != nil {
		return err
	}
	if err := l.RemoveFollowing(ctx); err != nil {
		return err
	}
	return l.RemoveServing(ctx)
}
