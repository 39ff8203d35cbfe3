package tablerestore

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"toban.dev/internal/postgres/scram"
	"toban.dev/internal/postgres/sql"
)

// loader is the role of this run: whatever runs a user's code on the primary runs as it, and it is a member of one
// owner at a time.
type loader struct {
	run            *run
	name, password string
	admin          *pgx.Conn
	major          int
}

// passwordLife is for how long its password opens a session.
const passwordLife = 24 * time.Hour

// createLoader makes the role, after what a run has left that was cut off.
func (r *run) createLoader(ctx context.Context) (*loader, error) {
	var random [24]byte
	_, _ = rand.Read(random[:]) // never fails
	l := &loader{run: r, name: r.loaderName(), password: hex.EncodeToString(random[:]), admin: r.primary}
	if err := r.primary.QueryRow(ctx, "select current_setting('server_version_num')::int / 10000").
		Scan(&l.major); err != nil {
		return nil, fmt.Errorf("ask the primary for its version: %w", err)
	}
	if err := l.drop(ctx); err != nil {
		return nil, err
	}
	verifier, err := scram.Literal(l.password)
	if err != nil {
		return nil, err
	}
	until := time.Now().Add(passwordLife).UTC().Format(time.RFC3339)
	// One message is one transaction: the role is there with its mark, or not at all.
	return l, l.exec(ctx, "make the role of this run", fmt.Sprintf(`
		create role %[1]s login noinherit nosuperuser nocreatedb nocreaterole noreplication nobypassrls
			valid until %[2]s password %[3]s;
		comment on role %[1]s is %[4]s;`,
		sql.Quote(l.name), sql.Literal(until), verifier, sql.Literal(r.comment("", mark{State: stateWork}))))
}

func (l *loader) exec(ctx context.Context, what, statements string) error {
	if _, err := l.admin.Exec(ctx, statements, pgx.QueryExecModeSimpleProtocol); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// drop ends its sessions and removes it, if a run has left it.
func (l *loader) drop(ctx context.Context) error {
	var comment *string
	var there bool
	err := l.admin.QueryRow(ctx, `select count(*) > 0, max(shobj_description(oid, 'pg_authid')) from pg_roles
		where rolname = $1`, l.name).Scan(&there, &comment)
	if err != nil {
		return fmt.Errorf("look for the role %s: %w", l.name, err)
	}
	if !there {
		return nil
	}
	if m, _ := l.run.readMark(comment); m == nil {
		return refuse("the role %s is there and was not made by this restore: rename or drop it", sql.Quote(l.name))
	}
	if err := l.endSessions(ctx); err != nil {
		return err
	}
	owned, err := column(ctx, l.admin, "select datname::text from pg_database where datdba = $1::text::regrole",
		sql.Quote(l.name))
	if err != nil {
		return err
	}
	for _, database := range owned { // one that a run began to make that was cut off
		err := l.exec(ctx, "drop what a former try has left", "drop database "+sql.Quote(database)+" with (force)")
		if err != nil {
			return err
		}
	}
	// What a user's code may have made as this role is nobody's.
	return l.exec(ctx, "drop the role of this restore",
		fmt.Sprintf("drop owned by %[1]s cascade; drop role %[1]s", sql.Quote(l.name)))
}

func (l *loader) endSessions(ctx context.Context) error {
	_, err := l.admin.Exec(ctx, `select pg_terminate_backend(pid, 10000) from pg_stat_activity
		where usename = $1`, l.name)
	if err != nil {
		return fmt.Errorf("end the sessions of a former try: %w", err)
	}
	return nil
}

// become lets the role act as an owner, and as nobody else. No session of it may be open.
func (l *loader) become(ctx context.Context, owner string) (back func(), err error) {
	option := ""
	if l.major >= 16 { // before, members may always SET ROLE
		option = " with inherit false, set true"
	}
	if err := l.exec(ctx, "let the role of this restore act as "+owner,
		"grant "+sql.Quote(owner)+" to "+sql.Quote(l.name)+option); err != nil {
		return nil, err
	}
	return func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 20*time.Second)
		defer cancel()
		// What can't be taken back here is by drop, with the role.
		_ = l.endSessions(ctx)
		_, _ = l.admin.Exec(ctx, "revoke "+sql.Quote(owner)+" from "+sql.Quote(l.name))
	}, nil
}

// admit lets the role into a database where not everybody may connect.
func (l *loader) admit(ctx context.Context, database string) error {
	var may bool
	if err := l.admin.QueryRow(ctx, "select has_database_privilege($1, $2, 'connect')", l.name, database).
		Scan(&may); err != nil {
		return fmt.Errorf("see whether all may connect to %s: %w", database, err)
	}
	if may {
		return nil
	}
	return l.exec(ctx, "let the role of this restore connect",
		"grant connect on database "+sql.Quote(database)+" to "+sql.Quote(l.name))
}

// connect opens a session as an owner in a database of the primary.
func (l *loader) connect(ctx context.Context, database, owner string) (*pgx.Conn, error) {
	config := l.admin.Config().Copy()
	config.Database, config.User, config.Password = database, l.name, l.password
	config.RuntimeParams = sql.Settings(l.name, map[string]string{
		"role": owner, "application_name": "toban restore", "lock_timeout": "0",
	})
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("connect to the primary as the role of this restore: %w", err)
	}
	return conn, nil
}
