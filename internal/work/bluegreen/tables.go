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

// Which tables are where. What is published with a filter or without some of its columns is not published as it is
// carried.
const (
	queryPresent = `select format('%I.%I', n.nspname, c.relname)
		from pg_class c join pg_namespace n on n.oid = c.relnamespace
		where ` + ofUsers + ` and c.relkind = 'r' and c.relpersistence = 'p'
		union all select 'toban_sides.barrier'`
	queryPublished = `select format('%I.%I', n.nspname, c.relname) from pg_publication_rel r
		join pg_publication p on p.oid = r.prpubid
		join pg_class c on c.oid = r.prrelid join pg_namespace n on n.oid = c.relnamespace
		where p.pubname = $1 and r.prqual is null and r.prattrs is null
		and p.pubinsert and p.pubupdate and p.pubdelete and p.pubtruncate`
	queryFollowed = `select format('%I.%I', n.nspname, c.relname) from pg_subscription_rel r
		join pg_subscription s on s.oid = r.srsubid join pg_database d on d.oid = s.subdbid
		join pg_class c on c.oid = r.srrelid join pg_namespace n on n.oid = c.relnamespace
		where d.datname = current_database() and s.subname = $1 and r.srsubstate = 'r'
		and ` + ourSubscription
)

// unpublished are the tables of a database, with the barrier, that the link does not publish.
func (p Publisher) unpublished(ctx context.Context, conn *pgx.Conn) ([]string, error) {
	present, err := sql.Column[string](ctx, conn, "look for tables", queryPresent+" order by 1")
	if err != nil {
		return nil, err
	}
	published, err := sql.Column[string](ctx, conn, "look for what is published", queryPublished, p.Name)
	return without(present, published), err
}

// sameTables says which tables are not carried, as an error: what is on the serving side, what is published there, what
// the following side follows, and what is there, must be the same.
func (l Link) sameTables(ctx context.Context) error {
	there, err := databases(ctx, l.Following)
	if err != nil {
		return err
	}
	all, err := gather(ctx, l.Serving, func(conn *pgx.Conn, d database) ([]string, error) {
		if !slices.ContainsFunc(there, func(other database) bool { return other.Name == d.Name }) {
			return []string{d.Name + ": is not on " + l.Following.Name}, nil
		}
		return in(ctx, l.Following, d, func(follower *pgx.Conn, _ database) ([]string, error) {
			return l.tablesDiffer(ctx, conn, follower)
		})
	})
	if differ := slices.Concat(all...); err == nil && len(differ) > 0 {
		return InTheWay{TablesDiffer, "tables are not carried: " + strings.Join(differ, "; ")}
	}
	return err
}

// tablesDiffer says for one database which tables are missing where.
func (l Link) tablesDiffer(ctx context.Context, serving, following *pgx.Conn) (differ []string, err error) {
	var present, published, copied, followed []string
	for _, q := range []struct {
		into  *[]string
		conn  *pgx.Conn
		query string
		args  []any
	}{
		{&present, serving, queryPresent, nil}, {&published, serving, queryPublished, []any{l.Name}},
		{&copied, following, queryPresent, nil}, {&followed, following, queryFollowed, []any{l.Name}},
	} {
		*q.into, err = sql.Column[string](ctx, q.conn, "look for tables", q.query+" order by 1", q.args...)
		if err != nil {
			return nil, err
		}
	}
	say := func(names []string, what string) {
		for _, name := range names {
			differ = append(differ, fmt.Sprintf("%s is not %s", name, what))
		}
	}
	say(without(present, published), "published")
	say(without(present, copied), "on "+l.Following.Name)
	say(without(copied, present), "on "+l.Serving.Name)
	// One that is missing on a side is told already.
	say(without(without(present, without(present, copied)), followed), "followed")
	if len(differ) == 0 {
		return nil, nil
	}
	return []string{serving.Config().Database + ": " + strings.Join(differ, ", ")}, nil
}

// without are the names that are not among some.
func without(names, some []string) (left []string) {
	among := map[string]bool{}
	for _, name := range some {
		among[name] = true
	}
	for _, name := range names {
		if !among[name] {
			left = append(left, name)
		}
	}
	return left
}
