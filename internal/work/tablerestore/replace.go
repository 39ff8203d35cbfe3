package tablerestore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"toban.dev/internal/postgres/sql"
)

// hasReplaced says that a run before has put a table in the place of the present one, and what has come of it.
func (t *table) hasReplaced(ctx context.Context) (bool, error) {
	p, err := t.run.findPresent(ctx, t.kept)
	m := p.markOf(t)
	switch {
	case err != nil || p == nil:
		return false, err
	case m == nil:
		return false, refuse("%s is there and was not made by this restore: rename or drop it", t.kept)
	case m.State != stateKept || m.Object == nil:
		return false, nil
	}
	t.object, t.inPlace = *m.Object, true
	return true, nil
}

// replaceTables puts all tables in the place of the present ones, in one transaction. What is restored is beside them.
func (r *run) replaceTables(ctx context.Context, tables []*table) error {
	var left []*table
	for _, t := range tables {
		if _, err := t.hasReplaced(ctx); err != nil {
			return err
		}
		if !t.inPlace {
			left = append(left, t)
		}
	}
	// Locks have an order.
	slices.SortFunc(left, func(a, b *table) int { return strings.Compare(a.String(), b.String()) })
	if len(left) > 0 {
		if err := r.replace(ctx, left); err != nil {
			return err
		}
	}
	for _, t := range tables {
		if err := t.dropBeside(ctx); err != nil {
			return err
		}
	}
	return nil
}

// dropBeside drops a restored table whose rows are in the present one.
func (t *table) dropBeside(ctx context.Context) error {
	p, err := t.run.findPresent(ctx, t.as)
	if m := p.markOf(t); err != nil || m == nil || m.State != stateArrived {
		return err
	}
	return do(ctx, t.run.primary, "drop the table whose rows are in the present one", "set lock_timeout = '30s'",
		"drop table "+t.as.sql(), "reset lock_timeout")
}

// errChanged says that a table was altered while its lock was waited for: what was planned before would lose rows or
// columns. Another try plans with what is there then.
var errChanged = errors.New("it was altered while its lock was waited for")

// replaceTries is how often it is planned anew: each try has waited for who has altered a table.
const replaceTries = 3

func (r *run) replace(ctx context.Context, tables []*table) error {
	for try := 1; ; try++ {
		err := r.replaceOnce(ctx, tables)
		if !errors.Is(err, errChanged) || try == replaceTries {
			return err
		}
	}
}

func (r *run) replaceOnce(ctx context.Context, tables []*table) error {
	plans := make([]*plan, 0, len(tables))
	for _, t := range tables {
		p, err := t.plan(ctx)
		if err != nil {
			return err
		}
		if t.owner != tables[0].owner {
			return refuse("%s and %s have different owners: put one after the other in its place", tables[0], t)
		}
		plans = append(plans, p)
	}
	for _, t := range tables {
		if err := t.makeKept(ctx); err != nil {
			return err
		}
	}
	r.passed("kept")
	conn, end, err := r.loader.session(ctx, tables[0].owner, r.Database, "set on parameter session_replication_role")
	if err != nil {
		return err
	}
	defer end()
	r.step("puts the restored rows in the place of the present ones")
	return r.exchange(ctx, conn, plans)
}

// exchange is the transaction. It begins as a role of this run, because the owner may not turn off triggers.
func (r *run) exchange(ctx context.Context, conn *pgx.Conn, plans []*plan) error {
	t := plans[0].table
	if err := do(ctx, conn, "begin to replace "+t.String(), "set role none",
		"set session_replication_role = replica", "set role "+sql.Quote(t.owner), "begin",
		"set local lock_timeout = '30s'",
		"set local row_security = off"); err != nil {
		return err
	}
	oids, err := r.lockTables(ctx, conn, plans)
	if err != nil {
		return err
	}
	off, on, err := switches(ctx, conn, oids)
	if err != nil {
		return err
	}
	off = append(off, "set local lock_timeout = 0")
	if err := do(ctx, conn, "turn off what runs with each row", off...); err != nil {
		return err
	}
	for _, p := range plans {
		if err := do(ctx, conn, "replace the rows of "+p.table.String(), p.statements...); err != nil {
			return err
		}
		if err := moveSequences(ctx, conn, p.table); err != nil {
			return err
		}
		r.passed("exchanged " + p.table.String())
	}
	if err := checkKeys(ctx, conn, oids); err != nil {
		return err
	}
	for _, p := range plans {
		o := &p.table.object
		o.As, o.Kept = p.table.String(), p.table.kept.String()
		on = append(on, "comment on table "+p.table.kept.sql()+" is "+
			sql.Literal(r.comment("", mark{State: stateKept, Object: o})))
	}
	if err := do(ctx, conn, "commit", append(on, "commit")...); err != nil {
		return err
	}
	r.passed("replaced")
	return nil
}

// lockTables locks all that the plans read and write, and then sees that they are still right: who has altered a table
// may have committed while the lock was waited for. Nobody can alter one that is locked.
func (r *run) lockTables(ctx context.Context, conn *pgx.Conn, plans []*plan) (oids []uint32, err error) {
	for _, p := range plans {
		t := p.table
		if err := do(ctx, conn, "lock "+t.String(), "lock table "+t.sql()+" in exclusive mode",
			"lock table "+t.as.sql()+" in share mode", "lock table "+t.kept.sql()+" in exclusive mode"); err != nil {
			return nil, err
		}
		oids = append(oids, p.oid)
	}
	for _, p := range plans {
		now, err := p.table.plan(ctx)
		if err != nil {
			return nil, err
		}
		if now.oid != p.oid || !slices.Equal(now.restored, p.restored) || !slices.Equal(now.now, p.now) ||
			!slices.Equal(now.statements, p.statements) {
			return nil, fmt.Errorf("replace %s: %w", p.table, errChanged)
		}
	}
	return oids, nil
}

// plan is how the rows of a table are replaced.
type plan struct {
	table *table
	// oid is that of the present table. restored and now are the columns of what is restored, and of the present table.
	oid           uint32
	restored, now []col
	statements    []string
}

// plan looks at what is there now, and refuses what does not fit.
func (t *table) plan(ctx context.Context) (*plan, error) {
	stays := fmt.Sprintf("What is restored stays as %s", t.as)
	var err error
	if t.present, err = t.run.findPresent(ctx, t.relation); err != nil {
		return nil, err
	}
	switch {
	case t.present == nil:
		return nil, refuse("%s is not there any more. %s: rename it", t, stays)
	case t.present.kind != "r" && t.present.kind != "p":
		return nil, refuse("what is called %s now is no table. %s", t, stays)
	case t.present.owner != t.owner:
		return nil, refuse("%s belongs to %s and what is restored to %s: ALTER TABLE %s OWNER TO %s and try again, or "+
			"copy the rows by hand. %s", t, t.present.owner, t.owner, t.sql(), sql.Quote(t.owner), stays)
	}
	oid, err := t.run.oidOf(ctx, t.as)
	if err != nil {
		return nil, err
	}
	if err := t.checkShape(ctx, oid, stays); err != nil {
		return nil, err
	}
	restored, err := columnsOf(ctx, t.run.primary, oid)
	if err != nil {
		return nil, err
	}
	now, err := columnsOf(ctx, t.run.primary, t.present.oid)
	if err != nil {
		return nil, err
	}
	wrong := misfits(restored, now)
	if len(wrong) > 0 {
		return nil, refuse("the rows do not fit into %s: %s. %s: copy what you need by hand", t,
			strings.Join(wrong, ", "), stays)
	}
	var all, set []string
	for _, c := range now {
		all = append(all, sql.Quote(c.Name))
		if !c.Generated && slices.ContainsFunc(restored, func(o col) bool { return o.Name == c.Name }) {
			set = append(set, sql.Quote(c.Name))
		}
	}
	every, some := strings.Join(all, ", "), strings.Join(set, ", ")
	return &plan{t, t.present.oid, restored, now, []string{
		fmt.Sprintf("insert into %s (%s) select %s from %s", t.kept.sql(), every, every, t.sql()),
		"delete from " + t.sql(),
		fmt.Sprintf("insert into %s (%s) overriding system value select %s from %s", t.sql(), some, some, t.as.sql()),
	}}, nil
}

// misfits are the columns that do not fit.
func misfits(restored, now []col) (wrong []string) {
	find := func(in []col, name string) *col {
		for i := range in {
			if in[i].Name == name {
				return &in[i]
			}
		}
		return nil
	}
	for _, c := range restored {
		switch n := find(now, c.Name); {
		case n == nil:
			wrong = append(wrong, "column "+c.Name+" is not there any more")
		case n.Type != c.Type:
			wrong = append(wrong, fmt.Sprintf("column %s was %s and is %s", c.Name, c.Type, n.Type))
		}
	}
	for _, n := range now {
		if find(restored, n.Name) == nil && n.NotNull && !n.Default && !n.Generated {
			wrong = append(wrong, "column "+n.Name+" is NOT NULL, and the restored rows do not have it")
		}
	}
	return wrong
}

// checkShape refuses tables whose rows are not their own alone, and rules that would run.
func (t *table) checkShape(ctx context.Context, restored uint32, stays string) error {
	var inherits, ruled bool
	err := t.run.primary.QueryRow(ctx, `select exists (select from pg_inherits i join pg_class c on c.oid = i.inhrelid
			where i.inhparent = any ($1) and not c.relispartition),
		exists (select from pg_rewrite where ev_class = $2 and ev_enabled in ('A', 'R'))`,
		[]uint32{t.present.oid, restored}, t.present.oid).Scan(&inherits, &ruled)
	if err != nil {
		return fmt.Errorf("look at %s: %w", t, err)
	}
	switch {
	case inherits:
		return refuse("other tables inherit from %s, or did: copy the rows by hand. %s", t, stays)
	case ruled:
		return refuse("%s has a rule that is ENABLE ALWAYS or REPLICA: disable it. %s", t, stays)
	}
	return nil
}

// makeKept makes the empty table that will keep the present rows. It is made by a superuser, because the owner need not
// have the right to make a table there, and belongs to the owner.
func (t *table) makeKept(ctx context.Context) error {
	statements := []string{"set lock_timeout = '30s'"}
	if p, err := t.run.findPresent(ctx, t.kept); err != nil {
		return err
	} else if p != nil {
		if m := p.markOf(t); m == nil || m.State != stateWork {
			return refuse("%s is there and was not made by this restore: rename or drop it", t.kept)
		}
		statements = append(statements, "drop table "+t.kept.sql())
	}
	statements = append(statements,
		fmt.Sprintf("create table %s (like %s)", t.kept.sql(), t.sql()),
		fmt.Sprintf("alter table %s owner to %s", t.kept.sql(), sql.Quote(t.owner)),
		fmt.Sprintf("comment on table %s is %s", t.kept.sql(), sql.Literal(t.run.comment("", mark{State: stateWork}))),
		"reset lock_timeout")
	return do(ctx, t.run.primary, "make the table that keeps the rows of "+t.String(), statements...)
}
