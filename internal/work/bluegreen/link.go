package bluegreen

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"

	"toban.dev/internal/postgres/sql"
)

// Side is one of the two, by its primary.
type Side struct {
	// Name is for people.
	Name string
	// Newest is the newer one of the major versions of both sides, 0 where it is not known.
	Newest int
	// Connect opens a superuser's session in a database.
	Connect func(ctx context.Context, database string) (*pgx.Conn, error)
	// Reach is how a server of the other side connects to a database of this one, for libpq.
	Reach func(database string) string
	// Standby opens a superuser's session with the standby that streams under a name. Errors: ErrNoStandby.
	Standby func(ctx context.Context, name string) (*pgx.Conn, error)
}

// Link is logical replication of all databases from the serving side to the following one.
type Link struct {
	Serving, Following Side
	// Name is that of its publications and subscriptions, and the beginning of those of its slots.
	Name string
	// Mark identifies the upgrade.
	Mark string
}

// Publisher is what the serving side has of a link: publications and slots.
type Publisher struct {
	Serving    Side
	Name, Mark string
}

// Publisher is that of the link.
func (l Link) Publisher() Publisher { return Publisher{l.Serving, l.Name, l.Mark} }

// Subscriber is what the following side has of a link: subscriptions.
type Subscriber struct {
	Following Side
	Name      string
}

// Subscriber is that of the link.
func (l Link) Subscriber() Subscriber { return Subscriber{l.Following, l.Name} }

// The names of the links in both directions.
const (
	nameForward = "toban_to_green"
	nameBack    = "toban_to_blue"
)

// Forward has green follow blue.
func Forward(blue, green Side, mark string) Link { return Link{blue, green, nameForward, mark} }

// Back has blue follow green.
func Back(blue, green Side, mark string) Link { return Link{green, blue, nameBack, mark} }

// database is one that is carried, with its number on one side.
type database struct {
	Name string
	OID  uint32
}

// slot is the name of the slot of a database on the serving side.
func (p Publisher) slot(d database) string { return fmt.Sprintf("%s_%d", p.Name, d.OID) }

// databases are those that are carried. A subscription would keep others from copying a template.
func databases(ctx context.Context, side Side) ([]database, error) {
	conn, err := side.Connect(ctx, "postgres")
	if err != nil {
		return nil, err
	}
	defer sql.HangUp(conn)
	rows := sql.Ask(ctx, conn, `select datname::text, oid from pg_database
		where datallowconn and not datistemplate and datconnlimit <> -2 order by 1`)
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[database])
	if err != nil {
		return nil, fmt.Errorf("ask %s for its databases: %w", side.Name, err)
	}
	return all, nil
}

// atOnce is in how many databases something is done at the same time.
const atOnce = 8

// gather calls a function with a session in each database of a side, in several at once, and returns what they return
// in the order of the databases.
func gather[T any](ctx context.Context, side Side, do func(*pgx.Conn, database) (T, error)) ([]T, error) {
	all, err := databases(ctx, side)
	if err != nil {
		return nil, err
	}
	found, failed := make([]T, len(all)), make([]error, len(all))
	var group sync.WaitGroup
	free := make(chan struct{}, atOnce)
	for i, d := range all {
		free <- struct{}{}
		group.Go(func() {
			defer func() { <-free }()
			found[i], failed[i] = in(ctx, side, d, do)
		})
	}
	group.Wait()
	return found, errors.Join(failed...)
}

// in calls a function with a session in a database.
func in[T any](ctx context.Context, side Side, d database, do func(*pgx.Conn, database) (T, error)) (T, error) {
	conn, err := side.Connect(ctx, d.Name)
	if err != nil {
		var none T
		return none, fmt.Errorf("connect to the database %s of %s: %w", d.Name, side.Name, err)
	}
	defer sql.HangUp(conn)
	found, err := do(conn, d)
	if err != nil {
		return found, fmt.Errorf("database %s of %s: %w", d.Name, side.Name, err)
	}
	return found, nil
}

// each calls a function with a session in each database of a side, in several at once.
func each(ctx context.Context, side Side, do func(*pgx.Conn, database) error) error {
	_, err := gather(ctx, side, func(conn *pgx.Conn, d database) (struct{}, error) { return struct{}{}, do(conn, d) })
	return err
}

// on calls a function with a session in the database postgres of a side.
func on[T any](ctx context.Context, side Side, do func(*pgx.Conn) (T, error)) (found T, err error) {
	conn, err := side.Connect(ctx, "postgres")
	if err != nil {
		return found, err
	}
	defer sql.HangUp(conn)
	return do(conn)
}

// doOn runs statements in the database postgres of a side.
func doOn(ctx context.Context, side Side, what string, statements ...string) error {
	_, err := on(ctx, side, func(conn *pgx.Conn) (struct{}, error) {
		return struct{}{}, do(ctx, conn, what, statements...)
	})
	return err
}

// do runs statements, as one message: several are one transaction.
func do(ctx context.Context, conn *pgx.Conn, what string, statements ...string) error {
	if len(statements) == 0 {
		return nil
	}
	return sql.Do(ctx, conn, what, strings.Join(statements, ";\n"), pgx.QueryExecModeSimpleProtocol)
}

// majorOf is the major version of a server.
func majorOf(ctx context.Context, conn *pgx.Conn) (major int, err error) {
	return sql.Value[int](ctx, conn, "ask for the version", "select current_setting('server_version_num')::int / 10000")
}
