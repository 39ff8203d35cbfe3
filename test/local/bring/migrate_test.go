package bring_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"toban.dev/internal/work/tablerestore"
)

// A migration that is under way when a table is put in its place commits while the restore waits for its lock.
func TestATableIsAlteredWhileItsLockIsWaitedFor(t *testing.T) {
	const was = "create table t (id int primary key, v text); insert into t " +
		"select i, 'old' from generate_series(1, 9) i"
	const then = "update t set v = 'wrong'; insert into t values (10, 'new')"
	added := func(point string) func(*pair) {
		return func(p *pair) {
			p.was(was)
			p.then(then)
			o := p.replace("t")
			ended := p.migrate(&o, point, "alter table t add note text", "update t set note = 'paid ' || id")
			got := p.one(o)
			p.committed(ended)
			p.want("10", "select count(note) from "+got.Kept)
			p.want("9", "select count(*) from t where v = 'old' and note is null")
		}
	}
	each(t, map[string]func(*pair){
		"a column is added and filled, before the table for the rows is made": added("arrived public.t"),
		"a column is added and filled, once that is made":                     added("kept"),
		"the values of a column are changed with its type": func(p *pair) {
			p.was("create table t (id int primary key, n int); insert into t values (1, 1)")
			p.then("update t set n = 2")
			o := p.replace("t")
			ended := p.migrate(&o, "kept", "alter table t alter n type numeric(9, 2) using n + 0.25")
			p.refused(o, "column n was integer and is numeric(9,2)", "stays as public.t_"+suffix)
			p.committed(ended)
			p.want("2.25", "select n::text from t")
		},
		"another table takes its name": func(p *pair) {
			p.was(was)
			p.then(then)
			o := p.replace("t")
			ended := p.migrate(&o, "kept", "alter table t rename to former",
				"create table t (like former including all)", "insert into t values (11, 'another')")
			got := p.one(o)
			p.committed(ended)
			p.want("another", "select string_agg(v, ',') from "+got.Kept)
			p.want("9", "select count(*) from t where v = 'old'")
			p.want("10", "select count(*) from former")
		},
	})
}

// migrate begins a transaction at a point of the restore, and commits it when somebody waits for its locks.
func (p *pair) migrate(o *tablerestore.Options, at string, statements ...string) <-chan error {
	ended := make(chan error, 1)
	begun := false
	o.At = func(point string) {
		if begun || point != at {
			return
		}
		begun = true
		conn, err := p.primary.Dial(p.Context(), p.database, "postgres", "")
		if err != nil {
			ended <- err
			return
		}
		for _, q := range append([]string{"set role app", "begin"}, statements...) {
			if _, err := conn.Exec(p.Context(), q); err != nil {
				_ = conn.Close(p.Context())
				ended <- err
				return
			}
		}
		go func() { ended <- commitWhenWaitedFor(p.Context(), conn) }()
	}
	return ended
}

// committed fails the test unless the transaction of migrate was committed.
func (p *pair) committed(ended <-chan error) {
	p.Helper()
	if err := <-ended; err != nil {
		p.Fatal(err)
	}
}

func commitWhenWaitedFor(ctx context.Context, conn *pgx.Conn) error {
	defer func() { _ = conn.Close(ctx) }()
	for waited := false; !waited; time.Sleep(20 * time.Millisecond) {
		err := conn.QueryRow(ctx, "select exists (select from pg_locks where not granted and "+
			"pg_backend_pid() = any (pg_blocking_pids(pid)))").Scan(&waited)
		if err != nil {
			return err
		}
	}
	_, err := conn.Exec(ctx, "commit")
	return err
}
