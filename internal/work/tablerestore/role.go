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

// loader makes the roles of this run. Whatever runs a user's code on the primary runs as one of them, and each is a
// member of one owner, once: that code has its session, and so can give it another password, by which others get more
// sessions of it. None of them is to be that of another owner later.
type loader struct {
	run *run
	// name is that of a role that nobody can log in as, made that of the last that somebody can.
	name  string
	made  int
	admin *pgx.Conn
	major int
}

// actor is a role that acts as an owner.
type actor struct {
	loader                *loader
	name, password, owner string
}

// passwordLife is for how long its password opens a session.
const passwordLife = 24 * time.Hour

// createLoader makes the role of the run, after what a run has left that was cut off.
func (r *run) createLoader(ctx context.Context) (*loader, error) {
	l := &loader{run: r, name: r.loaderName(), admin: r.primary}
	if err := r.primary.QueryRow(ctx, "select current_setting('server_version_num')::int / 10000").
		Scan(&l.major); err != nil {
		return nil, fmt.Errorf("ask the primary for its version: %w", err)
	}
	if err := l.drop(ctx); err != nil {
		return nil, err
	}
	return l, l.create(ctx, l.name, "nologin")
}

// create makes a role. One message is one transaction: it is there with its mark, or not at all.
func (l *loader) create(ctx context.Context, name, login string) error {
	return sql.Secretly(ctx, l.admin, func() error { // login may have a password
		return l.exec(ctx, "make a role of this run", fmt.Sprintf(`
			create role %[1]s noinherit nosuperuser nocreatedb nocreaterole noreplication nobypassrls %[2]s;
			comment on role %[1]s is %[3]s;`,
			sql.Quote(name), login, sql.Literal(l.run.comment("", mark{State: stateWork}))))
	})
}

func (l *loader) exec(ctx context.Context, what, statements string) error {
	return sql.Do(ctx, l.admin, what, statements, pgx.QueryExecModeSimpleProtocol)
}

// names are those of the roles of this restore that are there.
func (l *loader) names(ctx context.Context) ([]string, error) {
	return column(ctx, l.admin, `select rolname::text from pg_roles where rolname = $1 or rolname ~ $2 order by 1`,
		l.name, "^"+l.run.actorName()+"_[0-9]+$")
}

// dropOwned drops what the roles have in the database of a session: what a user's code has made as one of them.
func (l *loader) dropOwned(ctx context.Context, conn *pgx.Conn) error {
	names, err := l.names(ctx)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := do(ctx, conn, "drop what is a role's of this restore",
			"drop owned by "+sql.Quote(name)+" cascade"); err != nil {
			return err
		}
	}
	return nil
}

// drop ends the sessions of all roles of this restore, and removes them, also those that a run has left.
func (l *loader) drop(ctx context.Context) error {
	names, err := l.names(ctx)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := l.dropRole(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

func (l *loader) dropRole(ctx context.Context, name string) error {
	var comment *string
	var there bool
	err := l.admin.QueryRow(ctx, `select count(*) > 0, max(shobj_description(oid, 'pg_authid')) from pg_roles
		where rolname = $1`, name).Scan(&there, &comment)
	if err != nil {
		return fmt.Errorf("look for the role %s: %w", name, err)
	}
	if !there {
		return nil
	}
	if m, _ := l.run.readMark(comment); m == nil {
		return refuse("the role %s is there and was not made by this restore: rename or drop it", sql.Quote(name))
	}
	if err := l.endSessions(ctx, name); err != nil {
		return err
	}
	owned, err := column(ctx, l.admin, "select datname::text from pg_database where datdba = $1::text::regrole",
		sql.Quote(name))
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
	return l.exec(ctx, "drop a role of this restore",
		fmt.Sprintf("drop owned by %[1]s cascade; drop role %[1]s", sql.Quote(name)))
}

func (l *loader) endSessions(ctx context.Context, name string) error {
	return sql.Do(ctx, l.admin, "end the sessions of a former try",
		`select pg_terminate_backend(pid, 10000) from pg_stat_activity
		where usename = $1`, name)
}

// become makes a role that acts as an owner in a database, and as nobody else.
func (l *loader) become(ctx context.Context, owner, database string) (a *actor, back func(), err error) {
	var random [24]byte
	_, _ = rand.Read(random[:]) // never fails
	l.made++
	a = &actor{l, fmt.Sprintf("%s_%d", l.run.actorName(), l.made), hex.EncodeToString(random[:]), owner}
	verifier, err := scram.Literal(a.password)
	if err != nil {
		return nil, nil, err
	}
	until := time.Now().Add(passwordLife).UTC().Format(time.RFC3339)
	if err := l.create(ctx, a.name, "login valid until "+sql.Literal(until)+" password "+verifier); err != nil {
		return nil, nil, err
	}
	option := ""
	if l.major >= 16 { // before, members may always SET ROLE
		option = " with inherit false, set true"
	}
	if err := l.exec(ctx, "let a role of this restore act as "+owner,
		"grant "+sql.Quote(owner)+" to "+sql.Quote(a.name)+option); err != nil {
		return nil, nil, err
	}
	if err := a.admit(ctx, database); err != nil {
		return nil, nil, err // drop takes it back, later
	}
	return a, func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 20*time.Second)
		defer cancel()
		// What can't be taken back here is by drop, later.
		_, _ = l.admin.Exec(ctx, "revoke "+sql.Quote(owner)+" from "+sql.Quote(a.name))
		_ = l.dropRole(ctx, a.name)
	}, nil
}

// session opens one as an owner in a database, of a role that has some rights besides.
func (l *loader) session(
	ctx context.Context, owner, database string, rights ...string,
) (conn *pgx.Conn, end func(), err error) {
	a, back, err := l.become(ctx, owner, database)
	if err != nil {
		return nil, nil, err
	}
	for _, right := range rights {
		if err := l.exec(ctx, "give a role of this restore a right",
			"grant "+right+" to "+sql.Quote(a.name)); err != nil {
			back()
			return nil, nil, err
		}
	}
	if conn, err = a.connect(ctx, database); err != nil {
		back()
		return nil, nil, err
	}
	return conn, func() { sql.HangUp(conn); back() }, nil
}

// admit lets the role into a database where not everybody may connect.
func (a *actor) admit(ctx context.Context, database string) error {
	may, err := sql.Value[bool](ctx, a.loader.admin, "see whether all may connect to "+database,
		"select has_database_privilege($1, $2, 'connect')", a.name, database)
	if err != nil {
		return err
	}
	if may {
		return nil
	}
	return a.loader.exec(ctx, "let a role of this restore connect",
		"grant connect on database "+sql.Quote(database)+" to "+sql.Quote(a.name))
}

// connect opens a session as the owner in a database of the primary.
func (a *actor) connect(ctx context.Context, database string) (*pgx.Conn, error) {
	config := a.loader.admin.Config().Copy()
	config.Database, config.User, config.Password = database, a.name, a.password
	config.RuntimeParams = sql.Settings(a.name, map[string]string{
		"role": a.owner, "application_name": "toban restore", "lock_timeout": "0",
	})
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("connect to the primary as a role of this restore: %w", err)
	}
	return conn, nil
}
