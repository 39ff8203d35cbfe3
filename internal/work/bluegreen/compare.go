package bluegreen

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"toban.dev/internal/pause"
	"toban.dev/internal/postgres/sql"
)

// Difference is a table whose rows are not the same on both sides.
type Difference struct {
	Database, Table string
	// Serving and Following are how many rows each side has.
	Serving, Following int64
	// OnlyServing and OnlyFollowing are keys of rows that only one side has, as many as are told. A row that has
	// another value is in both.
	OnlyServing, OnlyFollowing []string
}

// Compared is what a comparison has found.
type Compared struct {
	Tables int
	Rows   int64
	// Differ are the tables that differ, NotCompared those that could not be locked in time.
	Differ      []Difference
	NotCompared []string
}

// Comparison says how rows are compared.
type Comparison struct {
	// LockTimeout is for how long writers of a table may wait for its lock, Patience for how long that is tried.
	LockTimeout, Patience time.Duration
	// Held, if set, is called while the following side is held at a barrier, for tests.
	Held func(table string)
}

// errNotLocked says that a table is held by other transactions, errEmptied that it has another file than at its
// snapshot.
var (
	errNotLocked = errors.New("the table could not be locked")
	errEmptied   = errors.New("the table was emptied meanwhile")
)

// most is how many buckets are looked into, and how many keys are told of each table and side.
const most = 10

// Compare compares all rows of both sides, table by table, while both go on. Where none differs, it is noted which
// servers these are (WasCompared).
func (l Link) Compare(ctx context.Context, how Comparison) (found Compared, err error) {
	if err := l.forgetCompared(ctx); err != nil {
		return found, err
	}
	before, err := l.servers(ctx)
	if err != nil {
		return found, err
	}
	found, err = l.compareAll(ctx, how)
	if err != nil || len(found.Differ)+len(found.NotCompared) > 0 {
		return found, err
	}
	err = l.noteCompared(ctx, before)
	if way := (InTheWay{}); errors.As(err, &way) && way.Reason == NotCompared {
		err = errors.New(way.Message) // one was elected meanwhile: it is compared again, and nothing is refused
	}
	return found, err
}

func (l Link) compareAll(ctx context.Context, how Comparison) (found Compared, err error) {
	if err := l.sameTables(ctx); err != nil { // a table that is not carried may have the same rows as yet
		return found, err
	}
	all, err := databases(ctx, l.Serving)
	if err != nil {
		return found, err
	}
	for _, d := range all { // one after the other: it is no hurry, and others use the disks
		tables, err := in(ctx, l.Serving, d, func(conn *pgx.Conn, _ database) ([]table, error) {
			return tablesOf(ctx, conn)
		})
		if err != nil {
			return found, err
		}
		for _, t := range tables {
			if err := l.compare(ctx, how, d.Name, t, &found); err != nil {
				return found, err
			}
		}
	}
	return found, nil
}

// compare compares one table. One that is emptied between its snapshot and its reading is compared anew: TRUNCATE is
// the one statement whose work older snapshots see (PostgreSQL 17 documentation, 13.6 Caveats).
func (l Link) compare(ctx context.Context, how Comparison, database string, t table, found *Compared) error {
	for end := time.Now().Add(how.Patience); ; {
		difference, err := l.compareOnce(ctx, how, database, t)
		again := errors.Is(err, errEmptied)
		switch {
		case again && time.Now().Before(end):
			continue
		case again || errors.Is(err, errNotLocked):
			found.NotCompared = append(found.NotCompared, database+": "+t.String())
			return nil
		case err != nil:
			return err
		}
		found.Tables++
		found.Rows += difference.Serving
		if len(difference.OnlyServing)+len(difference.OnlyFollowing) > 0 || difference.Serving != difference.Following {
			found.Differ = append(found.Differ, difference)
		}
		return nil
	}
}

func (l Link) compareOnce(ctx context.Context, how Comparison, database string, t table) (Difference, error) {
	s, err := l.open(ctx, database)
	if err != nil {
		return Difference{}, err
	}
	defer s.close()
	if err := s.snapshots(ctx, how, l, t); err != nil {
		return Difference{}, err
	}
	difference, err := s.difference(ctx, database, t)
	if code := sql.Code(err); code == "42P01" || code == "42703" { // no such table, no such column
		return Difference{Database: database, Table: t.String(), OnlyServing: []string{err.Error()}}, nil
	}
	if err != nil {
		return difference, err
	}
	return difference, s.sameFiles(ctx, t)
}

// sessions are those that a comparison of one table needs: locker and writer on the serving side, holder on the
// following one, and one on each that reads.
type sessions struct {
	locker, writer, serving, holder, following *pgx.Conn
	// files are those of the table on both sides at their snapshots.
	files [2]uint32
}

func (l Link) open(ctx context.Context, database string) (*sessions, error) {
	s := &sessions{}
	for _, x := range []struct {
		into **pgx.Conn
		side Side
	}{
		{&s.locker, l.Serving}, {&s.writer, l.Serving}, {&s.serving, l.Serving}, {&s.holder, l.Following},
		{&s.following, l.Following},
	} {
		conn, err := x.side.Connect(ctx, database)
		if err != nil {
			s.close()
			return nil, err
		}
		*x.into = conn
	}
	for _, conn := range []*pgx.Conn{s.writer, s.holder} {
		if err := mustOwn(ctx, conn); err != nil {
			s.close()
			return nil, err
		}
	}
	// Nobody has to have the barrier but this server, and the lock is held meanwhile.
	if err := do(ctx, s.writer, "wait for this server alone", "set synchronous_commit = local"); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// close ends them, and with them their locks and snapshots.
func (s *sessions) close() {
	for _, conn := range []*pgx.Conn{s.holder, s.locker, s.writer, s.serving, s.following} {
		if conn != nil {
			sql.HangUp(conn)
		}
	}
}

// snapshots takes two that are the same state of a table (docs/sides.md, "How rows are compared").
func (s *sessions) snapshots(ctx context.Context, how Comparison, l Link, t table) error {
	if err := s.hold(ctx, l); err != nil {
		return err
	}
	if err := s.lock(ctx, how, t); err != nil {
		return err
	}
	if err := s.snapshot(ctx, s.serving, t, &s.files[0]); err != nil {
		return err
	}
	if _, err := bump(ctx, s.writer); err != nil {
		return err
	}
	if err := do(ctx, s.locker, "give the lock back", "rollback"); err != nil {
		return err
	}
	if err := s.awaitHeld(ctx, l); err != nil {
		return err
	}
	if how.Held != nil {
		how.Held(t.String())
	}
	if err := s.snapshot(ctx, s.following, t, &s.files[1]); err != nil {
		return err
	}
	return do(ctx, s.holder, "let the link go on", "rollback")
}

// hold locks the barrier on the following side, when the link has come to its present number there: so the link waits
// at the next one, and goes on until then.
func (s *sessions) hold(ctx context.Context, l Link) error {
	n, err := barrier(ctx, s.writer)
	if err != nil {
		return err
	}
	if err := l.comesTo(ctx, s.writer, s.holder, n); err != nil {
		return err
	}
	return do(ctx, s.holder, "lock the barrier", "begin", "select from toban_sides.barrier where id = 1 for update")
}

// lock takes the lock of the table: then no transaction that writes it is under way.
func (s *sessions) lock(ctx context.Context, how Comparison, t table) error {
	end := time.Now().Add(how.Patience)
	between := how.LockTimeout
	for {
		err := do(ctx, s.locker, "lock "+t.String(), "begin",
			fmt.Sprintf("set local lock_timeout = %d", how.LockTimeout.Milliseconds()),
			fmt.Sprintf("lock table only %s in share mode", t.sql()))
		const notAvailable = "55P03"
		if err == nil || sql.Code(err) != notAvailable {
			return err
		}
		if err := do(ctx, s.locker, "give up the lock", "rollback"); err != nil {
			return err
		}
		if time.Now().After(end) {
			return fmt.Errorf("%w: %s", errNotLocked, t)
		}
		if !pause.For(ctx, between) {
			return fmt.Errorf("lock %s: %w", t, ctx.Err())
		}
		between = min(2*between, 10*time.Second)
	}
}

// snapshot begins a transaction in which all that a session reads is as it is now. It notes the file of the table.
func (s *sessions) snapshot(ctx context.Context, conn *pgx.Conn, t table, file *uint32) error {
	err := do(ctx, conn, "take a snapshot", "begin isolation level repeatable read read only", formats, "select 1")
	if err != nil {
		return err
	}
	*file, err = fileOf(ctx, conn, t)
	return err
}

// fileOf is the number of the file in which the rows of a table are now, whatever the snapshot of the session. It is 0
// where there is no such table.
func fileOf(ctx context.Context, conn *pgx.Conn, t table) (file uint32, err error) {
	return sql.Value[uint32](ctx, conn, "look for the file of "+t.String(),
		"select coalesce(pg_relation_filenode(to_regclass($1)), 0)", t.sql())
}

// sameFiles says whether both sides have the files of their snapshots still.
func (s *sessions) sameFiles(ctx context.Context, t table) error {
	for i, conn := range []*pgx.Conn{s.serving, s.following} {
		if file, err := fileOf(ctx, conn, t); err != nil || file != s.files[i] {
			return errors.Join(err, errEmptied)
		}
	}
	return nil
}

// awaitHeld waits until the link waits for the barrier.
func (s *sessions) awaitHeld(ctx context.Context, l Link) error {
	return wait(ctx, "wait until the link comes to the barrier", func() (held bool, err error) {
		return sql.Value[bool](ctx, s.holder, "look for what the link waits for",
			`select exists (select from pg_stat_subscription x
			join pg_subscription s on s.oid = x.subid join pg_database d on d.oid = s.subdbid
			where s.subname = $1 and d.datname = current_database()
			and pg_backend_pid() = any (pg_blocking_pids(x.pid)))`,
			l.Name)
	})
}

// difference reads both snapshots at once.
func (s *sessions) difference(ctx context.Context, database string, t table) (Difference, error) {
	d := Difference{Database: database, Table: t.String()}
	a, b, err := both(func() (*digest, error) { return read(ctx, s.serving, t) },
		func() (*digest, error) { return read(ctx, s.following, t) })
	if err != nil {
		return d, err
	}
	d.Serving, d.Following = a.rows, b.rows
	wanted := a.differ(b)
	if len(wanted) == 0 {
		return d, nil
	}
	wanted = wanted[:min(most, len(wanted))]
	x, y, err := both(func() (*picker, error) { return readPicked(ctx, s.serving, t, wanted) },
		func() (*picker, error) { return readPicked(ctx, s.following, t, wanted) })
	if err != nil {
		return d, err
	}
	d.OnlyServing, d.OnlyFollowing = told(x.without(y)), told(y.without(x))
	return d, nil
}

// told are keys in their order, not too many.
func told(keys []string) []string {
	slices.Sort(keys)
	return keys[:min(most, len(keys))]
}

// both does two things at once.
func both[T any](one, other func() (T, error)) (a, b T, err error) {
	var first, second error
	var group sync.WaitGroup
	group.Go(func() { a, first = one() })
	group.Go(func() { b, second = other() })
	group.Wait()
	return a, b, errors.Join(first, second)
}
