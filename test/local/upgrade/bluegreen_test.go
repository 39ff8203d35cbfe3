package upgrade_test

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	change "toban.dev/internal/change/bluegreen"
	"toban.dev/internal/change/major"
	"toban.dev/internal/work/bluegreen"
)

// A database that is written all the time moves to another major version: a copy is made up to a position, follows,
// and is the same row for row; then sides change, and change back, and nothing that was acknowledged is missing.
func TestLongSidesChangeAndChangeBack(t *testing.T) {
	s := newBlue(t, 17)
	c := &clients{sides: s}
	c.write(s.blue)
	s.untilWritten(c, 50)
	position := s.publish()
	if again := s.publish(); again != position {
		t.Errorf("asked again, the position is %s, not %s", again, position)
	}
	s.untilWritten(c, 50)
	s.copyTo(position, 18)
	s.closes(s.green, true)
	s.follow(position)
	for range 2 {
		t.Logf("compared while it is written: %+v", s.same(s.forward))
	}
	must(t, s.forward.Prepare(s.ctx, s.back, deadline))
	s.change(c, s.forward, s.back, s.green)
	s.untilWritten(c, 200)
	t.Logf("blue follows: %+v", s.same(s.back))
	if found := s.green.ask("shop", "select split_part(version(), ' ', 2)"); !strings.HasPrefix(found, "18.") {
		t.Errorf("green is %s", found)
	}

	s.schemaIsHeld()

	// The way back is the same with the sides exchanged.
	must(t, s.back.Prepare(s.ctx, s.forward, deadline))
	s.change(c, s.back, s.forward, s.blue)
	s.untilWritten(c, 50)
	c.stop()
	must(t, bluegreen.Cancel(s.ctx, s.green.side("green")))
	must(t, bluegreen.Cancel(s.ctx, s.blue.side("blue")))
	c.hasAll(s.blue)
}

// schemaIsHeld looks whether green refuses a change of the schema while blue follows, and nothing else.
func (s *sides) schemaIsHeld() {
	s.Helper()
	must(s, s.back.Publisher().HoldSchema(s.ctx))
	conn, err := s.green.dial("shop")
	must(s, err)
	defer conn.Close(context.WithoutCancel(s.ctx))
	for statement, refused := range map[string]bool{
		"create table app.later (n int primary key)":               true,
		"alter table app.orders add column later int":              true,
		"drop table app.orders cascade":                            true,
		"create temporary table later (n int)":                     false,
		"create table if not exists app.orders (n int)":            false,
		"set role app; create table app.later (n int); reset role": true,
	} {
		_, err := conn.Exec(s.ctx, "begin; set local session_authorization = app; "+statement+"; rollback",
			pgx.QueryExecModeSimpleProtocol)
		got := err != nil && strings.Contains(err.Error(), "can't be changed")
		if got != refused || err != nil && !refused {
			s.Errorf("%s: %v", statement, err)
		}
		_, _ = conn.Exec(s.ctx, "rollback")
	}
	if noted, err := bluegreen.Noted(s.ctx, s.green.side("green")); err != nil || len(noted) > 0 {
		s.Errorf("what was refused is noted: %v, %v", noted, err)
	}
}

// change changes sides, as a Job and an operator do.
func (s *sides) change(c *clients, from, to bluegreen.Link, next *instance) {
	s.Helper()
	must(s, from.CatchUp(s.ctx))
	begin := time.Now()
	c.stop()
	s.closes(c.server, true)
	counted := c.server.ask("shop", "select last_value from app.counter")
	done, err := from.Hand(s.ctx)
	must(s, err)
	s.Logf("the pause was %s: %+v", time.Since(begin), done)
	if got := next.ask("shop", "select last_value from app.counter"); got != counted {
		s.Errorf("the sequence is at %s, and was at %s", got, counted)
	}
	if got := next.ask("shop", "select last_value || ' ' || is_called from app.never_called"); got != "5 false" {
		s.Errorf("the sequence that was never called is at %s", got)
	}
	c.hasAll(next)
	s.closes(next, false)
	c.write(next)
	s.untilWritten(c, 20)
	must(s, from.Turn(s.ctx, to))
}

// hasAll looks whether all that was acknowledged is there.
func (c *clients) hasAll(on *instance) {
	c.Helper()
	for w, last := range c.last {
		got := on.ask("shop", fmt.Sprintf("select count(*) || ' ' || coalesce(max(n), 0) from app.acknowledged "+
			"where writer = %d", w))
		if want := fmt.Sprintf("%d %d", last, last); got != want {
			c.Errorf("of client %d there are %s, want %s", w, got, want)
		}
	}
}

func (s *sides) untilWritten(c *clients, more int) {
	s.Helper()
	written := func() int {
		c.mutex.Lock()
		defer c.mutex.Unlock()
		return c.wrote
	}
	begin := written()
	s.until("clients write", func() bool { return written() >= begin+more || s.Failed() })
}

// The comparison finds each row that differs, by its key, and none that does not.
func TestTheComparisonNamesRowsThatDiffer(t *testing.T) {
	s := newBlue(t, 17)
	position := s.publish()
	s.copyTo(position, 17)
	s.follow(position)
	s.same(s.forward)
	s.green.do("shop", `update app.orders set n = n + 1 where id = 17;
delete from app.orders where id = 18;
insert into app.parts values (7777, '2026-02-03');
insert into app.full values (1, 'once more');
insert into app.full select * from app.full where b = 'row 3' limit 1`)
	found, err := s.forward.Compare(s.ctx, bluegreen.Comparison{LockTimeout: time.Second, Patience: deadline})
	must(t, err)
	t.Logf("%+v", found)
	for table, want := range map[string][4]string{
		"app.orders":  {"3000", "2999", "[17 18]", "[17]"},
		"app.parts_1": {"", "", "[]", "[7777, 2026-02-03]"},
		"app.full":    {"200", "202", "[]", ""},
	} {
		i := slices.IndexFunc(found.Differ, func(d bluegreen.Difference) bool { return d.Table == table })
		if i < 0 {
			t.Errorf("%s is not said to differ", table)
			continue
		}
		d := found.Differ[i]
		for n, got := range []string{strconv.FormatInt(d.Serving, 10), strconv.FormatInt(d.Following, 10),
			fmt.Sprint(d.OnlyServing), fmt.Sprint(d.OnlyFollowing)} {
			if want[n] != "" && got != want[n] {
				t.Errorf("%s: %s, want %s", table, got, want[n])
			}
		}
	}
	if len(found.Differ) != 3 {
		t.Errorf("%d tables differ, want 3", len(found.Differ))
	}

	// A table that somebody holds all the time is named, and delays nobody for long.
	holder, err := s.blue.dial("shop")
	must(t, err)
	_, err = holder.Exec(s.ctx, "begin; insert into app.emptied values (4711)")
	must(t, err)
	found, err = s.forward.Compare(s.ctx, bluegreen.Comparison{LockTimeout: 20 * time.Millisecond})
	must(t, err)
	if !slices.Equal(found.NotCompared, []string{"shop: app.emptied"}) {
		t.Errorf("not compared: %v", found.NotCompared)
	}
	must(t, holder.Close(s.ctx))
}

// TRUNCATE is seen by snapshots that are older. What that looks like is no difference: the table is compared anew.
func TestATableThatIsEmptiedIsComparedAnew(t *testing.T) {
	s := newBlue(t, 17)
	position := s.publish()
	s.copyTo(position, 17)
	s.follow(position)
	s.blue.do("shop", "insert into app.emptied values (1)")
	held := 0
	found, err := s.forward.Compare(s.ctx, bluegreen.Comparison{LockTimeout: time.Second, Patience: deadline,
		Held: func(table string) {
			if table != "app.emptied" {
				return
			}
			if held++; held == 1 { // both snapshots have the row: one is taken, the other one is to be
				s.blue.do("shop", "truncate app.emptied")
			}
		}})
	must(t, err)
	if held != 2 || len(found.Differ)+len(found.NotCompared) > 0 {
		t.Errorf("it was compared %d times: %+v", held, found)
	}
}

// What logical replication does not carry stops the change: each is named, and nothing was changed.
func TestAChangeOfSidesIsRefusedByName(t *testing.T) {
	s := newBlue(t, 17)
	s.blue.do("postgres", "grant set, alter system on parameter log_min_messages to app with grant option")
	position := s.publish()
	s.copyTo(position, 17)
	s.follow(position)
	must(t, s.forward.Look(s.ctx))
	for _, c := range []struct{ make, undo, reason, names string }{
		{"select lo_create(4711)", "select lo_unlink(4711)", change.LargeObjects, "shop: 1"},
		{"begin;\ninsert into app.emptied values (9);\nprepare transaction 'open'", "rollback prepared 'open'",
			major.PreparedTransactions, "open (shop)"},
		{"select pg_replication_origin_create('sink')", "select pg_replication_origin_drop('sink')",
			change.ReplicationOrigins, "sink"},
		{"create database shapes is_template true", "alter database shapes is_template false;\ndrop database shapes",
			change.TemplateDatabases, "shapes"},
		{"alter database shop is_template true", "alter database shop is_template false", change.TemplateDatabases,
			"shop"},
		{"create database old allow_connections false", "drop database old", major.ClosedDatabases, "old"},
		{"create role other", "drop role other", bluegreen.RolesDiffer, "role other"},
		{"alter role app set work_mem = '9MB'", "alter role app reset all", bluegreen.RolesDiffer,
			"settings of app in all databases"},
		{"create database more", "drop database more", bluegreen.RolesDiffer, "database more"},
		{"grant set on parameter log_duration to app", "revoke set on parameter log_duration from app",
			bluegreen.RolesDiffer, "rights to the parameter log_duration"},
		{"alter role app set event_triggers = off", "alter role app reset event_triggers", change.EventTriggersOff,
			"event_triggers of the role app in all databases"},
		{"alter database shop set event_triggers = no", "alter database shop reset event_triggers",
			change.EventTriggersOff, "event_triggers of all roles in the database shop"},
		{"alter system set event_triggers = off", "alter system reset event_triggers", change.EventTriggersOff,
			"event_triggers in the configuration"},
		{"alter event trigger toban_sides_drop enable", "alter event trigger toban_sides_drop enable always",
			change.EventTriggersOff, "shop: toban_sides_drop"},
		{"create temporary table passing (n int);\ndrop table passing;\nreindex table app.orders", "", "", ""},
		{"create table app.later (n int);\ninsert into app.later values (1);\nupdate app.later set n = 2",
			"drop table app.later", bluegreen.SchemaChanged, "CREATE TABLE app.later"},
	} {
		s.blue.do("shop", c.make)
		err := s.forward.Look(s.ctx)
		var found bluegreen.InTheWay
		switch {
		case c.reason == "" && err == nil:
		case !errors.As(err, &found) || found.Reason != c.reason || !strings.Contains(found.Message, c.names):
			t.Errorf("after %q it says %v, want %s of %s", c.make, err, c.reason, c.names)
		}
		if c.undo != "" {
			s.blue.do("shop", c.undo)
		}
	}
	noted, err := bluegreen.Noted(s.ctx, s.blue.side("blue"))
	must(t, err)
	if want := []string{"shop: CREATE TABLE app.later", "shop: DROP TABLE app.later"}; !slices.Equal(noted, want) {
		t.Errorf("noted is %v, want %v", noted, want)
	}

	// A refresh is no change of the schema: it is carried.
	s.blue.do("shop", "insert into app.orders (item) values ('one more');\nrefresh materialized view app.totals")
	must(t, s.forward.CatchUp(s.ctx))
	views, err := s.forward.CarryRefreshes(s.ctx)
	must(t, err)
	if got := s.green.ask("shop", "select n from app.totals"); got != "3001" || len(views) != 1 {
		t.Errorf("after the refresh of %v there are %s", views, got)
	}
}

// What can't be carried is found before anything is made, each under its own name.
func TestWhatIsNotCarriedIsFound(t *testing.T) {
	i := newInstance(t, 17, "")
	i.configure("max_logical_replication_workers = 1\nmax_worker_processes = 2\n")
	i.start(i.Programs, i.Data.Path())
	if facts, err := bluegreen.Examine(t.Context(), i.side("blue")); err != nil || len(change.CheckCarry(facts)) > 0 {
		t.Errorf("of a new server it says %v, %v", change.CheckCarry(facts), err)
	}
	i.do("postgres", "create database shop;\ncreate database shapes is_template true;\n"+
		"create database \"closed shapes\" is_template true allow_connections false;\n"+
		"create database old allow_connections false")
	i.do("template1", "create table rows (n int primary key);\ncreate materialized view v as select 1 as n;\n"+
		"create view w as select 1 as n")
	i.do("shop", `create table no_key (n int);
create table late_key (n int primary key deferrable);
create table nothing (n int primary key);
alter table nothing replica identity nothing;
create table by_json (a json);
alter table by_json replica identity full;
create table by_json_with_key (id int primary key, a json);
alter table by_json_with_key replica identity full;
create table generated_full (id int primary key, n int, double int generated always as (n * 2) stored);
alter table generated_full replica identity full;
create table generated_key (n int, k int generated always as (n + 1) stored primary key);
create table generated_index (n int primary key, k int generated always as (n + 1) stored unique not null);
alter table generated_index replica identity using index generated_index_k_key;
create table generated_elsewhere (n int, k int generated always as (n + 1) stored, primary key (n) include (k));
create unique index on generated_elsewhere (k);
create table outbox (id int primary key, tx xid8, seen pg_snapshot[], row by_json);
create domain tx as xid8;
create type work as (id int, tx tx);
create table in_types (id int primary key, work work[], many txid_snapshot, n bigint default txid_current());
create unlogged table fleeting (n int primary key);
create table guarded (n int primary key);
alter table guarded enable row level security, force row level security;
create function f() returns trigger language plpgsql as 'begin return null; end';
create trigger always after insert on guarded for each row execute function f();
alter table guarded enable always trigger always;
create trigger sometimes after insert on nothing for each row execute function f();
select lo_create(0);
select pg_create_logical_replication_slot('others', 'pgoutput');
select pg_create_logical_replication_slot('toban_to_green_5', 'pgoutput');
select pg_replication_origin_create('sink');
create subscription elsewhere connection 'dbname=elsewhere' publication p with (connect = false);
create subscription toban_to_blue connection 'dbname=elsewhere' publication p with (connect = false);
create schema toban_sides;
begin;
insert into no_key values (1);
prepare transaction 'open'`)
	i.do("postgres", "drop extension plpgsql")
	i.do("template1", "drop extension plpgsql")
	facts, err := bluegreen.Examine(t.Context(), i.side("blue"))
	must(t, err)
	got := map[string]string{}
	for _, f := range change.CheckCarry(facts) {
		got[f.Reason] = strings.Join(f.Objects, ", ")
	}
	want := map[string]string{
		change.NoReplicaIdentity:    "shop: public.late_key, shop: public.no_key, shop: public.nothing",
		change.IdentityIncomparable: "shop: public.by_json (a json)",
		change.GeneratedIdentity: "shop: public.generated_full (double), shop: public.generated_index (k), " +
			"shop: public.generated_key (k)",
		change.TransactionNumbers: "shop: public.in_types (many txid_snapshot), " +
			"shop: public.in_types (work public.work[]), shop: public.outbox (seen pg_snapshot[]), " +
			"shop: public.outbox (tx xid8)",
		change.TemplateDatabases:  "closed shapes, shapes",
		change.TemplateRows:       "public.rows, public.v",
		major.ClosedDatabases:     "old",
		change.UnloggedTables:     "shop: public.fleeting",
		change.ForcedRowSecurity:  "shop: public.guarded",
		change.AlwaysTriggers:     "shop: always on public.guarded",
		change.LargeObjects:       "shop: 1",
		major.LogicalSlots:        "others, toban_to_green_5",
		change.Subscriptions:      "shop: elsewhere, shop: toban_to_blue",
		change.ReplicationOrigins: "sink",
		change.TooFewWorkers: "max_logical_replication_workers is 1, and must be 2 at least, " +
			"max_worker_processes is 2, and must be 3 at least", // PostgreSQL's own processes are no extension's
		change.NameTaken:           "shop",
		change.LanguageMissing:     "postgres, template1",
		major.PreparedTransactions: "open (shop)",
	}
	for reason, objects := range want {
		if got[reason] != objects {
			t.Errorf("%s: %q, want %q", reason, got[reason], objects)
		}
	}
	if len(got) != len(want) {
		t.Errorf("found are %v", got)
	}
}

// A side that is too small for all databases does not begin to follow, and has room as soon as it is large enough.
func TestASideWithoutRoomDoesNotFollow(t *testing.T) {
	s := newBlue(t, 17)
	position := s.publish()
	s.copyTo(position, 17)
	restart := func(workers int) {
		s.stopGreen(syscall.SIGINT)
		s.green.configure(fmt.Sprintf("max_logical_replication_workers = %d\n", workers))
		s.stopGreen = s.green.start(s.green.Programs, s.green.Data.Path())
	}
	restart(1)
	must(t, s.forward.Adopt(s.ctx))
	err := s.forward.Follow(s.ctx, position)
	if !inTheWay(err, change.TooFewWorkers, "max_logical_replication_workers is 1, and must be 2 at least") {
		t.Errorf("it says %v", err)
	}
	if n := s.green.ask("postgres", "select count(*) from pg_subscription"); n != "0" {
		t.Errorf("there are %s subscriptions", n)
	}
	restart(2)
	s.follow(position)
	must(t, s.forward.CatchUp(s.ctx))
}

// Cancelled at any moment, blue is as it was: its schema, letter by letter, and no slot keeps WAL.
func TestACancelledLinkLeavesNoTrace(t *testing.T) {
	s := newBlue(t, 17)
	before := s.blue.dump()
	cancel := func(after string) {
		t.Helper()
		for range 2 {
			must(t, bluegreen.Cancel(s.ctx, s.blue.side("blue")))
		}
		if got := s.blue.dump(); got != before {
			t.Errorf("cancelled after %s, the schema is another one:\n%s", after, difference(before, got))
		}
		if n := s.blue.ask("postgres", "select count(*) from pg_replication_slots"); n != "0" {
			t.Errorf("cancelled after %s, there are %s slots", after, n)
		}
	}
	cancel("nothing")
	s.publish()
	cancel("its publication")
	position := s.publish()
	s.copyTo(position, 17)
	s.follow(position)
	s.same(s.forward)
	must(t, s.forward.Prepare(s.ctx, s.back, deadline))
	if s.blue.dump() == before {
		t.Error("a dump does not show the link")
	}
	cancel("all was ready")
}

// dump is all of the schemas and roles of a server.
func (i *instance) dump() string {
	i.Helper()
	out, err := exec.Command(filepath.Join(i.Programs.Dir, "pg_dumpall"), "-h", i.Server.Run, "-p",
		strconv.Itoa(i.Port), "-U",
		"postgres", "--schema-only", "--restrict-key", "test").Output()
	must(i, err)
	return string(out)
}

// difference are the lines that only one of two texts has; where both have all, from where on their order differs.
func difference(a, b string) string {
	var all []string
	for _, x := range []struct{ sign, has, lacks string }{{"-", a, b}, {"+", b, a}} {
		lines := strings.Split(x.lacks, "\n")
		for line := range strings.Lines(x.has) {
			if !slices.Contains(lines, strings.TrimSuffix(line, "\n")) {
				all = append(all, x.sign+line)
			}
		}
	}
	if len(all) > 0 {
		return strings.Join(all, "")
	}
	one, other := strings.SplitAfter(a, "\n"), strings.SplitAfter(b, "\n")
	for i := range min(len(one), len(other)) {
		if one[i] != other[i] {
			const some = 12
			return fmt.Sprintf("line %d:\n%sand\n%s", i+1, strings.Join(one[i:min(i+some, len(one))], ""),
				strings.Join(other[i:min(i+some, len(other))], ""))
		}
	}
	return ""
}
