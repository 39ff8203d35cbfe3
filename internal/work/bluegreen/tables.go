package bluegreen

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"toban.dev/internal/postgres/sql"
)

// table is one whose rows are carried, with its columns: those of its key first. Generated ones are computed on each
// side.
type table struct {
	Schema, Name string
	Key, Columns []string
}

func (t table) sql() string    { return sql.Quote(t.Schema) + "." + sql.Quote(t.Name) }
func (t table) String() string { return t.Schema + "." + t.Name }

const queryTables = `select n.nspname::text, c.relname::text,
		array(select quote_ident(a.attname) from pg_index i, unnest(i.indkey) with ordinality as k (n, o)
			join pg_attribute a on a.attrelid = c.oid and a.attnum = k.n
			where i.indrelid = c.oid and i.indisvalid and k.o <= i.indnkeyatts
			and case c.relreplident when 'i' then i.indisreplident else i.indisprimary end order by k.o),
		array(select quote_ident(a.attname) from pg_attribute a where a.attrelid = c.oid and a.attnum > 0
			and not a.attisdropped and a.attgenerated = '' order by a.attnum)
	from pg_class c join pg_namespace n on n.oid = c.relnamespace
	where ` + ofUsers + ` and c.relkind = 'r' and c.relpersistence = 'p' order by 1, 2`

// tablesOf are the tables of a database that are carried.
func tablesOf(ctx context.Context, conn *pgx.Conn) ([]table, error) {
	all, err := pgx.CollectRows(sql.Ask(ctx, conn, queryTables), pgx.RowToStructByPos[table])
	if err != nil {
		return nil, fmt.Errorf("look for tables: %w", err)
	}
	for i, t := range all {
		all[i].Columns = append(slices.Clone(t.Key), slices.DeleteFunc(t.Columns, func(name string) bool {
			return slices.Contains(t.Key, name)
		})...)
	}
	return all, nil
}

// copy is the statement that reads the table. A table whose columns are all generated has none.
func (t table) copy() string {
	if len(t.Columns) == 0 {
		return "copy " + t.sql() + " to stdout"
	}
	return fmt.Sprintf("copy %s (%s) to stdout", t.sql(), strings.Join(t.Columns, ", "))
}
