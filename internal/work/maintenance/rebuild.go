package maintenance

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"toban.dev/internal/postgres/sql"
)

// SQLSTATEs (PostgreSQL 18 documentation, appendix A).
const (
	stateDuplicate = "23505"
	stateDiskFull  = "53100"
	stateLocked    = "55P03"
	stateNoTable   = "42P01" // of an index too
	stateNoObject  = "42704"
	stateCorrupted = "XX002"
)

// rebuild rebuilds an index that may be out of order, and notes it. What PostgreSQL refuses is in the result, and the
// others go on.
func (w *work) rebuild(ctx context.Context, d *surveyed, i index) error {
	conn, err := w.in(ctx, i.database)
	if err != nil {
		return err
	}
	w.passed("check " + i.name)
	if i.btree {
		if err := w.check(ctx, conn, i); err != nil {
			return err
		}
	}
	w.passed("rebuild " + i.name)
	err = w.reindex(ctx, conn, i)
	if gone := sql.Code(err); gone == stateNoTable || gone == stateNoObject {
		return nil
	}
	if refused := w.refused(i, err); refused {
		d.keep(i)
		return w.dropLeftovers(ctx, conn, i.database, i.name)
	}
	if err != nil {
		return err
	}
	w.passed("rebuilt " + i.name)
	var oid, filenode uint32
	err = conn.QueryRow(ctx, `select c.oid, c.relfilenode from pg_class c join pg_namespace n on n.oid = c.relnamespace
		where n.nspname = $1 and c.relname = $2`, i.schema, i.name).Scan(&oid, &filenode)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look for the rebuilt index: %w", err)
	}
	w.result.Rebuilt++
	return w.record.note(ctx, d.oid, oid, filenode, i.versions)
}

// lockTries is how often the lock for an index is tried for that can't be rebuilt while its table is written.
const lockTries = 20

// reindex rebuilds an index beside the writes. PostgreSQL can't do so for an exclusion constraint (PostgreSQL 18
// documentation, REINDEX): its table takes no writes meanwhile, and nobody waits long behind us for the lock.
func (w *work) reindex(ctx context.Context, conn *pgx.Conn, i index) error {
	name := sql.Quote(i.schema, i.name)
	if !i.exclusion {
		_, err := conn.Exec(ctx, "reindex index concurrently "+name, pgx.QueryExecModeSimpleProtocol)
		return err //nolint:wrapcheck // refused reads it, and names the index
	}
	if _, err := conn.Exec(ctx, "set lock_timeout = '3s'"); err != nil {
		return fmt.Errorf("limit the wait for a lock: %w", err)
	}
	var err error
	for range lockTries {
		if _, err = conn.Exec(ctx, "reindex index "+name,
			pgx.QueryExecModeSimpleProtocol); sql.Code(err) != stateLocked {
			break
		}
		select {
		case <-ctx.Done():
			return ctx.Err() //nolint:wrapcheck // it was told to stop
		case <-time.After(time.Second):
		}
	}
	if _, reset := conn.Exec(ctx, "set lock_timeout = 0"); reset != nil && err == nil {
		err = reset
	}
	return err //nolint:wrapcheck // as above
}

// refused notes an index that PostgreSQL does not rebuild, and says whether that is so: an error about the connection,
// or of a server that stops, is none about the index. Of duplicates the columns are told and never the values.
func (w *work) refused(i index, err error) bool {
	code := sql.Code(err)
	where := fmt.Sprintf("%s on %s.%s (%s) in database %s", i.name, i.schema, i.table, i.columns, i.database)
	switch {
	case err == nil || code == "" || transient(code):
		return false
	case code == stateDuplicate:
		w.result.Duplicates = append(w.result.Duplicates, where)
	default:
		w.result.Failures = append(w.result.Failures, where+": "+sql.Explain(err, sql.ShownCode))
	}
	return true
}

// transient says that trying again may help: the server stops, starts, or is no primary any more.
func transient(code string) bool {
	return strings.HasPrefix(code, "08") || strings.HasPrefix(code, "57P") || strings.HasPrefix(code, "40") ||
		code == "25006" || code == "53300"
}

// check looks with amcheck whether an index is really out of order. It is rebuilt anyway: that it looks sound does not
// prove it. Where the extension is not there it is made in a transaction that is rolled back, and nobody sees it.
func (w *work) check(ctx context.Context, conn *pgx.Conn, i index) error {
	var installed *string
	var available bool
	err := conn.QueryRow(ctx, `select (select n.nspname::text from pg_extension e
			join pg_namespace n on n.oid = e.extnamespace where e.extname = 'amcheck'),
		exists (select from pg_available_extensions where name = 'amcheck')`).Scan(&installed, &available)
	if err != nil {
		return fmt.Errorf("look for amcheck: %w", err)
	}
	if !available {
		return nil
	}
	err = checkWith(ctx, conn, i, installed)
	switch code := sql.Code(err); {
	case err == nil:
		w.result.Checked++
	case code == stateCorrupted:
		w.result.Checked++
		w.result.Broken++
	case code == "" || transient(code):
		return err
	default: // it can't be checked
		w.log.Info("an index could not be checked", "index", i.name, "reason", sql.Explain(err, sql.ShownCode))
	}
	return nil
}

func checkWith(ctx context.Context, conn *pgx.Conn, i index, installed *string) error {
	tx, err := conn.Begin(ctx)
	if err != nil {
		return fmt.Errorf("check an index: %w", err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }() // nothing is to stay of it
	schema := "toban_check"
	if installed != nil {
		schema = *installed
	} else if _, err := tx.Exec(ctx, "create schema toban_check; create extension amcheck schema toban_check",
		pgx.QueryExecModeSimpleProtocol); err != nil {
		return fmt.Errorf("make amcheck: %w", err)
	}
	return sql.Do(ctx, tx, "check index "+i.name,
		"select "+sql.Quote(schema, "bt_index_check")+"($1::oid::regclass, true)", i.oid)
}

// leftover is the name of an index that a rebuild leaves when it is cut off (PostgreSQL 18 documentation, REINDEX).
var leftover = regexp.MustCompile(`_cc(new|old)\d*$`)

// dropLeftovers drops what former tries of the wanted indexes have left: those that are invalid and are called as one
// of them. One that somebody else is just building is waited for, and then it is gone by itself.
func (w *work) dropLeftovers(ctx context.Context, conn *pgx.Conn, database string, wanted ...string) error {
	rows := sql.Ask(ctx, conn, `select n.nspname::text, c.relname::text from pg_index i
		join pg_class c on c.oid = i.indexrelid join pg_namespace n on n.oid = c.relnamespace
		where not i.indisvalid and c.relkind = 'i' and c.relname ~ '_cc(new|old)\d*$'`)
	var found [][2]string
	var schema, name string
	if _, err := pgx.ForEachRow(rows, []any{&schema, &name}, func() error {
		stem := leftover.ReplaceAllString(name, "")
		if slices.ContainsFunc(wanted, func(one string) bool { return strings.HasPrefix(one, stem) }) {
			found = append(found, [2]string{schema, name})
		}
		return nil
	}); err != nil {
		return fmt.Errorf("look for what former tries have left in database %s: %w", database, err)
	}
	for _, f := range found {
		_, err := conn.Exec(ctx, "drop index concurrently if exists "+sql.Quote(f[0], f[1]),
			pgx.QueryExecModeSimpleProtocol)
		if err != nil && (sql.Code(err) == "" || transient(sql.Code(err))) {
			return fmt.Errorf("drop %s, which a former try has left: %w", f[1], err)
		}
		w.passed("dropped " + f[1])
	}
	return nil
}

// keep notes that an index is still as it was: its collations are not put on record.
func (d *surveyed) keep(i index) {
	for _, oid := range i.collations {
		d.collations[oid].kept = true
	}
}

// rebuildIndexes rebuilds what is due in all databases, those first by which PostgreSQL keeps rows apart, and puts the
// versions on record of which all indexes are rebuilt.
func (w *work) rebuildIndexes(ctx context.Context) error {
	var all []surveyed
	var due []index
	for _, name := range w.databases {
		d, err := survey(ctx, w.connect, name, w.record)
		if err != nil {
			return err
		}
		all = append(all, d)
		due = append(due, d.due...)
		w.result.Partitioned = append(w.result.Partitioned, prefixed(name, d.partitioned)...)
	}
	slices.SortStableFunc(due, before)
	if err := w.clear(ctx, all); err != nil {
		return err
	}
	for n, i := range due {
		if err := w.tell(ctx, Progress{n, len(due), i.name}); err != nil {
			return err
		}
		at := slices.IndexFunc(all, func(d surveyed) bool { return d.name == i.database })
		if err := w.rebuild(ctx, &all[at], i); err != nil {
			return err
		}
		if len(w.result.Failures) > 0 && strings.Contains(w.result.Failures[len(w.result.Failures)-1], stateDiskFull) {
			return errFull
		}
	}
	return w.putOnRecord(ctx, all)
}

// errFull ends the work: what comes next would have no room either.
var errFull = errors.New("the volume is full: give it more room (spec.storage.size), and ask again")

func prefixed(database string, names []string) (out []string) {
	for _, name := range names {
		out = append(out, database+"."+name)
	}
	return out
}

// clear drops what former tries have left.
func (w *work) clear(ctx context.Context, all []surveyed) error {
	for _, d := range all {
		var names []string
		for _, i := range d.indexes {
			names = append(names, i.name)
		}
		if len(names) == 0 {
			continue
		}
		conn, err := w.in(ctx, d.name)
		if err != nil {
			return err
		}
		if err := w.dropLeftovers(ctx, conn, d.name, names...); err != nil {
			return err
		}
	}
	return nil
}

// putOnRecord refreshes the versions.
func (w *work) putOnRecord(ctx context.Context, all []surveyed) error {
	for _, d := range all {
		whole := true
		for _, oid := range d.stale() {
			c := d.collations[oid]
			if whole = whole && !c.kept; c.kept {
				continue
			}
			conn, err := w.in(ctx, d.name)
			if err != nil {
				return err
			}
			if err := c.refresh(ctx, conn, d.name); err != nil {
				return err
			}
			w.passed("recorded " + c.version(d.name).Collation)
		}
		for _, i := range d.due {
			for _, oid := range i.collations {
				whole = whole && !d.collations[oid].kept
			}
		}
		if whole {
			if err := w.record.forget(ctx, d.oid); err != nil {
				return err
			}
		}
	}
	return w.record.forget(ctx, 0)
}
