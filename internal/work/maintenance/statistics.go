package maintenance

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"toban.dev/internal/postgres/sql"
)

// stages are the settings with which tables are analyzed, one after the other, as vacuumdb --analyze-in-stages does:
// rough statistics of all tables soon, then better ones.
var stages = []string{
	"set default_statistics_target = 1; set vacuum_cost_delay = 0",
	"set default_statistics_target = 10; reset vacuum_cost_delay",
	"reset default_statistics_target",
}

// missing are the tables of which a column, an expression of an index or an extended statistic has no statistics though
// it should, as vacuumdb --missing-stats-only has them. One that is empty has none either.
const missing = `
select c.oid from pg_class c join pg_namespace n on n.oid = c.relnamespace
where c.relkind in ('r', 'm', 'p') and c.relpersistence <> 't' and n.nspname <> 'pg_toast'
	and c.oid <> 'pg_statistic'::regclass
	and c.reltuples <> 0 and (
	exists (select from pg_attribute a where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
		and a.attstattarget is distinct from 0 and not exists (select from pg_statistic s where s.starelid = c.oid
			and s.staattnum = a.attnum and s.stainherit = (c.relkind = 'p')))
	or c.relkind <> 'p' and exists (select from pg_index i join pg_attribute a on a.attrelid = i.indexrelid
		where i.indrelid = c.oid and i.indexprs is not null and i.indkey[a.attnum - 1] = 0
		and a.attstattarget is distinct from 0
		and not exists (select from pg_statistic s where s.starelid = i.indexrelid and s.staattnum = a.attnum))
	or exists (select from pg_statistic_ext e where e.stxrelid = c.oid and e.stxstattarget is distinct from 0
		and not exists (select from pg_statistic_ext_data d where d.stxoid = e.oid)))`

// unanalyzed is a table that is to get statistics, and the first stage that it has not got.
type unanalyzed struct {
	database string
	owner    uint32 // the database's oid
	oid      uint32
	stage    int
}

// makeStatistics analyzes, in stages, the tables that have no statistics. Which ones these are is noted first: after
// the first stage they have some.
func (w *work) makeStatistics(ctx context.Context) error {
	var all []unanalyzed
	for _, name := range w.databases {
		found, err := w.findMissing(ctx, name)
		if err != nil {
			return err
		}
		all = append(all, found...)
	}
	for stage := range stages {
		for n, table := range all {
			if table.stage > stage {
				continue
			}
			current := fmt.Sprintf("statistics, stage %d of %d", stage+1, len(stages))
			if err := w.tell(ctx, Progress{n, len(all), current}); err != nil {
				return err
			}
			if err := w.analyze(ctx, table, stage); err != nil {
				return err
			}
		}
	}
	w.result.Analyzed += len(all)
	return sql.Do(ctx, w.main, "forget what was analyzed", "delete from toban.analyzed")
}

// findMissing notes the tables of a database that have no statistics, and reads which ones were noted before.
func (w *work) findMissing(ctx context.Context, database string) ([]unanalyzed, error) {
	conn, err := w.in(ctx, database)
	if err != nil {
		return nil, err
	}
	oids, err := sql.Column[uint32](ctx, conn, "look for tables without statistics in database "+database, missing)
	if err != nil {
		return nil, err
	}
	if _, err := w.main.Exec(ctx, `insert into toban.analyzed
		select d.oid, r, 0 from pg_database d, unnest($2::oid[]) r where d.datname = $1
		on conflict do nothing`, database, append([]uint32{}, oids...)); err != nil {
		return nil, fmt.Errorf("note the tables without statistics: %w", err)
	}
	rows := sql.Ask(ctx, w.main, `select d.oid, a.relation, a.stage from toban.analyzed a
		join pg_database d on d.oid = a.database where d.datname = $1 order by a.relation`, database)
	var out []unanalyzed
	u := unanalyzed{database: database}
	if _, err := pgx.ForEachRow(rows, []any{&u.owner, &u.oid, &u.stage}, func() error {
		out = append(out, u)
		return nil
	}); err != nil {
		return nil, fmt.Errorf("read which tables are without statistics: %w", err)
	}
	return out, nil
}

// analyze does one stage of a table. One that is gone, or that PostgreSQL does not analyze, keeps none from going on.
func (w *work) analyze(ctx context.Context, table unanalyzed, stage int) error {
	conn, err := w.in(ctx, table.database)
	if err != nil {
		return err
	}
	if _, err := conn.Exec(ctx, stages[stage], pgx.QueryExecModeSimpleProtocol); err != nil {
		return fmt.Errorf("set how statistics are made: %w", err)
	}
	var schema, name string
	err = conn.QueryRow(ctx, `select coalesce(max(n.nspname), ''), coalesce(max(c.relname), '') from pg_class c
		join pg_namespace n on n.oid = c.relnamespace where c.oid = $1`, table.oid).Scan(&schema, &name)
	if err != nil {
		return fmt.Errorf("look for a table: %w", err)
	}
	if name != "" {
		_, err = conn.Exec(ctx, "analyze "+sql.Quote(schema, name), pgx.QueryExecModeSimpleProtocol)
		if code := sql.Code(err); err != nil && (code == "" || transient(code)) {
			return fmt.Errorf("make the statistics of %s: %w", name, err)
		}
		if err != nil && stage == 0 {
			w.result.Failures = append(w.result.Failures,
				fmt.Sprintf("statistics of %s.%s in database %s: %s", schema, name, table.database, sql.Explain(err,
					sql.ShownCode)))
		}
	}
	_, err = w.main.Exec(ctx, "update toban.analyzed set stage = $3 where database = $1 and relation = $2",
		table.owner, table.oid, stage+1)
	if err != nil {
		return fmt.Errorf("note that a table has statistics: %w", err)
	}
	w.passed(fmt.Sprintf("analyzed %s %d", name, stage+1))
	return nil
}
