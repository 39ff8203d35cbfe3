package upgrade_test

import (
	"slices"
	"testing"

	change "toban.dev/internal/change/bluegreen"
	"toban.dev/internal/change/major"
	"toban.dev/internal/work/bluegreen"
)

// otherwiseKept is what two major versions keep in different ways, without being another thing.
const otherwiseKept = `create schema kept authorization app;
set role app;
create table kept.named (id int primary key, a int constraint a_is_there not null, b int not null);
alter table kept.named rename b to renamed;
create table kept.parent (a int, b int not null);
alter table kept.parent replica identity full;
create table kept.child (c int not null, primary key (c)) inherits (kept.parent);
alter table kept.child alter a set not null;
create table kept.kept_by_key (a int, b int, primary key (a, b));
create table kept.parts (n int not null, m int, primary key (n)) partition by range (n);
create table kept.part partition of kept.parts for values from (0) to (10);
alter table kept.part alter m set not null;
create domain kept.there as int constraint is_there not null;
create table kept.of_domain (id int primary key, d kept.there);
reset role;
set search_path = 'kept,public';
select set_config('search_path', '"$user",kept,"public",pg_catalog', false);
create function kept.current() returns int language sql set search_path from current as 'select 1';
alter role app set search_path from current;
alter role app in database shop set search_path from current;
set local_preload_libraries = '';
select set_config('search_path', '  kept , "Other"  ,public ', false);
create procedure kept.spaced() language sql set search_path from current as 'select 1';
alter database shop set search_path from current;
set search_path = ''`

// What two major versions keep in different ways is no difference: names of NOT NULL constraints, which PostgreSQL 18
// alone has, and lists of names that an upgrade writes anew. Another list is one.
func TestWhatIsKeptOtherwiseIsNoDifference(t *testing.T) {
	s := newBlue(t, 17)
	s.blue.do("shop", otherwiseKept)
	position := s.publish()
	s.copyTo(position, 18)
	const (
		functions = "select string_agg(proconfig::text, ';' order by proname) from pg_proc where " +
			"proconfig is not null and pronamespace = 'kept'::regnamespace"
		settings = "select string_agg(setconfig::text, ';' order by setrole, setdatabase) from pg_db_role_setting"
		named    = "select count(*) from pg_constraint where contype = 'n' and conname = 'named_a_not_null'"
	)
	for _, query := range []string{functions, settings, named} {
		if blue := s.blue.ask("shop", query); blue == s.green.ask("shop", query) {
			t.Errorf("both sides have the same, so this shows nothing: %s", blue)
		}
	}
	s.follow(position)
	must(t, s.forward.CatchUp(s.ctx))
	must(t, s.forward.Look(s.ctx))
	s.same(s.forward)
	s.hiddenChangesAreFound([]hidden{
		{"shop", unnoticed + "alter function kept.current() set search_path = kept, \"$user\", public, pg_catalog",
			unnoticed + "alter function kept.current() set search_path = \"$user\", kept, public, pg_catalog",
			bluegreen.DefinitionsDiffer, "shop: function kept.current()"},
		{"shop", "alter role app set search_path = \"Kept\"",
			"alter role app set search_path = \"$user\", kept, public, pg_catalog", bluegreen.RolesDiffer,
			"settings of app in all databases"},
	})
}

// A partition that is detached in part has no rows in its table any more, and an upgrade would attach it anew: it is
// refused before a copy is made, and by each look after that, until it is detached.
func TestAPartitionThatIsDetachedInPartIsRefused(t *testing.T) {
	s := newBlue(t, 17)
	s.blue.do("shop", `create table app.whole (n int primary key) partition by range (n);
create table app.whole_1 partition of app.whole for values from (0) to (10);
create table app.whole_2 partition of app.whole for values from (10) to (20);
insert into app.whole select generate_series(0, 19)`)
	position := s.publish()
	s.copyTo(position, 17)
	s.follow(position)
	holds := s.session("shop", "begin", "select from app.whole")
	detach := "alter table app.whole detach partition app.whole_1 concurrently"
	if _, err := s.session("shop", "set lock_timeout = '200ms'").Exec(s.ctx, detach); err == nil {
		t.Error("it did not wait for who reads the table")
	}
	_, err := holds.Exec(s.ctx, "commit")
	must(t, err)
	facts, err := bluegreen.Examine(s.ctx, s.blue.side("blue"))
	must(t, err)
	if r := change.CheckCarry(facts); len(r) != 1 || r[0].Reason != major.DetachPending ||
		!slices.Equal(r[0].Objects, []string{"shop: app.whole_1"}) {
		t.Errorf("it says %+v", r)
	}
	if err := s.forward.Look(s.ctx); !inTheWay(err, major.DetachPending, "shop: app.whole_1") {
		t.Errorf("while it follows it says %v", err)
	}
	s.blue.do("shop", "alter table app.whole detach partition app.whole_1 finalize")
	facts, err = bluegreen.Examine(s.ctx, s.blue.side("blue"))
	if must(t, err); len(change.CheckCarry(facts)) > 0 {
		t.Errorf("detached, it says %+v", change.CheckCarry(facts))
	}
}
