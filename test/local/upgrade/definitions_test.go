package upgrade_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"

	"toban.dev/internal/work/bluegreen"
)

// manyDefinitions are objects of as many sorts as there may be in a database, for the superuser to make.
const manyDefinitions = `create role watcher;
create role leaver;
grant watcher to app with admin option;
create schema more authorization app;
grant usage on schema more to watcher;
set role app;
create table more.base (a int primary key default 1 check (a > 0), b text collate "C" unique);
create table more.kid (c int, primary key (a)) inherits (more.base);
create table more.cut (a int primary key, b int, c int);
alter table more.cut drop column b;
create table more.thin (n int primary key, t text);
alter table more.thin drop column t;
create table more.refers (n int, day date, primary key (n, day), foreign key (n, day) references app.parts);
create type more.mood as enum ('b', 'a');
create type more.pair as (n int, text text);
create type more.span as range (subtype = float8);
create domain more.positive as int check (value > 0) not null default 3;
create view more.v with (security_barrier) as select id, n + 1 as m from app.orders where n in (1, 2);
create view more.held as select 1 as one;
create view more.later as select one from app.orders, more.held;
create rule ignored as on delete to more.v do instead nothing;
create function more.f(a int, b text default 'x') returns int language plpgsql set search_path = more stable
	as 'begin return 1; end';
create function more.standard(a int) returns int language sql begin atomic select a + 1; end;
create procedure more.p(inout x int) language sql as 'select 1';
create function more.trigger() returns trigger language plpgsql as 'begin return new; end';
create function more.event() returns event_trigger language plpgsql as 'begin end';
create trigger t before update of item on app.orders for each row when (new.n > 3) execute function more.trigger();
create trigger t after insert on app.parts for each row execute function more.trigger();
create aggregate more.summed (int) (sfunc = int4pl, stype = int, initcond = '0');
create function more.equal(more.pair, more.pair) returns bool language sql as 'select true';
create operator more.=== (leftarg = more.pair, rightarg = more.pair, function = more.equal);
alter table more.base enable row level security;
create policy seen on more.base for select to watcher, leaver using (a > 0);
create index on app.orders (lower(item) text_pattern_ops desc, n) include (f) where n > 5;
create statistics more.st (dependencies) on n, f from app.orders;
create sequence more.small as int increment 7 cycle owned by more.cut.a;
grant select (a), update (b) on more.base to watcher with grant option;
grant all on more.kid to watcher;
revoke execute on function more.standard from public;
alter default privileges in schema more grant select on tables to watcher;
comment on table more.base is 'x';
comment on column more.base.a is 'y';
alter table more.base alter a set statistics 55, set (fillfactor = 70);
create collation more.c (locale = 'C', provider = libc);
create text search dictionary more.d (template = simple, stopwords = english);
create text search configuration more.conf (copy = english);
create publication mine for table more.kid (a);
create extension pg_trgm;
create collation more.copied from "C";
create table more.parted (n int) partition by list (n);
create index on more.parted (n);
reset role;
create publication every for all tables;
create cast (more.pair as text) with inout as assignment;
create access method other type table handler heap_tableam_handler;
create conversion more.conv for 'LATIN1' to 'UTF8' from iso8859_1_to_utf8;
create foreign data wrapper w options (a 'b');
create server elsewhere foreign data wrapper w options (host 'x');
create user mapping for app server elsewhere options (password 'p');
create foreign table more.far (a int) server elsewhere options (t 'q');
create foreign table more.parted_far partition of more.parted for values in (1) server elsewhere options (t 'q');
comment on extension plpgsql is null;
create extension hstore;
create operator family more.fam using btree;
create operator family app.fam using btree;
alter operator family more.fam using btree add operator 1 <(int4, int8);
alter operator family app.fam using btree add operator 1 <(int4, int8);
create event trigger quiet on ddl_command_end when tag in ('CREATE CAST') execute function more.event();
grant execute on function pg_read_file(text) to app;
grant select (subconninfo) on pg_subscription to app;
revoke usage on language plpgsql from public;
grant usage on schema information_schema to watcher;
grant select on all tables in schema information_schema to watcher;
grant insert on information_schema.sql_parts to watcher;
revoke insert on information_schema.sql_parts from watcher;
alter tablespace pg_default set (random_page_cost = 1.1);
grant create on schema public to app;
create table more.left_behind (n int primary key);
alter table more.left_behind owner to leaver;
comment on role app is 'the application';
comment on role pg_monitor is 'who looks';
comment on tablespace pg_default is 'the disk';
comment on database template0 is 'never used';
comment on database postgres is 'for administrators';
comment on database shop is 'the shop'`

// temporary are objects of a session that has not ended. They are in no copy that pg_upgrade has moved.
const temporary = `create temp table held (a int check (a > 0), b text);
comment on table held is 'x';
comment on column held.a is 'x';
comment on constraint held_a_check on held is 'x';
create domain pg_temp.limited as int constraint above check (value > 0);
comment on constraint above on domain pg_temp.limited is 'x';
create aggregate pg_temp.summed (int) (sfunc = int4pl, stype = int, initcond = '0');
create trigger t before insert on held for each row execute function more.trigger();
comment on trigger t on held is 'x';
create rule r as on delete to held do instead nothing;
comment on rule r on held is 'x';
alter table held enable row level security;
create policy p on held using (true);
comment on policy p on held is 'x';
create function pg_temp.f() returns int language sql as 'select 1';
comment on function pg_temp.f() is 'x'`

// hold runs statements in a session that stays until the test ends.
func (i *instance) hold(database, statements string) {
	i.Helper()
	conn, err := i.dial(database)
	must(i, err)
	i.Cleanup(func() { _ = conn.Close(context.Background()) })
	_, err = conn.Exec(i.Context(), statements, pgx.QueryExecModeSimpleProtocol)
	must(i, err)
}

// hidden is what somebody does of which no note tells, and how it is undone. Where nothing undoes it, it stays.
type hidden struct{ database, make, undo, reason, names string }

const unnoticed = "set event_triggers = off;\n"

var hiddenChanges = []hidden{
	{"shop", "create event trigger more on ddl_command_end execute function more.event()", "drop event trigger more",
		bluegreen.DefinitionsDiffer, "shop: event trigger more (only on blue)"},
	{"shop", "alter event trigger quiet disable", "alter event trigger quiet enable", bluegreen.DefinitionsDiffer,
		"shop: event trigger quiet"},
	{"shop", unnoticed + "alter table app.orders owner to leaver", unnoticed + "alter table app.orders owner to app",
		bluegreen.DefinitionsDiffer, "shop: relation app.orders"},
	{"shop", unnoticed + "grant insert on app.orders to watcher", unnoticed + "revoke all on app.orders from watcher",
		bluegreen.DefinitionsDiffer, "shop: relation app.orders"},
	{"shop", unnoticed + "alter function more.f cost 7", unnoticed + "alter function more.f cost 100",
		bluegreen.DefinitionsDiffer, "shop: function more.f(integer,text)"},
	{"shop", unnoticed + "revoke execute on function pg_sleep(float8) from public",
		unnoticed + "grant execute on function pg_sleep(float8) to public", bluegreen.DefinitionsDiffer,
		"shop: rights to PostgreSQL's own pg_sleep(double precision)"},
	{"shop", unnoticed + "revoke select on information_schema.tables from public",
		unnoticed + "grant select on information_schema.tables to public", bluegreen.DefinitionsDiffer,
		"shop: rights to PostgreSQL's own information_schema.tables"},
	{"shop", unnoticed + "alter default privileges for role app in schema more grant insert on tables to watcher",
		unnoticed + "alter default privileges for role app in schema more revoke insert on tables from watcher",
		bluegreen.DefinitionsDiffer, "shop: default privileges of app in more"},
	// No event trigger is told of it.
	{"shop", "reassign owned by leaver to app", unnoticed + "alter table more.left_behind owner to leaver",
		bluegreen.DefinitionsDiffer, "shop: relation more.left_behind"},
	{"shop", unnoticed + "grant usage on language plpgsql to public",
		unnoticed + "revoke usage on language plpgsql from public", bluegreen.DefinitionsDiffer,
		"shop: rights to PostgreSQL's own plpgsql"},
	{"shop", unnoticed + "alter table more.base set (toast.autovacuum_enabled = off)",
		unnoticed + "alter table more.base reset (toast.autovacuum_enabled)", bluegreen.DefinitionsDiffer,
		"shop: relation more.base"},
	{"shop", unnoticed + "alter operator family more.fam using btree drop operator 1 (int4, int8)",
		unnoticed + "alter operator family more.fam using btree add operator 1 <(int4, int8)",
		bluegreen.DefinitionsDiffer, "<(integer,bigint) in more.fam using btree (only on green)"},
	{"shop", unnoticed + "alter policy seen on more.base to watcher",
		unnoticed + "alter policy seen on more.base to watcher, leaver", bluegreen.DefinitionsDiffer,
		"shop: policy seen on more.base"},
	{"shop", unnoticed + "alter user mapping for app server elsewhere options (set password 'q')",
		unnoticed + "alter user mapping for app server elsewhere options (set password 'p')",
		bluegreen.DefinitionsDiffer, "shop: user mapping of app on elsewhere"},
	{"shop", unnoticed + "drop index app.orders_lower_n_f_idx", unnoticed + "create index on app.orders (lower(item) " +
		"text_pattern_ops desc, n) include (f) where n > 5", bluegreen.DefinitionsDiffer,
		"shop: index app.orders_lower_n_f_idx (only on green)"},
	{"template1", "create schema made", "drop schema made", bluegreen.DefinitionsDiffer,
		"template1: schema made (only on blue)"},
	{"shop", "comment on role app is 'another'", "comment on role app is 'the application'", bluegreen.RolesDiffer,
		"comment on role app"},
	{"shop", "grant app to pg_monitor", "revoke app from pg_monitor", bluegreen.RolesDiffer,
		"membership of pg_monitor in app"},
	{"shop", "revoke connect on database template1 from public", "grant connect on database template1 to public",
		bluegreen.RolesDiffer, "database template1"},
	{"shop", "grant create on tablespace pg_default to app", "revoke create on tablespace pg_default from app",
		bluegreen.RolesDiffer, "tablespace pg_default"},
}

// What the copy has brought along is the same on both sides, also of another version; and what nobody has noted of what
// is changed later stops the change.
func TestWhatNobodyHasNotedStopsTheChange(t *testing.T) {
	for _, major := range []int{17, 18} {
		t.Run(fmt.Sprintf("to PostgreSQL %d", major), func(t *testing.T) {
			s := newBlue(t, 17)
			s.blue.do("shop", manyDefinitions)
			s.blue.hold("shop", temporary)
			s.blue.do("postgres", "create database bare")
			s.blue.do("bare", "drop schema public")
			s.blue.do("template1", "drop schema public")
			s.blue.do("postgres", "create database again")
			s.blue.do("again", "create schema public")
			position := s.publish()
			s.copyTo(position, major)
			s.follow(position)
			must(t, s.forward.CatchUp(s.ctx))
			must(t, s.forward.Look(s.ctx))
			s.blue.do("shop", "vacuum full more.thin")
			if toast := "select reltoastrelid from pg_class where oid = 'more.thin'::regclass"; s.blue.ask("shop",
				toast) != "0" {
				t.Error("the TOAST table is there still")
			}
			must(t, s.forward.Look(s.ctx))
			s.hiddenChangesAreFound(hiddenChanges)
			if major == 17 { // else nothing is written for a view, or in another way
				s.looksWithoutHoldingUp()
				s.hiddenChangesAreFound([]hidden{{"shop", unnoticed + "create or replace view more.v with " +
					"(security_barrier) as select id, n + 2 as m from app.orders where n in (1, 2)", unnoticed +
					"create or replace view more.v with (security_barrier) as select id, n + 1 as m from app.orders " +
					"where n in (1, 2)", bluegreen.DefinitionsDiffer, "shop: rule \"_RETURN\" on more.v"}})
			}
			s.hiddenChangesAreFound([]hidden{{"shop", unnoticed + "alter table more.left_behind owner to app;\n" +
				"set event_triggers = on;\ndrop owned by leaver", "", bluegreen.SchemaChanged, "DROP OWNED by a role"}})
		})
	}
}

// looksWithoutHoldingUp has a client hold what a view reads last, and another one want a table that it reads first: it
// gets that, though what is looked at waits.
func (s *sides) looksWithoutHoldingUp() {
	s.Helper()
	holds := s.session("shop", "begin", "lock table more.held in access exclusive mode")
	looked := make(chan error, 1)
	go func() { looked <- s.forward.Look(s.ctx) }()
	s.until("it waits for the client", func() bool {
		return s.blue.ask("shop", "select count(*) from pg_locks where relation = 'more.held'::regclass "+
			"and not granted") == "1"
	})
	s.blue.do("shop", "set lock_timeout = '5s';\nbegin; lock table app.orders in access exclusive mode; commit")
	_, err := holds.Exec(s.ctx, "commit")
	must(s, err)
	must(s, <-looked)
}

func (s *sides) hiddenChangesAreFound(all []hidden) {
	s.Helper()
	for _, c := range all {
		s.blue.do(c.database, c.make)
		if err := s.forward.Look(s.ctx); !inTheWay(err, c.reason, c.names) {
			s.Errorf("after %q it says %v, want %s of %s", c.make, err, c.reason, c.names)
		}
		if c.undo == "" {
			continue
		}
		s.blue.do(c.database, c.undo)
		if err := s.forward.Look(s.ctx); err != nil {
			s.Errorf("after %q it says %v", c.undo, err)
		}
	}
}
