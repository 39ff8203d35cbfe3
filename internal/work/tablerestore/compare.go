package tablerestore

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"toban.dev/internal/postgres/sql"
)

// col is a column of a table.
type col struct {
	Name, Type string
	NotNull    bool
	Default    bool
	// Generated says that its value is computed.
	Generated bool
	// Key says that it is of the primary key; Plain that its type's own equality is PostgreSQL's.
	Key, Plain bool
}

const columns = `
	select a.attname::text, format_type(a.atttypid, a.atttypmod), a.attnotnull,
		a.atthasdef or a.attidentity <> '' or t.typdefault is not null, a.attgenerated <> '',
		exists (select from pg_index i where i.indrelid = a.attrelid and i.indisprimary and a.attnum = any (i.indkey)),
		a.atttypid = any ('{bool,int2,int4,int8,numeric,text,varchar,bpchar,name,oid,uuid,bytea,date,time,timestamp,
			timestamptz}'::regtype[])
	from pg_attribute a join pg_type t on t.oid = a.atttypid
	where a.attrelid = $1 and a.attnum > 0 and not a.attisdropped order by a.attnum`

func columnsOf(ctx context.Context, conn *pgx.Conn, oid uint32) ([]col, error) {
	out, err := pgx.CollectRows(sql.Ask(ctx, conn, columns, oid), pgx.RowToStructByPos[col])
	if err != nil {
		return nil, fmt.Errorf("look for the columns: %w", err)
	}
	return out, nil
}

// notAllowed is PostgreSQL's code of what a role may not do.
const notAllowed = "42501"

// oidOf is the oid of a table of the primary.
func (r *run) oidOf(ctx context.Context, name relation) (oid uint32, err error) {
	return sql.Value[uint32](ctx, r.primary, "look for "+name.String(),
		`select c.oid from pg_class c join pg_namespace n on n.oid = c.relnamespace
		where n.nspname = $1 and c.relname = $2`, name.Schema, name.Name)
}

// count counts the rows of what has been loaded, in one snapshot with what follows. It does so as the owner: an index
// or a constraint of his may have code of his.
func (t *table) count(ctx context.Context) (conn *pgx.Conn, end func(), err error) {
	conn, end, err = t.run.loader.session(ctx, t.owner, t.run.target)
	if err != nil {
		return nil, nil, err
	}
	if err = do(ctx, conn, "begin to compare", "begin isolation level repeatable read",
		"set local row_security = off"); err == nil {
		err = conn.QueryRow(ctx, "select count(*) from "+t.loaded.sql()).Scan(&t.object.Rows)
	}
	if err != nil {
		end()
		return nil, nil, fmt.Errorf("count the rows of %s: %w", t, err)
	}
	return conn, end, nil
}

// isForced says that row level security holds for the owner of what has been loaded, too.
func (t *table) isForced(ctx context.Context) (bool, error) {
	oid, err := t.run.oidOf(ctx, t.loaded)
	if err != nil {
		return false, err
	}
	return sql.Value[bool](ctx, t.run.primary, "look for forced row level security",
		"select relrowsecurity and relforcerowsecurity from pg_catalog.pg_class where oid = $1", oid)
}

// compare counts the rows of what has been loaded, and compares them with those of the present table.
func (t *table) compare(ctx context.Context) error {
	loaded := t.loaded
	conn, end, err := t.count(ctx)
	if sql.Code(err) == notAllowed {
		if forced, err := t.isForced(ctx); err != nil || forced { // the rows came along all the same
			t.uncounted = true
			t.say("It is not counted: row level security is forced upon its owner.")
			return err
		}
	}
	if err != nil {
		return err
	}
	defer end()
	if reason := t.incomparable(); reason != "" || t.present == nil {
		t.say("%s", reason)
		return nil
	}
	oid, err := t.run.oidOf(ctx, loaded)
	if err != nil {
		return err
	}
	restored, err := columnsOf(ctx, t.run.primary, oid)
	if err != nil {
		return err
	}
	present, err := columnsOf(ctx, t.run.primary, t.present.oid)
	if err != nil {
		return err
	}
	query, words := comparison(loaded, t.relation, restored, present)
	if query == "" {
		t.say("It is not compared: it has no column in common with the present table.")
		return nil
	}
	o := &t.object
	err = conn.QueryRow(ctx, query).Scan(&o.Rows, &o.Present, &o.OnlyPresent, &o.OnlyRestored, &o.Different)
	switch {
	case final(sql.Code(err)):
		t.say("It is not compared: %s.", sql.Explain(err, sql.ShownMessage))
	case err != nil:
		return fmt.Errorf("compare %s: %w", t, err)
	default:
		o.Compared = true
		t.say("%s", words)
	}
	return nil
}

// incomparable is why a table can't be compared with the present one, "" if it can.
func (t *table) incomparable() string {
	switch {
	case t.present == nil:
		return ""
	case t.present.kind != "r" && t.present.kind != "p":
		return "It is not compared: what has its name now is no table."
	case t.present.owner != t.owner:
		return fmt.Sprintf("It is not compared: the present table belongs to %s, and the restored one to %s.",
			t.present.owner, t.owner)
	}
	return ""
}

// comparison is the query that compares: by the primary key if both have the same, else by whole rows. Values are
// compared as PostgreSQL writes them, which every type has, and by two hashes of 64 bits, which needs no more room.
func comparison(loaded, name relation, restored, present []col) (query, words string) {
	var all, left []string
	for _, c := range restored {
		if slices.ContainsFunc(present, func(p col) bool { return p.Name == c.Name }) {
			all = append(all, "x."+sql.Quote(c.Name))
		} else {
			left = append(left, c.Name)
		}
	}
	for _, p := range present {
		if !slices.ContainsFunc(restored, func(c col) bool { return p.Name == c.Name }) {
			left = append(left, p.Name)
		}
	}
	if len(all) == 0 {
		return "", ""
	}
	if len(left) > 0 {
		words = "Only one of the tables has " + strings.Join(left, ", ") + ": that is not compared."
	}
	key, typed := keyOf(restored, present)
	if len(key) == 0 {
		words += " Without the same primary key whole rows are compared."
		return byRows(loaded, name, all), strings.TrimSpace(words)
	}
	var keys, on []string
	for i, k := range key {
		expression := "x." + sql.Quote(k)
		if !typed[i] {
			expression = "row(" + expression + ")::text"
		}
		keys = append(keys, fmt.Sprintf("%s as k%d", expression, i))
		on = append(on, fmt.Sprintf("r.k%[1]d = p.k%[1]d", i))
	}
	side := func(from relation) string {
		return fmt.Sprintf("(select *, hashtextextended(v, 0) as a, hashtextextended(v, 1) as b, true as there from "+
			`(select %s, row(%s)::text collate "C" as v from %s x offset 0) y)`,
			strings.Join(keys, ", "), strings.Join(all, ", "), from.sql())
	}
	return fmt.Sprintf(`select count(r.there), count(p.there), count(*) filter (where r.there is null),
			count(*) filter (where p.there is null),
			count(*) filter (where r.there and p.there and (r.a <> p.a or r.b <> p.b))
		from %s r full join %s p on %s`, side(loaded), side(name), strings.Join(on, " and ")), words
}

// keyOf are the columns of the primary key if both tables have the same, and whether their own equality counts.
func keyOf(restored, present []col) (key []string, typed []bool) {
	same := func(a, b []col) bool {
		for _, c := range a {
			if c.Key && !slices.ContainsFunc(b, func(o col) bool {
				return o.Name == c.Name && o.Key && o.Type == c.Type
			}) {
				return false
			}
		}
		return true
	}
	if !same(restored, present) || !same(present, restored) {
		return nil, nil
	}
	for _, c := range restored {
		if c.Key {
			key, typed = append(key, c.Name), append(typed, c.Plain)
		}
	}
	return key, typed
}

// byRows counts how often each row is in each of the tables, as EXCEPT ALL does.
func byRows(loaded, name relation, all []string) string {
	side := func(from relation, r, p int) string {
		return fmt.Sprintf(`select hashtextextended(v, 0) as a, hashtextextended(v, 1) as b, %d as r, %d as p from
			(select row(%s)::text collate "C" as v from %s x offset 0) y`, r, p, strings.Join(all, ", "), from.sql())
	}
	return fmt.Sprintf(`select coalesce(sum(r), 0)::bigint, coalesce(sum(p), 0)::bigint,
			coalesce(sum(greatest(p - r, 0)), 0)::bigint, coalesce(sum(greatest(r - p, 0)), 0)::bigint, 0::bigint
		from (select sum(r) as r, sum(p) as p from (%s union all %s) z group by a, b) g`,
		side(loaded, 1, 0), side(name, 0, 1))
}
