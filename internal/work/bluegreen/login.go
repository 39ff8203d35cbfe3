package bluegreen

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"toban.dev/internal/postgres/sql"
)

// Role is the one that the following side logs in with. It may read changes of all databases, and nothing else.
const Role = "toban_link"

// EnsureRole makes the role of links on a side, without a password if it is not there, and lets it into the databases
// that not everybody may connect to.
func EnsureRole(ctx context.Context, side Side) error {
	conn, err := side.Connect(ctx, "postgres")
	if err != nil {
		return err
	}
	defer sql.HangUp(conn)
	if err := do(ctx, conn, "keep others from being members of "+Role, sql.WithoutMembers); err != nil {
		return err
	}
	there, err := hasRole(ctx, conn)
	if err != nil {
		return err
	}
	if !there {
		if err := do(ctx, conn, "make the role "+Role, "create role "+Role+" login replication noinherit"); err != nil {
			return err
		}
	}
	if err := do(ctx, conn, "keep event triggers at login from "+Role, sql.WithoutTriggers); err != nil {
		return err
	}
	// On a side that lets nobody in transactions only read by default. Whoever follows looks for one that takes writes.
	if err := do(ctx, conn, "let "+Role+" follow a closed side",
		"alter role "+Role+" set default_transaction_read_only = off"); err != nil {
		return err
	}
	closed, err := sql.Column[string](ctx, conn, "ask where "+Role+" may connect",
		`select datname::text from pg_database
		where datallowconn and not datistemplate and datconnlimit <> -2
		and not has_database_privilege($1, oid, 'connect') order by 1`, Role)
	if err != nil {
		return err
	}
	for _, name := range closed {
		if err := do(ctx, conn, "let "+Role+" in", "grant connect on database "+sql.Quote(name)+" to "+
			Role); err != nil {
			return err
		}
	}
	return nil
}

func hasRole(ctx context.Context, conn *pgx.Conn) (there bool, err error) {
	return sql.Value[bool](ctx, conn, "look for the role "+Role,
		"select exists (select from pg_roles where rolname = $1)", Role)
}

// SetPassword gives the role of links on a side a password, by its verifier as a statement has it.
func SetPassword(ctx context.Context, side Side, verifier string) error {
	conn, err := side.Connect(ctx, "postgres")
	if err != nil {
		return err
	}
	defer sql.HangUp(conn)
	return secretly(ctx, conn, "set the password of "+Role, "alter role "+Role+" password "+verifier)
}

// RemoveRole removes the role of links from a side, with its rights.
func RemoveRole(ctx context.Context, side Side) error {
	conn, err := side.Connect(ctx, "postgres")
	if err != nil {
		return err
	}
	defer sql.HangUp(conn)
	there, err := hasRole(ctx, conn)
	if err != nil || !there {
		return err
	}
	return do(ctx, conn, "remove the role "+Role, "drop owned by "+Role, "drop role "+Role)
}

// secretly is do with statements that have a password in them.
func secretly(ctx context.Context, conn *pgx.Conn, what string, statements ...string) error {
	return sql.Secretly(ctx, conn, func() error { return do(ctx, conn, what, statements...) })
}

// Reconnect has the subscriptions that are there connect as Reach of the serving side says.
func (l Link) Reconnect(ctx context.Context) error {
	return each(ctx, l.Following, func(conn *pgx.Conn, d database) error {
		there, err := l.Subscriber().subscribed(ctx, conn)
		if err != nil || !there {
			return err
		}
		return secretly(ctx, conn, "say how to connect",
			fmt.Sprintf("alter subscription %s connection %s", l.Name, sql.Literal(l.Serving.Reach(d.Name))))
	})
}
