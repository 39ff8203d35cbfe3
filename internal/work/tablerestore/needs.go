package tablerestore

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"toban.dev/internal/postgres/sql"
)

// needs finds what tables need that is not of their own: types, functions, sequences, collations, … as names that the
// primary can look up. What PostgreSQL has built in is everywhere. It is asked in the copy.
const needs = `
	with own as (
		select 'pg_class'::regclass::oid as classid, oid as objid from pg_class where oid = any ($1)
		union select 'pg_type'::regclass, reltype from pg_class where oid = any ($1)
		union select 'pg_class'::regclass, indexrelid from pg_index where indrelid = any ($1)
		union select 'pg_constraint'::regclass, oid from pg_constraint where conrelid = any ($1) and contype <> 'f'
		union select 'pg_attrdef'::regclass, oid from pg_attrdef where adrelid = any ($1)
		union select 'pg_class'::regclass, objid from pg_depend where classid = 'pg_class'::regclass
			and refclassid = 'pg_class'::regclass and refobjid = any ($1) and deptype in ('a', 'i')
	)
	select distinct (o).type, (o).object_names, (o).object_args,
		(pg_identify_object(d.refclassid, d.refobjid, 0)).identity
	from own join pg_depend d using (classid, objid)
	cross join lateral pg_identify_object_as_address(d.refclassid, d.refobjid, 0) o
	where (d.refclassid, d.refobjid) not in (select classid, objid from own)
		and d.refclassid not in ('pg_namespace'::regclass, 'pg_publication'::regclass)
		and not (d.refclassid = 'pg_class'::regclass and d.refobjid in (
			select inhparent from pg_inherits where inhrelid = any ($1)))
		and d.deptype in ('n', 'a') and d.refobjid >= 16384
	order by 1, 2`

// checkNeeds refuses tables that need what the primary does not have.
func (t *table) checkNeeds(ctx context.Context) error {
	oids := make([]uint32, 0, len(t.family))
	for _, m := range t.family {
		oids = append(oids, m.oid)
	}
	type need struct {
		Type        string
		Names, Args []string
		Identity    string
	}
	found, err := pgx.CollectRows(sql.Ask(ctx, t.run.copy, needs, oids), pgx.RowToStructByPos[need])
	if err != nil {
		return fmt.Errorf("look for what %s needs: %w", t, err)
	}
	var missing []string
	for _, n := range found {
		_, err := t.run.primary.Exec(ctx, "select pg_get_object_address($1, $2, $3)", n.Type, n.Names, n.Args)
		if final(sql.Code(err)) {
			missing = append(missing, n.Type+" "+n.Identity)
		} else if err != nil {
			return fmt.Errorf("look for what %s needs: %w", t, err)
		}
	}
	if len(missing) > 0 {
		return refuse("%s needs what is not in database %s any more: %s. Restore that first, or create it", t,
			t.run.Database, strings.Join(missing, ", "))
	}
	return nil
}
