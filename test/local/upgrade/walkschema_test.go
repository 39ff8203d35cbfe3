package upgrade_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// migration is a change of the schema or of rights, in one transaction, with queries and what they say from then on.
type migration struct {
	statements []string
	wants      map[string]string
}

// migrations are those of the owner of the schema. Each has a number of its own.
var migrations = []func(n int) migration{
	func(n int) migration {
		table := fmt.Sprintf("app.made_%d", n)
		return migration{[]string{
			"create table " + table + " (id int primary key, v text not null default 'x', " +
				"twice int generated always as (id * 2) stored)",
			"grant select, insert on " + table + " to reader with grant option", "insert into " + table + " values (7)",
			"alter table " + table + " enable row level security",
			"create policy visible on " + table + " for select to reader using (id > 5)",
		}, map[string]string{
			"has_table_privilege('reader', '" + table + "', 'insert with grant option')":  "true",
			"(select string_agg(v || twice, ' ') from " + table + ")":                     "x14",
			"(select count(*) from pg_policy where polrelid = '" + table + "'::regclass)": "1",
		}}
	},
	func(n int) migration {
		return migration{[]string{fmt.Sprintf("alter table app.orders add column c_%d int default %[1]d", n),
			fmt.Sprintf("create index orders_c_%d on app.orders (c_%[1]d, item)", n)},
			map[string]string{fmt.Sprintf("(select c_%d from app.orders where id = 1)", n): fmt.Sprint(n),
				fmt.Sprintf("to_regclass('app.orders_c_%d') is not null", n): "true"}}
	},
	func(n int) migration {
		year := 2030 + n
		return migration{[]string{
			fmt.Sprintf("create table app.parts_y%d partition of app.parts "+
				"for values from ('%[1]d-01-01') to ('%d-01-01')", year, year+1),
			fmt.Sprintf("insert into app.parts values (%d, '%d-05-05')", 1_000_000+n, year),
		}, map[string]string{fmt.Sprintf("(select count(*) from app.parts_y%d)", year): "1"}}
	},
	func(n int) migration {
		f := fmt.Sprintf("app.f_%d()", n)
		return migration{[]string{fmt.Sprintf("create function %s returns int language sql as 'select %d'", f, n),
			"revoke all on function " + f + " from public", "grant execute on function " + f + " to reader"},
			map[string]string{f: fmt.Sprint(n), "has_function_privilege('reader', '" + f + "', 'execute')": "true",
				"has_function_privilege('pg_monitor', '" + f + "', 'execute')": "false"}}
	},
	func(n int) migration {
		schema := fmt.Sprintf("more_%d", n)
		return migration{[]string{"create schema " + schema, "alter default privileges in schema " + schema +
			" grant select on tables to reader", "create type " + schema + ".mood as enum ('good', 'bad')",
			"create table " + schema + ".t (id int primary key, mood " + schema + ".mood)",
			"insert into " + schema + ".t values (1, 'good')", "create sequence " + schema + ".s start 5",
			"select nextval('" + schema + ".s')", "grant usage on schema " + schema + " to reader",
		}, map[string]string{"has_table_privilege('reader', '" + schema + ".t', 'select')": "true",
			"(select mood from " + schema + ".t)":                       "good",
			"(select last_value >= 5 from " + schema + ".s)":            "true",
			"has_schema_privilege('reader', '" + schema + "', 'usage')": "true"}}
	},
}

// migrator changes the schema, and knows what was acknowledged.
type migrator struct {
	*walk
	mutex sync.Mutex
	// n is how many were begun, and acknowledged how many of them were. wants are queries, with what they say since.
	n, acknowledged int
	wants           map[string]string
}

// migrate makes one change. Where it is not known what came of it, nothing of it is expected.
func (m *migrator) migrate(conn *pgx.Conn) error {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	n := m.n
	m.n++
	made := migrations[n%len(migrations)](n)
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	if err := run(ctx, conn, slices.Concat([]string{"begin"}, made.statements, []string{"commit"})...); err != nil {
		return err
	}
	maps.Copy(m.wants, made.wants)
	m.acknowledged++
	return nil
}

// has looks whether all that was acknowledged is so.
func (m *migrator) has(ctx context.Context, conn *pgx.Conn) error {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	for query, want := range m.wants {
		var got string
		if err := conn.QueryRow(ctx, "select ("+query+")::text").Scan(&got); err != nil {
			return fmt.Errorf("%s: %w", query, err)
		}
		if got != want {
			return fmt.Errorf("%s is %s, want %s", query, got, want)
		}
	}
	return nil
}

// live changes the schema until it is told to end.
func (m *migrator) live(ctx context.Context) {
	for ctx.Err() == nil && !m.Failed() {
		conn, generation := m.connect("app", "secret")
		if conn == nil {
			continue
		}
		var err error
		for err == nil && ctx.Err() == nil && m.serves(generation) {
			err = m.migrate(conn)
			time.Sleep(40 * time.Millisecond)
		}
		hangUp(conn)
		if err != nil && !excused(err) {
			m.Errorf("change of the schema %d: %v", m.n-1, err)
		}
	}
}

// held looks whether the side that serves refuses a change of its schema, by name.
func (m *migrator) held() {
	m.Helper()
	conn, _ := m.connect("app", "secret")
	if conn == nil {
		return
	}
	defer hangUp(conn)
	err := m.migrate(conn)
	var said *pgconn.PgError
	if !errors.As(err, &said) {
		m.Fatalf("the side that serves changes its schema, while the other one follows: %v", err)
	}
	if !strings.Contains(said.Message, "can't be changed") || said.Code != "55000" {
		m.Fatalf("the schema is not changed, because of %v", err)
	}
}

// grant gives somebody rights, as a superuser does while there is one side.
func (w *walk) grant() {
	w.Helper()
	w.roles++
	role := fmt.Sprintf("somebody_%d", w.roles)
	w.blueStand.do("shop", fmt.Sprintf(`create role %s login password 'p' connection limit 7;
grant reader to %[1]s with admin option;
alter role %[1]s in database shop set work_mem = '5MB';
grant set on parameter log_duration to %[1]s;
grant temporary on database shop to %[1]s`, role))
	w.migrator.mutex.Lock()
	defer w.migrator.mutex.Unlock()
	maps.Copy(w.migrator.wants, map[string]string{
		"pg_has_role('" + role + "', 'reader', 'member with admin option')":                     "true",
		"(select rolconnlimit from pg_roles where rolname = '" + role + "')":                    "7",
		"has_parameter_privilege('" + role + "', 'log_duration', 'set')":                        "true",
		"has_database_privilege('" + role + "', 'shop', 'temporary')":                           "true",
		"(select setconfig[1] from pg_db_role_setting where setrole = '" + role + "'::regrole)": "work_mem=5MB",
	})
}
