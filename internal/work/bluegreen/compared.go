package bluegreen

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"toban.dev/internal/postgres/sql"
)

// server is the data of a side, and who has written it last: each data directory has its own identifier, and each
// primary that is elected begins a timeline. Only who takes writes is asked.
type server struct {
	System   string
	Timeline string
}

func (s server) String() string {
	return fmt.Sprintf("system identifier %s, timeline %s", s.System, s.Timeline)
}

// Servers are those of both sides of a link.
type Servers struct{ serving, following server }

// servers asks both sides who they are.
func (l Link) servers(ctx context.Context) (now Servers, err error) {
	now.serving, now.following, err = both(func() (server, error) { return l.Serving.server(ctx) },
		func() (server, error) { return l.Following.server(ctx) })
	return now, err
}

// server asks a side who it is. The checkpoint of a server that was just promoted does not know its timeline yet: what
// names its WAL does.
func (s Side) server(ctx context.Context) (is server, err error) {
	is, err = on(ctx, s, func(conn *pgx.Conn) (is server, err error) {
		err = conn.QueryRow(ctx, `select system_identifier::text, left(pg_walfile_name(pg_current_wal_lsn()), 8)
			from pg_control_system()`).Scan(&is.System, &is.Timeline)
		return is, err
	})
	if err != nil {
		return is, fmt.Errorf("ask who %s is: %w", s.Name, err)
	}
	return is, nil
}

// compared is which servers a comparison has found to be the same. It is kept in the database postgres of the serving
// side, where nobody else can write it; one that lags behind when it is elected lacks it, or is another one.
const compared = `create table if not exists toban_sides.compared (link text primary key, mark text not null,
	serving text not null, serving_timeline text not null, following text not null, following_timeline text not null)`

// noteCompared notes that no row differed between two servers, where they are these still.
func (l Link) noteCompared(ctx context.Context, now Servers) error {
	if err := l.Still(ctx, now); err != nil { // one may have been elected meanwhile
		return err
	}
	return l.onNotes(ctx, func(conn *pgx.Conn) error {
		if err := do(ctx, conn, "wait for the disk", "set synchronous_commit = on", compared); err != nil {
			return err
		}
		return sql.Do(ctx, conn, "note what was compared", `insert into toban_sides.compared
			values ($1, $2, $3, $4, $5, $6)`, l.Name, l.Mark, now.serving.System, now.serving.Timeline,
			now.following.System, now.following.Timeline)
	})
}

// forgetCompared has nothing count as compared.
func (l Link) forgetCompared(ctx context.Context) error {
	return l.onNotes(ctx, func(conn *pgx.Conn) error {
		return do(ctx, conn, "forget what was compared", compared,
			"delete from toban_sides.compared where link = "+sql.Literal(l.Name))
	})
}

// onNotes does something with the notes in the database postgres of the serving side, which are known to be ours.
func (l Link) onNotes(ctx context.Context, do func(*pgx.Conn) error) error {
	_, err := on(ctx, l.Serving, func(conn *pgx.Conn) (struct{}, error) {
		if err := mustOwn(ctx, conn); err != nil {
			return struct{}{}, err
		}
		return struct{}{}, do(conn)
	})
	return err
}

// WasCompared are the servers of both sides, where no row differed between them when all were compared. It is an error
// where they are others now: one may have been elected, or made anew, since. Who hands over asks the servers, and goes
// by nobody else's memory.
func (l Link) WasCompared(ctx context.Context) (was Servers, err error) {
	err = l.onNotes(ctx, func(conn *pgx.Conn) error {
		there, err := sql.Value[bool](ctx, conn, "look for what was compared",
			"select to_regclass('toban_sides.compared') is not null")
		if err != nil || !there {
			return err
		}
		err = conn.QueryRow(ctx, `select serving, serving_timeline, following, following_timeline
			from toban_sides.compared where link = $1 and mark = $2`, l.Name, l.Mark).Scan(&was.serving.System,
			&was.serving.Timeline, &was.following.System, &was.following.Timeline)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		return err
	})
	if err != nil {
		return was, fmt.Errorf("look for what was compared: %w", err)
	}
	if was == (Servers{}) {
		return was, InTheWay{NotCompared, fmt.Sprintf("the rows of %s and %s were not compared since they are linked, "+
			"or the last comparison has not ended without a difference. They are compared anew", l.Serving.Name,
			l.Following.Name)}
	}
	return was, l.Still(ctx, was)
}

// Still says as an error that the servers of both sides are not some any more.
func (l Link) Still(ctx context.Context, were Servers) error {
	now, err := l.servers(ctx)
	if err != nil {
		return err
	}
	if now != were {
		return InTheWay{NotCompared, fmt.Sprintf("other servers were compared: %s (%s) and %s (%s). They are %s and "+
			"%s now, and are compared anew", l.Serving.Name, were.serving, l.Following.Name, were.following,
			now.serving, now.following)}
	}
	return nil
}
