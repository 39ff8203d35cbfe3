package tablerestore

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"toban.dev/internal/postgres/sql"
)

// run is one try.
type run struct {
	*Options
	// copy is a session in the database in the restored server, primary one in that database of the primary, or in the
	// database postgres where it is a database that comes back.
	copy, primary *pgx.Conn
	// guard is a session in the database postgres of the primary. It keeps a second run out.
	guard  *pgx.Conn
	loader *loader
	dump   *dump
	owners owners
	// published says that a publication is FOR ALL TABLES.
	published bool
	// target is the database on the primary into which it is loaded.
	target string
}

// Run brings over what is asked for. It may be called again with the same options, whatever became of the run before.
func Run(ctx context.Context, o Options) (Result, error) {
	r := &run{Options: &o, target: o.Database}
	defer r.close()
	if err := r.check(); err != nil {
		return Result{}, err
	}
	if err := r.open(ctx); err != nil {
		return Result{}, refusal(err)
	}
	r.owners.primary = r.primary
	var err error
	if r.loader, err = r.createLoader(ctx); err != nil {
		return Result{}, refusal(err)
	}
	r.passed("loader")
	r.dump = &dump{Options: r.Options, copy: r.copy, loader: r.loader}
	objects, err := r.bring(ctx)
	// Also after an error, and where it was told to stop: nobody is to have the password of the role.
	clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
	defer cancel()
	if dropped := r.loader.drop(clean); err == nil {
		err = dropped
	}
	return Result{Objects: objects}, refusal(err)
}

// check looks at the options alone.
func (o *Options) check() error {
	switch {
	case !suffixes.MatchString(o.Suffix):
		return refuse("the suffix %q must be of at most 40 characters a-z, 0-9 and _", o.Suffix)
	case len(o.Tables) > 0 && len(o.Schemas) > 0:
		return refuse("tables and schemas can't be restored together: ask for one after the other")
	case o.Database == "":
		return refuse("no database is named")
	}
	return nil
}

// open opens the sessions, and keeps a second run out.
func (r *run) open(ctx context.Context) (err error) {
	if r.copy, err = r.Copy(ctx, "postgres"); err != nil {
		return err
	}
	names, err := column(ctx, r.copy, "select datname::text from pg_database where datallowconn order by 1")
	if err != nil {
		return err
	}
	if !slices.Contains(names, r.Database) {
		return refuse("there was no database %s at that time. There were: %s", r.Database, strings.Join(names, ", "))
	}
	sql.HangUp(r.copy)
	if r.copy, err = r.Copy(ctx, r.Database); err != nil {
		return err
	}
	// Event triggers are for the users of a database, and there are none here.
	if err := do(ctx, r.copy, "prepare the copy", "set session_replication_role = replica"); err != nil {
		return err
	}
	return r.openPrimary(ctx)
}

func (r *run) openPrimary(ctx context.Context) (err error) {
	if r.primary, err = r.Primary(ctx, "postgres"); err != nil {
		return err
	}
	err = r.primary.QueryRow(ctx, "select coalesce((select pg_get_userbyid(datdba)::text from pg_database "+
		"where datname = $1), '')", r.Database).Scan(&r.owners.database)
	if err != nil {
		return fmt.Errorf("look for the database %s: %w", r.Database, err)
	}
	if err := r.lock(ctx); err != nil || r.whole() {
		return err
	}
	if r.owners.database == "" {
		return refuse("the database %s is not there: restore it as a whole, without tables and schemas", r.Database)
	}
	sql.HangUp(r.primary)
	if r.primary, err = r.Primary(ctx, r.Database); err != nil {
		return err
	}
	if err := r.primary.QueryRow(ctx, "select exists (select from pg_publication where puballtables)").
		Scan(&r.published); err != nil {
		return fmt.Errorf("look for publications: %w", err)
	}
	return nil
}

// whole says that the whole database is asked for.
func (o *Options) whole() bool { return len(o.Tables) == 0 && len(o.Schemas) == 0 }

// errBusy is waited out: the other run ends, or its session does.
var errBusy = errors.New("another restore of the same kind is at work")

// lock keeps a second run for this database out. A lock counts in the database in which it is taken: in the one that is
// restored every user could take it before, and nobody could restore. Users may not connect to the database postgres.
func (r *run) lock(ctx context.Context) (err error) {
	const kind = 0x746f6262 // "tobb"
	if r.guard, err = r.Primary(ctx, "postgres"); err != nil {
		return err
	}
	held, err := sql.Value[bool](ctx, r.guard, "lock out other restores",
		"select pg_try_advisory_lock($1, hashtext($2))", int32(kind), r.Database)
	if err != nil {
		return err
	}
	if !held {
		return errBusy
	}
	return nil
}

func (r *run) bring(ctx context.Context) (objects []Object, err error) {
	if err := os.RemoveAll(r.dumpFile()); err != nil {
		return nil, fmt.Errorf("remove a former dump: %w", err)
	}
	if err := os.MkdirAll(r.Folder, 0o700); err != nil {
		return nil, fmt.Errorf("make the folder of the dump: %w", err)
	}
	defer func() { _ = os.Remove(r.dumpFile()) }() // it is on a scratch volume
	switch {
	case len(r.Tables) > 0:
		return r.bringTables(ctx)
	case len(r.Schemas) > 0:
		return r.bringSchemas(ctx)
	}
	return r.bringDatabase(ctx)
}

func (r *run) close() {
	for _, conn := range []*pgx.Conn{r.copy, r.primary, r.guard} {
		if conn != nil {
			sql.HangUp(conn)
		}
	}
}

func (o *Options) step(format string, args ...any) {
	if o.Step != nil {
		o.Step(fmt.Sprintf(format, args...))
	}
}

func (o *Options) passed(point string) {
	if o.At != nil {
		o.At(point)
	}
}

// do runs statements: one transaction where none is open.
func do(ctx context.Context, conn *pgx.Conn, what string, statements ...string) error {
	return sql.Do(ctx, conn, what, strings.Join(statements, ";\n"), pgx.QueryExecModeSimpleProtocol)
}

// column is the first column of what a query finds.
func column(ctx context.Context, conn *pgx.Conn, query string, args ...any) ([]string, error) {
	return sql.Column[string](ctx, conn, "look into the database", query, args...)
}

// final says that an error is PostgreSQL's about what was asked, and not about the connection, about room, a lock that
// is held, or a server that stops (classes 08, 25, 40, 53, 55, 57 and 58 of its error codes).
func final(code string) bool {
	return code != "" && !slices.Contains([]string{"08", "25", "40", "53", "55", "57", "58"}, code[:min(2, len(code))])
}

// refusal tells an error that comes again from one that may not.
func refusal(err error) error {
	if err == nil || errors.Is(err, ErrRefused) || !final(sql.Code(err)) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrRefused, err)
}
