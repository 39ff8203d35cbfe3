package tablerestore

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"toban.dev/internal/postgres/sql"
)

// switches are the statements that turn off what would run with each row in spite of session_replication_role, or keep
// rows from their owner, and those that turn it on again.
func switches(ctx context.Context, conn *pgx.Conn, oids []uint32) (off, on []string, err error) {
	rows := sql.Ask(ctx, conn, `
		with recursive f (oid) as (select unnest($1::oid[])
			union select i.inhrelid from f join pg_inherits i on i.inhparent = f.oid)
		select format('%I.%I', n.nspname, c.relname), '', '', c.relforcerowsecurity
		from f join pg_class c using (oid) join pg_namespace n on n.oid = c.relnamespace where c.relforcerowsecurity
		union all
		select format('%I.%I', n.nspname, c.relname), quote_ident(t.tgname), t.tgenabled::text, false
		from f join pg_class c using (oid) join pg_namespace n on n.oid = c.relnamespace
		join pg_trigger t on t.tgrelid = c.oid where not t.tgisinternal and t.tgenabled in ('A', 'R')`, oids)
	var table, trigger, enabled string
	var forced bool
	_, err = pgx.ForEachRow(rows, []any{&table, &trigger, &enabled, &forced}, func() error {
		if forced {
			off = append(off, "alter table "+table+" no force row level security")
			on = append(on, "alter table "+table+" force row level security")
			return nil
		}
		kind := map[string]string{"A": "always", "R": "replica"}[enabled]
		off = append(off, fmt.Sprintf("alter table only %s disable trigger %s", table, trigger))
		on = append(on, fmt.Sprintf("alter table only %s enable %s trigger %s", table, kind, trigger))
		return nil
	})
	if err != nil {
		return nil, nil, fmt.Errorf("look for triggers: %w", err)
	}
	return off, on, nil
}

// moveSequences moves the sequences of a table behind all of its rows, and never back.
func moveSequences(ctx context.Context, conn *pgx.Conn, t *table) error {
	rows := sql.Ask(ctx, conn, `select format('%I.%I', n.nspname, s.relname), quote_ident(a.attname),
			q.seqincrement > 0
		from pg_depend d join pg_class s on s.oid = d.objid and s.relkind = 'S'
		join pg_namespace n on n.oid = s.relnamespace join pg_sequence q on q.seqrelid = s.oid
		join pg_attribute a on a.attrelid = d.refobjid and a.attnum = d.refobjsubid
		where d.classid = 'pg_class'::regclass and d.refclassid = 'pg_class'::regclass and d.refobjid = $1
			and d.deptype in ('a', 'i') and a.atttypid = any ('{int2,int4,int8}'::regtype[])`, t.present.oid)
	var statements []string
	var sequence, name string
	var up bool
	_, err := pgx.ForEachRow(rows, []any{&sequence, &name, &up}, func() error {
		last, than := "max", ">"
		if !up {
			last, than = "min", "<"
		}
		statements = append(statements, fmt.Sprintf(
			"select setval(%s, m) from (select %s(%s)::bigint m from %s) x, %s s where m %s s.last_value "+
				"or m = s.last_value and not s.is_called", sql.Literal(sequence), last, name, t.sql(), sequence, than))
		return nil
	})
	if err != nil {
		return fmt.Errorf("look for the sequences of %s: %w", t, err)
	}
	if len(statements) == 0 {
		return nil
	}
	return do(ctx, conn, "move the sequences of "+t.String(), statements...)
}

// foreignKeys are those from and to tables, each as it was declared: that of a partition is one of a whole table. One
// that is NOT VALID need not hold.
const foreignKeys = `
	with recursive up as (
		select oid, conparentid from pg_constraint where contype = 'f' and (conrelid = any ($1) or confrelid = any ($1))
		union select c.oid, c.conparentid from up join pg_constraint c on c.oid = up.conparentid
	)
	select k.conname::text, format('%I.%I', fn.nspname, f.relname), format('%I.%I', pn.nspname, p.relname),
		k.confmatchtype = 'f',
		array(select quote_ident(a.attname) from unnest(k.conkey) with ordinality x (n, i)
			join pg_attribute a on a.attrelid = k.conrelid and a.attnum = x.n order by i),
		array(select quote_ident(a.attname) from unnest(k.confkey) with ordinality x (n, i)
			join pg_attribute a on a.attrelid = k.confrelid and a.attnum = x.n order by i),
		array(select format('operator(%I.%s)', n.nspname, o.oprname) from unnest(k.conpfeqop) with ordinality x (n, i)
			join pg_operator o on o.oid = x.n join pg_namespace n on n.oid = o.oprnamespace order by i)
	from up join pg_constraint k using (oid)
	join pg_class f on f.oid = k.conrelid join pg_namespace fn on fn.oid = f.relnamespace
	join pg_class p on p.oid = k.confrelid join pg_namespace pn on pn.oid = p.relnamespace
	where up.conparentid = 0 and k.convalidated`

type foreignKey struct {
	Name, From, To  string
	Full            bool
	Columns, Others []string
	Equal           []string
}

// orphans is the query for the rows that have no partner.
func (k foreignKey) orphans() string {
	var null, equal []string
	for i, c := range k.Columns {
		null = append(null, "f."+c+" is not null")
		equal = append(equal, fmt.Sprintf("p.%s %s f.%s", k.Others[i], k.Equal[i], c))
	}
	with := " and " // MATCH SIMPLE asks for no partner where one column is null
	if k.Full {
		with = " or "
	}
	return fmt.Sprintf("select count(*) from %s f where (%s) and not exists (select from %s p where %s)", k.From,
		strings.Join(null, with), k.To, strings.Join(equal, " and "))
}

// checkKeys refuses rows that break a foreign key.
func checkKeys(ctx context.Context, conn *pgx.Conn, oids []uint32) error {
	keys, err := pgx.CollectRows(sql.Ask(ctx, conn, foreignKeys, oids), pgx.RowToStructByPos[foreignKey])
	if err != nil {
		return fmt.Errorf("look for foreign keys: %w", err)
	}
	var broken []string
	for _, k := range keys {
		n, err := sql.Value[int64](ctx, conn, fmt.Sprintf("check the foreign key %s of %s", k.Name, k.From),
			k.orphans())
		if err != nil {
			return err
		}
		if n > 0 {
			broken = append(broken,
				fmt.Sprintf("%d rows of %s would have no partner in %s (%s)", n, k.From, k.To, k.Name))
		}
	}
	if len(broken) > 0 {
		return refuse("%s. Nothing is replaced: restore both tables in one run, or copy rows by hand",
			strings.Join(broken, "; "))
	}
	return nil
}
