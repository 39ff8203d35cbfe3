package bring_test

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"toban.dev/internal/work/tablerestore"
	"toban.dev/test/local/single"
)

// hostile is a table whose owner's code tries to get more than his, wherever it is run, and writes down who ran it.
const hostile = `
	create table seen (who text, session text, super boolean);
	create sequence caught; -- what it says stays also if the transaction is rolled back
	create function public.seize() returns int language plpgsql as $$ declare statement text; begin
		insert into public.seen select current_user, session_user, rolsuper from pg_roles where rolname = current_user;
		if session_user = 'postgres' or (select rolsuper from pg_roles where rolname = current_user) then
			perform nextval('public.caught');
		end if;
		foreach statement in array array['alter role app superuser', 'reset role; alter role app superuser',
			'reset session authorization; alter role app superuser',
			'set session authorization postgres; alter role app superuser',
			'set role postgres; alter role app superuser',
			'set role other; create table public.stolen ()',
			'reset role; set role other; create table public.stolen ()'] loop
			begin execute statement; exception when others then null; end;
		end loop;
		return 1; end $$;
	create function public.quiet(n int) returns int language plpgsql immutable as
		$$ begin perform public.seize(); return n; end $$;
	create domain wary as int check (public.quiet(1) = 1);
	create table t (a int primary key check (public.seize() = 1), b int default public.seize(), w wary,
		g int generated always as (public.quiet(2)) stored);
	create index on t (public.quiet(a)); create index on t ((public.quiet(3) + a)) where public.quiet(4) = 4;
	insert into t (a, w) values (1, 1), (2, 2); truncate seen;`

// asApp runs statements on a server in a session of the role itself: in one of a superuser they would get all there.
func (p *pair) asApp(s *single.Server, statements string) {
	p.Helper()
	conn, err := s.Dial(p.Context(), p.database, "app", "")
	if err != nil {
		p.Fatal(err)
	}
	defer conn.Close(p.Context())
	if _, err := conn.Exec(p.Context(), statements, pgx.QueryExecModeSimpleProtocol); err != nil {
		p.Fatal(err)
	}
}

// innocent fails the test if somebody has got more than he had, or if code has run in the copy, where it would note
// that in a table.
func (p *pair) innocent(noted string) {
	p.Helper()
	p.want("false", "select rolsuper from pg_roles where rolname = 'app'")
	p.want("0", "select count(*) from pg_class where relname = 'stolen'")
	p.want("false", "select is_called from caught")
	p.want("0", "select count(*) from seen where super or session = 'postgres' or who <> 'app'")
	if got := p.former.Ask(p.T, p.database, "select count(*) from "+noted); got != "0" {
		p.Errorf("a user's code has run %s times in the copy", got)
	}
}

func TestAUsersCodeRunsAsItsOwner(t *testing.T) {
	stories := map[string]func(*pair){}
	for name, o := range map[string]func(*pair) tablerestore.Options{
		"beside":     func(p *pair) tablerestore.Options { return p.options("t") },
		"in place":   func(p *pair) tablerestore.Options { return p.replace("t") },
		"the schema": func(p *pair) tablerestore.Options { o := p.options(); o.Schemas = []string{"public"}; return o },
	} {
		stories[name] = func(p *pair) {
			p.asApp(p.former, hostile)
			p.asApp(p.primary, hostile+"; update t set w = 5 where a = 1; truncate seen")
			if got := p.one(o(p)); name != "the schema" && (!got.Compared || got.Different != 1) {
				p.Errorf("it is %+v", got)
			}
			p.innocent(map[bool]string{true: "public_" + suffix + ".seen", false: "seen"}[name == "the schema"])
			if n := p.ask("select count(*) from seen"); n == "0" && name != "the schema" {
				p.Error("no code has run: the test tries nothing")
			}
		}
	}
	stories["the database"] = func(p *pair) {
		p.asApp(p.former, hostile)
		p.asApp(p.primary, hostile)
		p.one(p.options())
		p.innocent("seen")
		database := p.database + "_" + suffix
		if got := p.primary.Ask(p.T, database,
			"select count(*) from seen where super or session = 'postgres' or who <> 'app'"); got != "0" {
			p.Errorf("it has run %s times as somebody else", got)
		}
	}
	each(t, stories)
}

// A restore is needed where somebody has done harm. Who may connect to the database can't keep it from its work.
func TestAUserKeepsNoRestoreOut(t *testing.T) {
	each(t, map[string]func(*pair){
		"by a lock": func(p *pair) {
			p.was("create table t (a int primary key); insert into t values (1)")
			p.then("drop table t")
			conn, err := p.primary.Dial(p.Context(), p.database, "app", "")
			if err != nil {
				p.Fatal(err)
			}
			defer conn.Close(p.Context())
			for _, lock := range []string{ // that of restores, and that of former releases
				"select pg_advisory_lock(x'746f6262'::int, hashtext(current_database()))",
				"select pg_advisory_lock(x'746f62616e62'::bigint)",
			} {
				if _, err := conn.Exec(p.Context(), lock); err != nil {
					p.Fatal(err)
				}
			}
			if got := p.one(p.options("t")); got.Rows != 1 {
				p.Errorf("it is %+v", got)
			}
		},
		"but another restore does": func(p *pair) {
			p.was("create table t (a int primary key); insert into t values (1)")
			o, second := p.options("t"), error(nil)
			o.At = func(point string) {
				if point == "loader" {
					_, second = tablerestore.Run(p.Context(), p.options("t"))
				}
			}
			p.one(o)
			if second == nil || !strings.Contains(second.Error(), "another restore") {
				p.Errorf("a second one beside it ends with %v", second)
			}
		},
	})
}
