package bluegreen

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"toban.dev/internal/pause"
	"toban.dev/internal/postgres/sql"
)

// copiesAsked is how often it is asked for copies of slots.
const copiesAsked = 500 * time.Millisecond

// ErrNoStandby says that a name is that of no standby: something else streams under it.
var ErrNoStandby = errors.New("it is no standby")

// AwaitCopies waits until every standby that streams from the serving side has copies of the link's slots that are in
// step (PostgreSQL 17 and later): then the link goes on whichever of them is elected. tell is told which has none.
func (p Publisher) AwaitCopies(ctx context.Context, tell func(says string)) error {
	conn, err := p.Serving.Connect(ctx, "postgres")
	if err != nil {
		return err
	}
	defer sql.HangUp(conn)
	if major, err := majorOf(ctx, conn); err != nil || major < failoverSince {
		return err
	}
	for {
		without, err := p.withoutCopies(ctx, conn)
		if err != nil || without == "" {
			return err
		}
		says := fmt.Sprintf("waits until the standby %s has copies of the slots of the link", without)
		tell(says)
		if !pause.For(ctx, copiesAsked) {
			return fmt.Errorf("%s: %w", says, ctx.Err())
		}
	}
}

// withoutCopies is a standby that lacks a copy that is in step, "" where none does. A copy gets into step when its slot
// moves on, which it does with what is logged here; the server does that by itself once in 15 s.
func (p Publisher) withoutCopies(ctx context.Context, primary *pgx.Conn) (string, error) {
	if err := do(ctx, primary, "have the slots move on", "select pg_log_standby_snapshot()"); err != nil {
		return "", err
	}
	const ofLink = "slot_type = 'logical' and slot_name ~ ('^' || $1 || '_[0-9]+$')"
	slots, err := sql.Column[string](ctx, primary, "look for the slots",
		"select slot_name::text from pg_replication_slots where "+ofLink, p.Name)
	if err != nil {
		return "", err
	}
	names, err := sql.Column[string](ctx, primary, "look for standbys",
		`select distinct application_name from pg_stat_replication r
		where state = 'streaming' and not exists (select from pg_replication_slots s
			where s.active_pid = r.pid and s.slot_type = 'logical') order by 1`)
	if err != nil {
		return "", err
	}
	for _, name := range names {
		copies, err := p.copiesOn(ctx, name, "select slot_name::text from pg_replication_slots where synced "+
			"and not temporary and invalidation_reason is null and "+ofLink)
		if errors.Is(err, ErrNoStandby) {
			continue
		}
		lacks := func(slot string) bool { return !slices.Contains(copies, slot) }
		if err != nil || slices.ContainsFunc(slots, lacks) {
			return name, nil //nolint:nilerr // it may answer later: it is asked again
		}
	}
	return "", nil
}

// copiesOn are the copies that a query finds on a standby.
func (p Publisher) copiesOn(ctx context.Context, standby, query string) ([]string, error) {
	conn, err := p.Serving.Standby(ctx, standby)
	if err != nil {
		return nil, err
	}
	defer sql.HangUp(conn)
	return sql.Column[string](ctx, conn, "look for copies of the slots", query, p.Name)
}
