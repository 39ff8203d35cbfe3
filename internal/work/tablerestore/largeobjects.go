package tablerestore

import (
	"bytes"
	"context"
	"fmt"
	"strconv"

	"github.com/jackc/pgx/v5"

	"toban.dev/internal/postgres/sql"
)

// largeObjects are those that the rows of restored tables name: pg_dump takes them along with a whole database only, so
// the rows would name nothing, or what is there now.
type largeObjects struct {
	// named is how many there are in the copy, gone how many of them the primary does not have.
	named, gone int
}

// copyThem says how they come back.
const copyThem = "Restore the whole database beside (without tables and schemas), and copy them by lo_get and " +
	"lo_from_bytea"

// verdict is what is to be said of them, or why rows that name what is gone don't take the place of others.
func (l largeObjects) verdict(of string, replace bool) (says string, err error) {
	switch {
	case l.named == 0:
		return "", nil
	case l.gone > 0 && replace:
		return "", refuse("rows of %s name %d large objects by their OIDs, and %d of them are not there any more. "+
			"Large objects come back with a whole database only. Nothing is replaced. %s, each with its OID; then try "+
			"again", of, l.named, l.gone, copyThem)
	}
	return fmt.Sprintf("Its rows name %d large objects by their OIDs, which are not restored: %d of them are not "+
		"there any more, and the others are as they are now. %s.", l.named, l.gone, copyThem), nil
}

// checkLargeObjects says which large objects the rows of tables of the copy name, before anything is loaded.
func (r *run) checkLargeObjects(ctx context.Context, tables []uint32, of string, object *Object) error {
	found, err := findLargeObjects(ctx, r.copy, r.primary, tables)
	if err != nil {
		return fmt.Errorf("look for the large objects of %s: %w", of, err)
	}
	says, err := found.verdict(of, r.Replace)
	if says != "" {
		object.say("%s", says)
	}
	return err
}

// checkLargeObjects is the same of all tables of a schema.
func (s *schema) checkLargeObjects(ctx context.Context) error {
	tables, err := sql.Column[uint32](ctx, s.run.copy, "look for the tables of schema "+s.name, `select c.oid
		from pg_class c join pg_namespace n on n.oid = c.relnamespace where n.nspname in ($1, $2)`, s.name, s.as)
	if err != nil {
		return err
	}
	return s.run.checkLargeObjects(ctx, tables, "schema "+s.name, &s.object)
}

// oidColumns are the columns of tables that are OIDs, or of a domain of them, as lo of the extension is.
const oidColumns = `
	with recursive oids as (
		select 26::oid as type
		union select t.oid from pg_type t join oids on t.typbasetype = oids.type where t.typtype = 'd'
	)
	select n.nspname::text, c.relname::text, a.attname::text
	from pg_class c join pg_namespace n on n.oid = c.relnamespace join pg_attribute a on a.attrelid = c.oid
	where c.oid = any ($1) and c.relkind = 'r' and a.attnum > 0 and not a.attisdropped and a.attgenerated = ''
		and a.atttypid in (select type from oids) order by 1, 2, 3`

// findLargeObjects finds which large objects of a copy the rows of its tables name, and which of them a primary has.
func findLargeObjects(
	ctx context.Context, restored, primary *pgx.Conn, tables []uint32,
) (found largeObjects, err error) {
	there, err := largeObjectsOf(ctx, restored)
	if err != nil || len(there) == 0 {
		return found, err
	}
	type place struct{ Schema, Table, Column string }
	columns, err := pgx.CollectRows(sql.Ask(ctx, restored, oidColumns, tables), pgx.RowToStructByPos[place])
	if err != nil || len(columns) == 0 {
		return found, err
	}
	named := &namedOIDs{among: there, seen: map[uint32]bool{}}
	for _, c := range columns {
		// COPY of a table plans no query, so nobody's code runs (doc.go).
		if _, err := restored.PgConn().CopyTo(ctx, named,
			"copy "+sql.Quote(c.Schema, c.Table)+" ("+sql.Quote(c.Column)+") to stdout"); err != nil {
			return found, err
		}
	}
	if found.named = len(named.seen); found.named == 0 {
		return found, nil
	}
	present, err := largeObjectsOf(ctx, primary)
	for oid := range named.seen {
		if !present[oid] {
			found.gone++
		}
	}
	return found, err
}

func largeObjectsOf(ctx context.Context, conn *pgx.Conn) (map[uint32]bool, error) {
	all, err := sql.Column[uint32](ctx, conn, "list the large objects", "select oid from pg_largeobject_metadata")
	out := make(map[uint32]bool, len(all))
	for _, oid := range all {
		out[oid] = true
	}
	return out, err
}

// namedOIDs takes the lines of COPY of a column of OIDs, and keeps those of large objects.
type namedOIDs struct {
	among, seen map[uint32]bool
	rest        []byte
}

func (n *namedOIDs) Write(text []byte) (int, error) {
	n.rest = append(n.rest, text...)
	for {
		line, rest, whole := bytes.Cut(n.rest, []byte("\n"))
		if !whole {
			return len(text), nil
		}
		if oid, err := strconv.ParseUint(string(line), 10, 32); err == nil && n.among[uint32(oid)] { // else it is \N
			n.seen[uint32(oid)] = true
		}
		n.rest = rest
	}
}
