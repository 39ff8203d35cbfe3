package tablerestore

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"toban.dev/internal/pause"
	"toban.dev/internal/postgres/sql"
)

// While schemas are loaded, all who own something in them may make objects there, and anybody's session may do so
// beside the restore. What is there then and is not restored would be called by who uses the schema.

// lentPatience is for transactions that were under way when what was lent was taken back.
const lentPatience = time.Minute

// transactions are those that are under way. Each has its lock, whether or not its session's activity is tracked.
const transactions = `select coalesce(array_agg(virtualtransaction), '{}') from pg_locks
	where locktype = 'virtualxid' and virtualxid = virtualtransaction`

// underWay says that some of them are under way yet, are of some roles, and may have made something.
const underWay = `select exists (select from pg_stat_activity a join pg_roles r on r.oid = a.usesysid
	join pg_locks l on l.pid = a.pid and l.locktype = 'virtualxid' and l.virtualxid = any($2::text[])
	and l.virtualxid = l.virtualtransaction
	where a.datname = current_database() and a.pid <> pg_backend_pid()
	and (a.backend_xid is not null or ` + sql.Busy + `) and not r.rolsuper
	and exists (select from unnest($1::text[]) o where pg_has_role(r.oid, o, 'member')))`

// made are the objects in a schema, each as DROP names it, but for those that are there with others: with an extension,
// a column or a type.
const made = `
	with inside as (
		select 'pg_class'::regclass::oid as class, oid from pg_class
			where relnamespace = $1::text::regnamespace and relkind in ('r', 'p', 'v', 'm', 'f', 'S')
		union all select 'pg_proc'::regclass, oid from pg_proc where pronamespace = $1::text::regnamespace
		union all select 'pg_type'::regclass, oid from pg_type where typnamespace = $1::text::regnamespace
			and typcategory <> 'A' and (typtype in ('b', 'd', 'e', 'r')
				or typtype = 'c' and exists (select from pg_class c where c.oid = typrelid and c.relkind = 'c'))
		union all select 'pg_operator'::regclass, oid from pg_operator where oprnamespace = $1::text::regnamespace
		union all select 'pg_collation'::regclass, oid from pg_collation where collnamespace = $1::text::regnamespace
		union all select 'pg_conversion'::regclass, oid from pg_conversion where connamespace = $1::text::regnamespace
		union all select 'pg_opclass'::regclass, oid from pg_opclass where opcnamespace = $1::text::regnamespace
		union all select 'pg_opfamily'::regclass, oid from pg_opfamily where opfnamespace = $1::text::regnamespace
		union all select 'pg_statistic_ext'::regclass, oid from pg_statistic_ext
			where stxnamespace = $1::text::regnamespace
		union all select 'pg_ts_config'::regclass, oid from pg_ts_config where cfgnamespace = $1::text::regnamespace
		union all select 'pg_ts_dict'::regclass, oid from pg_ts_dict where dictnamespace = $1::text::regnamespace
	)
	select case i.type when 'statistics object' then 'statistics' else i.type end
		|| ' if exists ' || i.identity
	from inside cross join lateral pg_identify_object(class, oid, 0) i where i.identity is not null
		and not exists (select from pg_depend e where e.classid = class and e.objid = oid and e.deptype in ('e', 'i'))`

// dropPlanted drops what somebody else has made in the schemas while they were lent to some roles.
func (r *run) dropPlanted(ctx context.Context, d *dumped, lent []string) error {
	if err := awaitLent(ctx, d.admin, lent); err != nil {
		return err
	}
	for schema := range d.schemas {
		there, err := column(ctx, d.admin, made, sql.Quote(schema))
		if err != nil {
			return err
		}
		restored, err := column(ctx, r.copy, made, sql.Quote(schema))
		if err != nil {
			return err
		}
		var names, statements []string
		for _, name := range there {
			if !slices.Contains(restored, name) {
				names = append(names, strings.Replace(name, " if exists", "", 1))
				statements = append(statements, "drop "+name+" cascade")
			}
		}
		if len(names) == 0 {
			continue
		}
		if err := do(ctx, d.admin, "drop what somebody has made meanwhile in "+schema, statements...); err != nil {
			return err
		}
		d.object.say("Somebody has made this in it while it was loaded: %s. It was dropped.", strings.Join(names, ", "))
	}
	return nil
}

// awaitLent waits until nobody can commit any more what he has made in a schema that was lent to him.
func awaitLent(ctx context.Context, conn *pgx.Conn, lent []string) error {
	since, err := sql.Value[[]string](ctx, conn, "ask which transactions are under way", transactions)
	if err != nil {
		return err
	}
	for end := time.Now().Add(lentPatience); ; {
		var busy bool
		err := conn.QueryRow(ctx, underWay, lent, since).Scan(&busy)
		switch {
		case err != nil:
			return fmt.Errorf("look for transactions that are under way: %w", err)
		case !busy:
			return nil
		case time.Now().After(end):
			return fmt.Errorf("transactions of %s are under way for more than %s, and may have made something in what "+
				"is restored", strings.Join(lent, ", "), lentPatience)
		}
		if !pause.For(ctx, 100*time.Millisecond) {
			return ctx.Err() //nolint:wrapcheck // it was told to stop
		}
	}
}
