package bluegreen

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"toban.dev/internal/postgres/sql"
)

// InTheWay is what keeps the following side from becoming the serving one now.
type InTheWay struct{ Reason, Message string }

// Error says it.
func (w InTheWay) Error() string { return w.Reason + ": " + w.Message }

// The reasons besides those of upgrade.CheckCarry.
const (
	SchemaChanged = "SchemaChanged"
	RolesDiffer   = "RolesDiffer"
	TablesDiffer  = "TablesDiffer"
	ClientsThere  = "ClientsThere"
	LinkBackLost  = "LinkBackLost"
)

// Look says what is in the way of a change of sides: what is not carried, looked for once more, and what is not the
// same on both sides.
func (l Link) Look(ctx context.Context) error {
	if err := l.lookAgain(ctx); err != nil {
		return err
	}
	return l.sameDefinitions(ctx)
}

// lookAgain is what Look says and a pause has time for.
func (l Link) lookAgain(ctx context.Context) error {
	noted, err := Noted(ctx, l.Serving)
	if err != nil {
		return err
	}
	if len(noted) > 0 {
		return InTheWay{SchemaChanged, "the schema was changed meanwhile: " + strings.Join(noted, "; ")}
	}
	if err := carries(ctx, l.Serving); err != nil {
		return err
	}
	differ, err := l.SharedDiffers(ctx)
	if err != nil {
		return err
	}
	if len(differ) > 0 {
		return InTheWay{RolesDiffer, "this differs between the sides: " + strings.Join(differ, ", ")}
	}
	return l.sameTables(ctx)
}

// Handed is what was done in a pause, with the time of each part.
type Handed struct {
	Sequences            int
	Look, Catch, Carried time.Duration
}

// Prepare makes the link back, which does not begin before the sides have changed.
func (l Link) Prepare(ctx context.Context, back Link, patience time.Duration) error {
	if _, err := back.Publisher().Publish(ctx, patience); err != nil {
		return err
	}
	return back.Follow(ctx, 0)
}

// Hand gives the following side what it lacks to serve, when no client writes on the serving side any more and none
// will. It changes nothing that would keep the serving side from going on: whoever calls it opens one of the two.
//
// The side was said to be empty. Somebody who has come in since, a person with psql mostly, may have written: then his
// end is waited for, and all is done again.
func (l Link) Hand(ctx context.Context) (done Handed, err error) {
	at := time.Now()
	lap := func(d *time.Duration) { *d, at = *d+time.Since(at), time.Now() }
	if err := l.lookAgain(ctx); err != nil {
		return done, err
	}
	lap(&done.Look)
	var there []string
	for {
		if done.Sequences, err = l.CarrySequences(ctx); err != nil {
			return done, l.Publisher().because(there, err)
		}
		lap(&done.Carried)
		// Last, because what it waits for is on disk with all that was written there before.
		if err := l.CatchUp(ctx); err != nil {
			return done, l.Publisher().because(there, err)
		}
		lap(&done.Catch)
		now, err := l.Publisher().clients(ctx)
		if err != nil {
			return done, l.Publisher().because(there, err)
		}
		if there = now; len(there) == 0 {
			return done, nil
		}
	}
}

// because says that what took too long has waited for clients, where it has.
func (p Publisher) because(there []string, err error) error {
	if len(there) == 0 || !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return InTheWay{ClientsThere, fmt.Sprintf("somebody is on %s, which lets nobody in: %s", p.Serving.Name,
		strings.Join(there, "; "))}
}

// clients are the sessions on the serving side that are none of ours.
func (p Publisher) clients(ctx context.Context) ([]string, error) {
	return on(ctx, p.Serving, func(conn *pgx.Conn) ([]string, error) {
		return sql.Column[string](ctx, conn, "look for clients", `select format('process %s of %s (%s)', pid,
			coalesce(usename, 'a role that is gone'), application_name) from pg_stat_activity
			where `+sql.Clients+` order by pid`)
	})
}

// Turn ends this link for good, and has the one back begin, when the other side serves. Until then both are there, and
// neither sends what came by the other one.
func (l Link) Turn(ctx context.Context, back Link) error {
	if err := back.Subscriber().Enable(ctx); err != nil {
		return err
	}
	if err := l.LastWord(ctx); err != nil {
		return err
	}
	if err := l.Subscriber().Remove(ctx); err != nil {
		return err
	}
	return l.Publisher().Remove(ctx)
}

// LastWord waits until all has come to the following side that was committed on the serving one, before the link ends.
// Nobody should have been there since the sides have changed; if somebody was, he was told that it is committed. A link
// that does not run, or can't go on, has nothing to say any more.
func (l Link) LastWord(ctx context.Context) error {
	if broken, err := l.Publisher().Broken(ctx); err != nil || broken != "" {
		return err
	}
	err := each(ctx, l.Following, func(follower *pgx.Conn, d database) error {
		runs, err := l.Subscriber().runs(ctx, follower)
		if err != nil || !runs {
			return err
		}
		_, err = in(ctx, l.Serving, d, func(conn *pgx.Conn, _ database) (struct{}, error) {
			return struct{}{}, l.catchUp(ctx, conn, follower)
		})
		return err
	})
	if err != nil {
		return fmt.Errorf("bring what was committed on %s at last (the log of %s may say what is in the way): %w",
			l.Serving.Name, l.Following.Name, err)
	}
	return nil
}
