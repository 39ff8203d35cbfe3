package bluegreen

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"toban.dev/internal/postgres/sql"
)

// sequence is where one is.
type sequence struct {
	Name   string
	Last   int64
	Called bool
}

// inOneQuery is how many sequences are asked in one.
const inOneQuery = 500

// CarrySequences gives the sequences of the following side the values of those of the serving one, in each database. It
// returns how many there are.
func (l Link) CarrySequences(ctx context.Context) (n int, err error) {
	counts, err := gather(ctx, l.Serving, func(conn *pgx.Conn, d database) (int, error) {
		all, err := sequences(ctx, conn)
		if err != nil || len(all) == 0 {
			return 0, err
		}
		follower, err := l.Following.Connect(ctx, d.Name)
		if err != nil {
			return 0, err
		}
		defer sql.HangUp(follower)
		return len(all), setSequences(ctx, follower, all)
	})
	for _, count := range counts {
		n += count
	}
	return n, err
}

// sequences are those of a database. A query on one reads its only row, and plans nothing of a user's.
func sequences(ctx context.Context, conn *pgx.Conn) (all []sequence, err error) {
	names, err := sql.Column[string](ctx, conn, "look for sequences", `select format('%I.%I', n.nspname, c.relname)
		from pg_class c join pg_namespace n on n.oid = c.relnamespace
		where `+ofUsers+` and c.relkind = 'S' and c.relpersistence = 'p' order by 1`)
	if err != nil {
		return nil, err
	}
	for part := range slices.Chunk(names, inOneQuery) {
		var queries []string
		for _, name := range part {
			queries = append(queries, fmt.Sprintf("select %s, last_value, is_called from %s", sql.Literal(name), name))
		}
		rows := sql.Ask(ctx, conn, strings.Join(queries, " union all "), pgx.QueryExecModeSimpleProtocol)
		read, err := pgx.CollectRows(rows, pgx.RowToStructByPos[sequence])
		if err != nil {
			return nil, fmt.Errorf("read sequences: %w", err)
		}
		all = append(all, read...)
	}
	return all, nil
}

func setSequences(ctx context.Context, conn *pgx.Conn, all []sequence) error {
	names, last, called := make([]string, len(all)), make([]int64, len(all)), make([]bool, len(all))
	for i, s := range all {
		names[i], last[i], called[i] = s.Name, s.Last, s.Called
	}
	return sql.Do(ctx, conn, "set sequences", `select setval(name::regclass, last, called)
		from unnest($1::text[], $2::bigint[], $3::bool[]) as s (name, last, called)`, names, last, called)
}

// ownRoles are Toban's, which differ from side to side. All others are users', whatever they are called.
const ownRoles = `('toban_replication', 'toban_backup', 'toban_link', 'toban_metrics', 'toban_pooler')`

// SharedDiffers names what is not the same on both sides of what a server has besides its databases.
func (l Link) SharedDiffers(ctx context.Context) ([]string, error) {
	serving, err := shared(ctx, l.Serving)
	if err != nil {
		return nil, err
	}
	following, err := shared(ctx, l.Following)
	if err != nil {
		return nil, err
	}
	return unlike(serving, following), nil
}

func shared(ctx context.Context, side Side) (map[string]string, error) {
	conn, err := side.Connect(ctx, "postgres")
	if err != nil {
		return nil, err
	}
	defer sql.HangUp(conn)
	all, err := pairs(ctx, conn, queryShared)
	if err != nil {
		return nil, fmt.Errorf("ask %s for its roles: %w", side.Name, err)
	}
	return all, nil
}

// refresh is the statement that changes what a materialized view has, and not the schema.
const refresh = "REFRESH MATERIALIZED VIEW"

// Noted are the changes of the schema of a side since its notes were made. A database that is younger has none.
func Noted(ctx context.Context, side Side) ([]string, error) {
	all, err := gather(ctx, side, func(conn *pgx.Conn, d database) ([]string, error) {
		if there, err := hasNotes(ctx, conn); err != nil || !there {
			return nil, err
		}
		return sql.Column[string](ctx, conn, "read the notes",
			`select $2 || ': ' || tag || ' ' || object from toban_sides.noted
			where tag <> $1 order by id`, refresh, d.Name)
	})
	return slices.Concat(all...), err
}

func hasNotes(ctx context.Context, conn *pgx.Conn) (there bool, err error) {
	if there, err = own(ctx, conn); err != nil || !there {
		return false, err
	}
	return sql.Value[bool](ctx, conn, "look for the notes", "select to_regclass('toban_sides.noted') is not null")
}

// CarryRefreshes makes on the following side the refreshes of materialized views that were made on the serving one, and
// forgets them. The server runs what a view is made of as its owner.
func (l Link) CarryRefreshes(ctx context.Context) ([]string, error) {
	all, err := gather(ctx, l.Serving, func(conn *pgx.Conn, d database) ([]string, error) {
		if there, err := hasNotes(ctx, conn); err != nil || !there {
			return nil, err
		}
		ids, views, err := refreshes(ctx, conn)
		if err != nil || len(ids) == 0 {
			return nil, err
		}
		follower, err := l.Following.Connect(ctx, d.Name)
		if err != nil {
			return nil, err
		}
		defer sql.HangUp(follower)
		// What a refresh has seen may be committed, and not have come.
		if err := l.catchUp(ctx, conn, follower); err != nil {
			return nil, err
		}
		for _, view := range views { // as PostgreSQL quotes it
			if err := do(ctx, follower, "refresh "+view, "refresh materialized view "+view); err != nil {
				return nil, err
			}
		}
		_, err = conn.Exec(ctx, "delete from toban_sides.noted where id = any ($1)", ids)
		if err != nil {
			return nil, fmt.Errorf("forget the refreshes: %w", err)
		}
		return views, nil
	})
	return slices.Concat(all...), err
}

// refreshes are those that are noted in a database, with the views. Those that are committed meanwhile stay noted, also
// with a lower number.
func refreshes(ctx context.Context, conn *pgx.Conn) (ids []int64, views []string, err error) {
	rows := sql.Ask(ctx, conn, "select id, object from toban_sides.noted where tag = $1 order by id", refresh)
	var id int64
	var view string
	_, err = pgx.ForEachRow(rows, []any{&id, &view}, func() error {
		ids = append(ids, id)
		// One that reads others was refreshed after them.
		views = append(slices.DeleteFunc(views, func(v string) bool { return v == view }), view)
		return nil
	})
	if err != nil {
		return nil, nil, fmt.Errorf("read the notes: %w", err)
	}
	return ids, views, nil
}

// CarryPasswords gives the roles of the following side the passwords of the serving one, as far as both have them: each
// role may change its own at any time.
func (l Link) CarryPasswords(ctx context.Context) error {
	serving, err := l.Serving.Connect(ctx, "postgres")
	if err != nil {
		return err
	}
	defer sql.HangUp(serving)
	follower, err := l.Following.Connect(ctx, "postgres")
	if err != nil {
		return err
	}
	defer sql.HangUp(follower)
	const roles = "from pg_authid where oid >= 16384 and rolname not in " + ownRoles + " "
	there, err := sql.Column[string](ctx, follower, "read the passwords",
		"select format('%I %L', rolname, rolpassword) "+roles) // %L of null is NULL
	if err != nil {
		return err
	}
	names, err := sql.Column[string](ctx, follower, "read the roles", "select rolname::text "+roles)
	if err != nil {
		return err
	}
	var statements []string
	err = sql.Secretly(ctx, serving, func() (err error) { // a log has what is asked with, too
		statements, err = sql.Column[string](ctx, serving, "read the passwords",
			"select format('alter role %I password %L', rolname, rolpassword) "+roles+
				"and rolname = any ($1) and format('%I %L', rolname, rolpassword) <> all ($2) order by 1",
			names, there)
		return err
	})
	if err != nil || len(statements) == 0 {
		return err
	}
	return secretly(ctx, follower, "carry passwords", statements...)
}
