package tablerestore

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"toban.dev/internal/postgres/sql"
)

// mostNamed bounds how many relations are named.
const mostNamed = 10

// onlyThere are the relations of the present schema that the restored one lacks, but for what is there with others: the
// partitions of a table of the schema, the sequences of columns, and what is of an extension.
const onlyThere = `
	select c.relname::text, pg_get_userbyid(c.relowner)::text, c.relkind in ('r', 'p'),
		case c.relkind when 'v' then 'view' when 'm' then 'materialized view' when 'f' then 'foreign table'
			when 'S' then 'sequence' else 'table' end
	from pg_class c join pg_namespace n on n.oid = c.relnamespace
	where n.nspname = $1 and c.relkind in ('r', 'p', 'v', 'm', 'f', 'S')
		and not exists (select from pg_class o join pg_namespace s on s.oid = o.relnamespace
			where s.nspname = $2 and o.relname = c.relname
				and replace(o.relkind::text, 'p', 'r') = replace(c.relkind::text, 'p', 'r'))
		and not exists (select from pg_inherits i join pg_class p on p.oid = i.inhparent
			where i.inhrelid = c.oid and c.relispartition and p.relnamespace = c.relnamespace)
		and not exists (select from pg_depend d where d.classid = 'pg_class'::regclass and d.objid = c.oid
			and (d.deptype = 'e' or c.relkind = 'S' and d.deptype in ('a', 'i')))
	order by 1`

// only is a relation that only the present schema has.
type only struct {
	Name, Owner string
	Table       bool
	Kind        string
}

// onlyPresent adds to the comparison of a schema what only the present one has, with its rows: what takes its place
// lacks that, and no restored table is there to be compared with it.
func (r *run) onlyPresent(ctx context.Context, o *Object, as, name string) error {
	found, err := pgx.CollectRows(sql.Ask(ctx, r.primary, onlyThere, name, as), pgx.RowToStructByPos[only])
	if err != nil {
		return fmt.Errorf("look for what only the present schema %s has: %w", name, err)
	}
	var named []string
	for i, one := range found {
		words := one.Kind + " " + one.Name
		if one.Table {
			rows, err := r.countPresent(ctx, o, name, one)
			if err != nil {
				return err
			}
			words += " (" + rows + ")"
		}
		if i < mostNamed {
			named = append(named, words)
		}
	}
	if len(found) > mostNamed {
		named = append(named, fmt.Sprintf("and %d more", len(found)-mostNamed))
	}
	if len(found) > 0 {
		o.say("Only the present schema has %s: the restored one lacks that.", strings.Join(named, ", "))
	}
	return nil
}

// countPresent counts the rows of a table that only the present schema has, as its owner, as in a comparison.
func (r *run) countPresent(ctx context.Context, o *Object, schema string, one only) (words string, err error) {
	at := relation{schema, one.Name}
	t := &table{run: r, relation: at, loaded: at, owner: one.Owner}
	r.step("counts %s", t)
	_, end, err := t.count(ctx)
	switch {
	case final(sql.Code(err)):
		o.Compared = false
		return "not counted: " + sql.Explain(err, sql.ShownMessage), nil
	case err != nil:
		return "", err
	}
	end()
	o.Present += t.object.Rows
	o.OnlyPresent += t.object.Rows
	return fmt.Sprintf("%d rows", t.object.Rows), nil
}
