package maintenance

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"toban.dev/internal/postgres/sql"
)

// Version is the version of a sort order: the one that is on record, and the one that the library has now. Each is ""
// for none.
type Version struct {
	Database string `json:"database"`
	// Collation is "" for the default of the database.
	Collation string `json:"collation,omitempty"`
	Recorded  string `json:"recorded,omitempty"`
	Actual    string `json:"actual,omitempty"`
}

// String is for people.
func (v Version) String() string {
	what := "database " + v.Database
	if v.Collation != "" {
		what = fmt.Sprintf("collation %s of database %s", v.Collation, v.Database)
	}
	words := func(version string) string {
		if version == "" {
			return "no version"
		}
		return version
	}
	return fmt.Sprintf("%s (%s on record, %s now)", what, words(v.Recorded), words(v.Actual))
}

// collation is one of a database that has a version, or had one. Only its library's order may change: "C", "POSIX" and
// what PostgreSQL has built in have none.
type collation struct {
	oid              uint32
	schema, name     string
	recorded, actual *string
	// used says that an index depends on it.
	used bool
	// kept says that an index of it could not be rebuilt.
	kept bool
}

// defaultCollation is the oid of the database's own.
const defaultCollation = 100

// stale says that the recorded version is not the actual one.
func (c *collation) stale() bool { return text(c.recorded) != text(c.actual) }

// unrecorded says that no version is on record, so that it is not known in which order its indexes are.
func (c *collation) unrecorded() bool { return c.recorded == nil && c.actual != nil }

func text(version *string) string {
	if version == nil {
		return ""
	}
	return *version
}

// version is the collation as a report has it.
func (c *collation) version(database string) Version {
	v := Version{Database: database, Recorded: text(c.recorded), Actual: text(c.actual)}
	if c.oid != defaultCollation {
		v.Collation = c.schema + "." + c.name
	}
	return v
}

// versioned are the collations of a database of which the version is known or was. Those of other encodings can't be
// used in it.
const versioned = `
	select 100::oid, '', '', datcollversion, pg_database_collation_actual_version(oid)
	from pg_database where datname = current_database() and datlocprovider <> 'b'
	union all
	select c.oid, n.nspname::text, c.collname::text, c.collversion, pg_collation_actual_version(c.oid)
	from pg_collation c join pg_namespace n on n.oid = c.collnamespace
	where c.collprovider in ('c', 'i') and c.collencoding in (-1, pg_char_to_encoding(getdatabaseencoding()))`

// readCollations reads them, by their oid.
func readCollations(ctx context.Context, conn *pgx.Conn) (map[uint32]*collation, error) {
	rows := sql.Ask(ctx, conn, "select * from ("+versioned+") v (oid, schema, name, recorded, actual) "+
		"where recorded is not null or actual is not null")
	all := map[uint32]*collation{}
	var c collation
	_, err := pgx.ForEachRow(rows, []any{&c.oid, &c.schema, &c.name, &c.recorded, &c.actual}, func() error {
		one := c
		all[c.oid] = &one
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the versions of the collations: %w", err)
	}
	return all, nil
}

// refresh puts the actual version on record. ALTER … REFRESH VERSION can't where one of the two is none.
func (c *collation) refresh(ctx context.Context, conn *pgx.Conn, database string) error {
	var err error
	switch plain := c.recorded != nil && c.actual != nil; {
	case c.oid == defaultCollation && plain:
		_, err = conn.Exec(ctx, "alter database "+sql.Quote(database)+" refresh collation version")
	case c.oid == defaultCollation:
		_, err = conn.Exec(ctx, `update pg_database set datcollversion = pg_database_collation_actual_version(oid)
			where datname = current_database()`)
	case plain:
		_, err = conn.Exec(ctx, "alter collation "+sql.Quote(c.schema, c.name)+" refresh version")
	default:
		_, err = conn.Exec(ctx,
			"update pg_collation set collversion = pg_collation_actual_version(oid) where oid = $1", c.oid)
	}
	if err != nil {
		return fmt.Errorf("put the version of %s on record: %w", c.version(database), err)
	}
	return nil
}

// index is one that depends on collations that have versions.
type index struct {
	database                   string
	oid, filenode              uint32
	schema, table, name        string
	primary, unique, exclusion bool
	btree                      bool
	size                       int64
	collations                 []uint32
	// columns are those of its key, or the expressions.
	columns string
	// versions identify the actual versions of its collations.
	versions string
}

// dependent are the indexes with the collations that their order depends on: those of their columns; of what their
// expressions and predicates compare, which pg_depend does not have where they are PostgreSQL's own; and those inside
// of the columns' types, which are ranges, arrays, domains and composites. A btree compares the texts in jsonb by the
// database's collation. System catalogs sort by "C", and temporary tables end with their sessions.
const dependent = `
with recursive candidate as (
	select i.*, ic.relname, ic.relfilenode, n.nspname, tc.relname as tablename, am.amname
	from pg_index i join pg_class ic on ic.oid = i.indexrelid join pg_am am on am.oid = ic.relam
	join pg_class tc on tc.oid = i.indrelid join pg_namespace n on n.oid = tc.relnamespace
	where ic.relkind = 'i' and ic.relpersistence <> 't' and n.nspname not in ('pg_catalog', 'pg_toast')
		and (i.indisvalid or ic.relname !~ '_cc(new|old)\d*$')
), typed (root, type) as (
	select distinct a.atttypid, a.atttypid from pg_attribute a join candidate c on a.attrelid = c.indexrelid
	union
	select t.root, next.type from typed t join pg_type ty on ty.oid = t.type cross join lateral (
		select ty.typbasetype where ty.typtype = 'd'
		union all select ty.typelem where ty.typcategory = 'A'
		union all select r.rngsubtype from pg_range r where ty.oid in (r.rngtypid, r.rngmultitypid)
		union all select a.atttypid from pg_attribute a
			where a.attrelid = ty.typrelid and ty.typtype = 'c' and a.attnum > 0 and not a.attisdropped
	) next (type)
), inside (root, coll, btree) as (
	select t.root, r.rngcollation, false from typed t join pg_range r on t.type in (r.rngtypid, r.rngmultitypid)
	union select t.root, a.attcollation, false from typed t join pg_type ty on ty.oid = t.type
		join pg_attribute a on a.attrelid = ty.typrelid and ty.typtype = 'c' and a.attnum > 0 and not a.attisdropped
	union select t.root, 100::oid, true from typed t where t.type = 'jsonb'::regtype
), depends (indexrelid, coll) as (
	select indexrelid, unnest(indcollation::oid[]) from candidate
	union select indexrelid, (regexp_matches(concat(indexprs, ' ', indpred), ':inputcollid (\d+)', 'g'))[1]::oid
		from candidate
	union select indexrelid, one::oid from candidate,
		regexp_matches(concat(indexprs, ' ', indpred), ':inputcollids \(o ([\d ]+)\)', 'g') many,
		string_to_table(many[1], ' ') one
	union select d.objid, d.refobjid from pg_depend d join candidate c on c.indexrelid = d.objid
		where d.classid = 'pg_class'::regclass and d.refclassid = 'pg_collation'::regclass
	union select c.indexrelid, inside.coll from candidate c join pg_attribute a on a.attrelid = c.indexrelid
		join inside on inside.root = a.atttypid and (not inside.btree or c.amname = 'btree')
)
select c.indexrelid, c.relfilenode, c.nspname::text, c.tablename::text, c.relname::text,
	c.indisprimary, c.indisunique, c.indisexclusion, c.amname = 'btree', pg_relation_size(c.indexrelid),
	array_agg(d.coll order by d.coll),
	(select string_agg(pg_get_indexdef(c.indexrelid, k, false), ', ' order by k)
		from generate_series(1, c.indnkeyatts) k)
from candidate c join depends d using (indexrelid) where d.coll = any ($1)
group by c.indexrelid, c.relfilenode, c.nspname, c.tablename, c.relname, c.indisprimary, c.indisunique,
	c.indisexclusion, c.amname, c.indnkeyatts`

// readIndexes reads the indexes that depend on collations.
func readIndexes(
	ctx context.Context, conn *pgx.Conn, database string, all map[uint32]*collation,
) (out []index, err error) {
	oids := make([]uint32, 0, len(all))
	for oid := range all {
		oids = append(oids, oid)
	}
	rows := sql.Ask(ctx, conn, dependent, oids)
	var i index
	_, err = pgx.ForEachRow(rows, []any{&i.oid, &i.filenode, &i.schema, &i.table, &i.name, &i.primary, &i.unique,
		&i.exclusion, &i.btree, &i.size, &i.collations, &i.columns}, func() error {
		one := i
		one.database, one.collations = database, slices.Clone(i.collations)
		var versions []string
		for _, oid := range one.collations {
			all[oid].used = true
			versions = append(versions, fmt.Sprintf("%d=%s", oid, text(all[oid].actual)))
		}
		one.versions = strings.Join(versions, " ")
		out = append(out, one)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list the indexes of database %s: %w", database, err)
	}
	return out, nil
}

// partitioned are the tables whose rows are in partitions by the order of texts: rows may be in a wrong one.
const partitioned = `select p.partrelid::regclass::text from pg_partitioned_table p
	where p.partstrat = 'r' and (p.partcollation::oid[] && $1 or exists (
		select from regexp_matches(p.partexprs::text, ':inputcollid (\d+)', 'g') m where m[1]::oid = any ($1)))
	order by 1`

func readPartitioned(ctx context.Context, conn *pgx.Conn, stale []uint32) ([]string, error) {
	return sql.Column[string](ctx, conn, "list the partitioned tables", partitioned, stale)
}
