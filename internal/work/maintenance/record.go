package maintenance

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"toban.dev/internal/postgres/sql"
)

// The work is noted in the database postgres, where applications may not create anything, and only while it is not
// complete. An index that is rebuilt is noted with its file and with the versions that it was built with: a server that
// goes back to its former library finds it out of order then. A table is noted with the stage that its statistics have.
const makeRecord = `
create schema if not exists toban;
create table if not exists toban.rebuilt (
	database oid, index oid, filenode oid, versions text not null, primary key (database, index)
);
create table if not exists toban.analyzed (
	database oid, relation oid, stage int not null, primary key (database, relation)
);`

// errForeign is where somebody else has made the schema.
var errForeign = errors.New("the schema toban of the database postgres does not belong to the role postgres: " +
	"rename it, or give it to the role postgres")

// record is what was done.
type record struct {
	conn *pgx.Conn
	// rebuilt are the indexes that were rebuilt, by database and oid.
	rebuilt map[[2]uint32]built
}

// built is how an index was rebuilt.
type built struct {
	filenode uint32
	versions string
}

// openRecord makes the tables where they are missing.
func openRecord(ctx context.Context, conn *pgx.Conn) (*record, error) {
	r := &record{conn: conn}
	if ours, err := r.ours(ctx); err != nil || ours == foreign {
		return nil, errors.Join(err, errForeign)
	}
	if _, err := conn.Exec(ctx, makeRecord, pgx.QueryExecModeSimpleProtocol); err != nil {
		return nil, fmt.Errorf("make the tables in which the work is noted: %w", err)
	}
	return r, r.read(ctx)
}

// lookAtRecord reads them where they are there.
func lookAtRecord(ctx context.Context, conn *pgx.Conn) (*record, error) {
	r := &record{conn: conn}
	ours, err := r.ours(ctx)
	if err != nil || ours != own {
		return r, err
	}
	return r, r.read(ctx)
}

// owner says whose the schema of the record is.
type owner int

const (
	nobody owner = iota
	own
	foreign
)

func (r *record) ours(ctx context.Context) (owner, error) {
	var there, complete, ours bool
	err := r.conn.QueryRow(ctx, `select count(*) > 0, to_regclass('toban.rebuilt') is not null,
		coalesce(bool_and(pg_get_userbyid(nspowner) = current_user), false)
		from pg_namespace where nspname = 'toban'`).Scan(&there, &complete, &ours)
	switch {
	case err != nil:
		return nobody, fmt.Errorf("look what was done: %w", err)
	case there && !ours:
		return foreign, nil
	case complete:
		return own, nil
	}
	return nobody, nil
}

func (r *record) read(ctx context.Context) error {
	rows := sql.Ask(ctx, r.conn, "select database, index, filenode, versions from toban.rebuilt")
	r.rebuilt = map[[2]uint32]built{}
	var database, index uint32
	var b built
	_, err := pgx.ForEachRow(rows, []any{&database, &index, &b.filenode, &b.versions}, func() error {
		r.rebuilt[[2]uint32{database, index}] = b
		return nil
	})
	if err != nil {
		return fmt.Errorf("read what was done: %w", err)
	}
	return nil
}

// note notes an index that was rebuilt.
func (r *record) note(ctx context.Context, database, oid, filenode uint32, versions string) error {
	_, err := r.conn.Exec(ctx, `insert into toban.rebuilt values ($1, $2, $3, $4)
		on conflict (database, index) do update set filenode = $3, versions = $4`, database, oid, filenode, versions)
	if err != nil {
		return fmt.Errorf("note that an index is rebuilt: %w", err)
	}
	r.rebuilt[[2]uint32{database, oid}] = built{filenode, versions}
	return nil
}

// forget forgets what was noted of a database whose versions are on record, and of those that are gone.
func (r *record) forget(ctx context.Context, database uint32) error {
	for _, table := range []string{"rebuilt", "analyzed"} {
		if database == 0 {
			_, err := r.conn.Exec(ctx, "delete from toban."+table+
				" where not exists (select from pg_database d where d.oid = database)")
			if err != nil {
				return fmt.Errorf("forget the databases that are gone: %w", err)
			}
			continue
		}
		if table == "analyzed" {
			continue
		}
		if _, err := r.conn.Exec(ctx, "delete from toban.rebuilt where database = $1", database); err != nil {
			return fmt.Errorf("forget what was done: %w", err)
		}
	}
	return nil
}
