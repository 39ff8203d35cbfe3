package bluegreen

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"toban.dev/internal/postgres/sql"
	"toban.dev/internal/wal"
)

// ErrMissing says that the serving side lacks what the link needs there: the following side can't go on, and is made
// anew.
var ErrMissing = errors.New("the link is broken")

// Adopt takes from a copy what is not for it: the schema public that pg_upgrade has made, where the serving side has
// none, and what the copy has of the link by which it is to follow, its publications. Notes that the copy has are those
// of the other side, or of this, and are forgotten.
func (l Link) Adopt(ctx context.Context) error {
	if err := dropPublic(ctx, l, l.Subscriber().isCopy, dropsPublic); err != nil {
		return err
	}
	return l.Subscriber().adopt(ctx)
}

// adopt removes the publications of the link.
func (s Subscriber) adopt(ctx context.Context) error {
	return each(ctx, s.Following, func(conn *pgx.Conn, _ database) error {
		if is, err := s.isCopy(ctx, conn); err != nil || !is {
			return err
		}
		if err := mustOwn(ctx, conn); err != nil {
			return err
		}
		return do(ctx, conn, "remove the publication of the copy", "drop publication "+s.Name,
			"truncate "+schema+".noted, "+schema+".slot")
	})
}

// isCopy says that a database is as it was copied, with the publication of the serving side.
func (s Subscriber) isCopy(ctx context.Context, conn *pgx.Conn) (bool, error) {
	return sql.Value[bool](ctx, conn, "look for the publication of the copy",
		"select exists (select from pg_publication where pubname = $1)", s.Name)
}

// Follow makes the subscriptions, which begin at a position, or where the slots are if it is 0. One that is there stays
// as it is. A note of where a former one was says nothing of them.
func (l Link) Follow(ctx context.Context, position wal.LSN) error {
	return l.make(ctx, func(ctx context.Context, conn *pgx.Conn) (wal.LSN, string, error) {
		if there, err := hasProgress(ctx, conn); err != nil || !there {
			return position, "", err
		}
		return position, forget(l.Name), mustOwn(ctx, conn)
	})
}

// starting says where the subscription of a database begins, and what is done in the transaction that makes it.
type starting func(context.Context, *pgx.Conn) (position wal.LSN, then string, err error)

// make makes the subscriptions that are missing.
func (l Link) make(ctx context.Context, from starting) error {
	serving, err := databases(ctx, l.Serving)
	if err != nil {
		return err
	}
	if err := l.Subscriber().hasRoom(ctx, len(serving)); err != nil {
		return err
	}
	major, err := l.Publisher().major(ctx)
	if err != nil {
		return err
	}
	if err := l.forgetCompared(ctx); err != nil {
		return err
	}
	slots := map[string]string{}
	for _, d := range serving {
		slots[d.Name] = l.Publisher().slot(d)
	}
	return each(ctx, l.Following, func(conn *pgx.Conn, d database) error {
		slot := slots[d.Name]
		if slot == "" {
			return fmt.Errorf("%w: %s has no such database", ErrMissing, l.Serving.Name)
		}
		return l.Subscriber().subscribe(ctx, conn, from, l.subscription(d.Name, slot, major))
	})
}

func (p Publisher) major(ctx context.Context) (int, error) {
	return on(ctx, p.Serving, func(conn *pgx.Conn) (int, error) { return majorOf(ctx, conn) })
}

// subscription is the statement that makes that of a database. Without a copy of rows all tables count as carried from
// the beginning.
func (l Link) subscription(database, slot string, servingMajor int) string {
	failover := ""
	if servingMajor >= failoverSince { // without it the slot would lose that
		failover = ", failover = true"
	}
	return fmt.Sprintf("create subscription %s connection %s publication %s with (create_slot = false, slot_name = "+
		"%s, enabled = false, copy_data = false, origin = none%s)",
		l.Name, sql.Literal(l.Serving.Reach(database)), l.Name, sql.Literal(slot), failover)
}

// subscribe makes the subscription of one database, in one transaction with its position: it is there with it, or not
// at all.
func (s Subscriber) subscribe(ctx context.Context, conn *pgx.Conn, from starting, statement string) error {
	there, err := s.subscribed(ctx, conn)
	if err != nil || there {
		return err
	}
	position, then, err := from(ctx, conn)
	if err != nil {
		return err
	}
	// Also to 0: an origin has the progress of one that bore its number, if the transaction was taken back that made
	// that one.
	statements := []string{statement, fmt.Sprintf("select pg_replication_origin_advance('pg_' || oid, %s) "+
		"from pg_subscription where subname = %s and subdbid = (select oid from pg_database "+
		"where datname = current_database())", sql.Literal(position.String()), sql.Literal(s.Name))}
	if then != "" {
		statements = append(statements, then)
	}
	return secretly(ctx, conn, "make the subscription", statements...)
}

// runs says whether a database has the subscription, and it is enabled.
func (s Subscriber) runs(ctx context.Context, conn *pgx.Conn) (runs bool, err error) {
	return sql.Value[bool](ctx, conn, "look whether the subscription runs",
		`select exists (select from pg_subscription s join pg_database d on d.oid = s.subdbid
		where d.datname = current_database() and subname = $1 and subenabled and `+ourSubscription+`)`, s.Name)
}

// Enable has the following side begin, or go on.
func (s Subscriber) Enable(ctx context.Context) error {
	return each(ctx, s.Following, func(conn *pgx.Conn, _ database) error {
		there, err := s.subscribed(ctx, conn)
		if err != nil {
			return err
		}
		if !there {
			return fmt.Errorf("there is no subscription %s", s.Name)
		}
		return do(ctx, conn, "enable the subscription", fmt.Sprintf("alter subscription %s enable", s.Name))
	})
}

// poll is how often something is looked for that is about to come.
const poll = 20 * time.Millisecond

// CatchUp waits until the following side has applied all that was committed on the serving side before it was called,
// in each database, and has it on disk.
func (l Link) CatchUp(ctx context.Context) error {
	return each(ctx, l.Serving, func(conn *pgx.Conn, d database) error {
		if err := mustOwn(ctx, conn); err != nil { // before anybody else is asked
			return err
		}
		follower, err := l.Following.Connect(ctx, d.Name)
		if err != nil {
			return err
		}
		defer sql.HangUp(follower)
		return l.catchUp(ctx, conn, follower)
	})
}

// catchUp is CatchUp in one database, with a session in it on each side.
func (l Link) catchUp(ctx context.Context, conn, follower *pgx.Conn) error {
	if err := mustOwn(ctx, conn); err != nil {
		return err
	}
	n, err := bump(ctx, conn)
	if err != nil {
		return err
	}
	if err := mustOwn(ctx, follower); err != nil {
		return err
	}
	if err := l.comesTo(ctx, conn, follower, n); err != nil {
		return err
	}
	// Its own commits do not wait for its disk, nor for its standbys: one that does is behind all of them.
	return do(ctx, follower, "write on "+l.Following.Name, "set synchronous_commit = on",
		"select pg_logical_emit_message(true, 'toban', 'caught up')")
}

// bump changes the barrier, which is known to be ours, and returns its number.
func bump(ctx context.Context, conn *pgx.Conn) (n int64, err error) {
	return sql.Value[int64](ctx, conn, "change the barrier",
		"update toban_sides.barrier set n = n + 1 where id = 1 returning n")
}

func barrier(ctx context.Context, conn *pgx.Conn) (n int64, err error) {
	return sql.Value[int64](ctx, conn, "look at the barrier", "select n from toban_sides.barrier where id = 1")
}

// ErrAhead says that the following side has what the serving one has lost, because another instance was elected there:
// the following side is made anew.
var ErrAhead = errors.New("the following side is ahead of the serving one")

// comesTo waits until the following side has come to a number of the barrier.
func (l Link) comesTo(ctx context.Context, serving, follower *pgx.Conn, n int64) error {
	return wait(ctx, "wait for "+l.Following.Name, func() (bool, error) {
		seen, err := barrier(ctx, follower)
		if err != nil || seen <= n {
			return seen == n, err
		}
		now, err := barrier(ctx, serving) // somebody else may have changed it since
		if err == nil && now < seen {
			err = fmt.Errorf("%w: it is at barrier %d, and %s at %d", ErrAhead, seen, l.Serving.Name, now)
		}
		return true, err
	})
}

// wait asks until something has come.
func wait(ctx context.Context, what string, come func() (bool, error)) error {
	ticker := time.NewTicker(poll)
	defer ticker.Stop()
	for {
		if done, err := come(); done || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", what, ctx.Err())
		case <-ticker.C:
		}
	}
}

// Broken says why the following side can't go on following, "" where it can: a slot is gone, or the WAL that it needs.
func (p Publisher) Broken(ctx context.Context) (string, error) {
	serving, err := databases(ctx, p.Serving)
	if err != nil {
		return "", err
	}
	conn, err := p.Serving.Connect(ctx, "postgres")
	if err != nil {
		return "", err
	}
	defer sql.HangUp(conn)
	names := map[string]string{}
	for _, d := range serving {
		names[p.slot(d)] = d.Name
	}
	usable, err := sql.Column[string](ctx, conn, "look for the slots", `select slot_name::text from pg_replication_slots
		where slot_type = 'logical' and wal_status <> 'lost' and not coalesce(conflicting, false)`)
	if err != nil {
		return "", err
	}
	for _, name := range usable {
		delete(names, name)
	}
	for _, name := range slices.Sorted(maps.Values(names)) {
		return fmt.Sprintf("%s has no WAL any more from where the other side is in the database %s: its slot was lost "+
			"with its instance, or would have kept too much", p.Serving.Name, name), nil
	}
	return "", nil
}

// Behind is how many bytes of WAL the following side has not confirmed.
func (l Link) Behind(ctx context.Context) (bytes int64, err error) {
	return on(ctx, l.Serving, func(conn *pgx.Conn) (int64, error) {
		return sql.Value[int64](ctx, conn, "ask how far "+l.Following.Name+" is behind",
			`select coalesce(max(pg_current_wal_lsn() - confirmed_flush_lsn), 0)::bigint
			from pg_replication_slots where slot_type = 'logical' and slot_name ~ ('^' || $1 || '_[0-9]+$')`, l.Name)
	})
}

// Failures is how often the following side has failed to apply what it was sent, since its statistics began. It tries
// again by itself, and says in its log why it failed.
func (s Subscriber) Failures(ctx context.Context) (n int64, err error) {
	return on(ctx, s.Following, func(conn *pgx.Conn) (int64, error) {
		return sql.Value[int64](ctx, conn, "ask how often "+s.Following.Name+" has failed",
			`select coalesce(sum(apply_error_count), 0)::bigint from pg_stat_subscription_stats
			where subname = $1`, s.Name)
	})
}
