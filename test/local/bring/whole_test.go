package bring_test

import (
	"strings"
	"testing"

	"toban.dev/internal/work/tablerestore"
)

// sales is a schema with objects of two owners.
const sales = `
	create schema sales; create type sales.state as enum ('open', 'done');
	create sequence sales.numbers;
	create table sales.customers (id int primary key);
	create table sales.items (id int primary key default nextval('sales.numbers'), state sales.state,
		customer int references sales.customers);
	create function sales.done() returns bigint language sql as
		$$ select count(*) from sales.items where state = 'done' $$;
	create view sales.open as select * from sales.items where state = 'open';
	create materialized view sales.counted as select count(*) from sales.items;
	grant usage on schema sales to reader; grant select on sales.items to reader;
	insert into sales.customers values (1); insert into sales.items (state, customer) values ('open', 1), ('done', 1),
		('open', null); refresh materialized view sales.counted;
	reset role; create table sales.others (a int); alter table sales.others owner to other;
	grant usage on schema sales to other;`

func (p *pair) schema(replace bool) tablerestore.Options {
	p.Helper()
	o := p.options()
	o.Schemas, o.Replace = []string{"sales"}, replace
	return o
}

func TestASchemaComesBack(t *testing.T) {
	const as = "sales_" + suffix
	each(t, map[string]func(*pair){
		"beside": func(p *pair) {
			p.was(sales)
			p.then("delete from sales.items where id = 1")
			o := p.one(p.schema(false))
			if o.As != as || o.Rows != 4 || o.Present != 3 || o.OnlyRestored != 1 || !o.Compared {
				p.Errorf("it is %+v", o)
			}
			p.want("2", "select count(*) from "+as+".open")
			p.want("3", "select count from "+as+".counted")
			p.want("4", "select nextval('"+as+".numbers')")
			p.want("other", "select tableowner from pg_tables where schemaname = '"+as+"' and tablename = 'others'")
			p.want("app", "select nspowner::regrole::text from pg_namespace where nspname = '"+as+"'")
			p.want("0", "select count(*) from pg_constraint "+
				"where connamespace = '"+as+"'::regnamespace and contype = 'f'")
			p.want("false", "select has_schema_privilege('other', '"+as+"', 'create')")
			p.want("2", "select count(*) from sales.items")
		},
		"in place": func(p *pair) {
			p.was(sales)
			p.then("drop table sales.items cascade")
			o := p.one(p.schema(true))
			if o.As != "sales" || o.Kept != "sales_before_20261123_1200" || o.Rows != 4 {
				p.Errorf("it is %+v", o)
			}
			p.want("3", "select count(*) from sales.items")
			p.want("1", "select sales.done()")
			p.want("1", "select count(*) from pg_constraint "+
				"where connamespace = 'sales'::regnamespace and contype = 'f'")
			p.want("true", "select has_table_privilege('reader', 'sales.items', 'select') and "+
				"has_schema_privilege('reader', 'sales', 'usage')")
			p.want("1", "select count(*) from sales_before_20261123_1200.customers")
			if again := p.one(p.schema(true)); again != o {
				p.Errorf("again it is %+v", again)
			}
		},
		"in place, where others depend on it": func(p *pair) {
			p.was(sales)
			p.then(`create view public.mine as select * from sales.items; create table public.u (s sales.state,
				c int references sales.customers)`)
			p.refused(p.schema(true), "objects outside of schema sales depend on it", "public.mine", "public.u",
				"stays as "+as)
			p.want("3", "select count(*) from "+as+".items")
		},
		"which is gone": func(p *pair) {
			p.was(sales)
			p.primary.Do(p.T, p.database, "drop schema sales cascade")
			if o := p.one(p.schema(true)); o.As != "sales" || o.Kept != "" {
				p.Errorf("it is %+v", o)
			}
			p.want("3", "select count(*) from sales.items")
		},
		"which was not there, or has an extension": func(p *pair) {
			p.was("create schema sales")
			p.primary.Do(p.T, p.database, "create schema sales_"+suffix)
			p.refused(p.schema(false), "sales_"+suffix+" is there and was not made by this restore")
			o := p.schema(false)
			o.Schemas = []string{"sale"}
			p.refused(o, "there was no schema sale ", "There were: public, sales")
			o.Schemas = []string{"pg_catalog"}
			p.refused(o, "PostgreSQL's own")
			p.on(p.database, "create extension pg_trgm schema sales")
			p.refused(p.schema(false), "the extension pg_trgm is in schema sales")
		},
	})
}

// What only the present schema has is missing in what takes its place.
func TestWhatOnlyThePresentSchemaHasIsNamed(t *testing.T) {
	each(t, map[string]func(*pair){
		"beside, with things that are only there now": func(p *pair) {
			p.was(sales)
			p.was("create table sales.p (a int) partition by list (a)")
			p.then(`create table sales."New" (id serial primary key); insert into sales."New" select;
				insert into sales."New" select; create table sales.p1 partition of sales.p for values in (1);
				create view sales.seen as select 1 as one; create sequence sales.drawn;
				create table sales.hidden (a int); alter table sales.hidden force row level security,
				enable row level security; reset role; alter table sales.others rename to later`)
			o := p.one(p.schema(false))
			if o.OnlyPresent != 2 || o.Compared || !strings.Contains(o.Says, "Only the present schema has "+
				"table New (2 rows), sequence drawn, table hidden (not counted: query would be affected by row-level "+
				`security policy for table "hidden" (SQLSTATE 42501)), table later (0 rows), view seen: the restored`) {
				p.Errorf("it is %+v", o)
			}
		},
		"in place, with row level security that is forced": func(p *pair) {
			p.was(sales)
			p.was("alter table sales.items force row level security, enable row level security")
			o := p.one(p.schema(true))
			if o.As != "sales" || o.Compared || !strings.Contains(o.Says, "sales.items: It is not counted: ") {
				p.Errorf("it is %+v", o)
			}
			p.want("3", "select count(*) from sales.items")
		},
		"in place, though something is only there now": func(p *pair) {
			p.was(sales)
			p.then("create table sales.new (a int); insert into sales.new values (1), (2)")
			o := p.one(p.schema(true))
			if o.OnlyPresent != 2 || !o.Compared || !strings.Contains(o.Says, "has table new (2 rows): the restored") {
				p.Errorf("it is %+v", o)
			}
			p.want("2", "select count(*) from sales_before_20261123_1200.new")
		},
	})
}

func TestADatabaseComesBack(t *testing.T) {
	each(t, map[string]func(*pair){
		"beside": func(p *pair) {
			p.was(sales + "create extension pg_trgm schema sales; create publication pub for all tables;")
			p.on("postgres", "alter database "+p.database+" connection limit 7; comment on database "+p.database+
				" is 'Mine'; revoke connect on database "+p.database+" from public; grant connect on database "+
				p.database+
				" to reader; alter database "+p.database+" set work_mem = '5MB'")
			o := p.one(p.options())
			as := p.database + "_" + suffix
			if o.As != as || o.Rows != 4 || !strings.Contains(o.Says, "ALTER DATABASE … SET") {
				p.Errorf("it is %+v", o)
			}
			const of = " from pg_database where datname = current_database()"
			for query, value := range map[string]string{
				"select count(*) from sales.items":                                       "3",
				"select datconnlimit" + of:                                               "7",
				"select datdba::regrole::text" + of:                                      "app",
				"select shobj_description(oid, 'pg_database') like 'Mine%'" + of:         "true",
				"select has_database_privilege('reader', current_database(), 'connect')": "true",
				"select has_database_privilege('other', current_database(), 'connect')":  "false",
				"select count(*) from pg_extension where extname = 'pg_trgm'":            "1",
				"select count(*) from pg_publication":                                    "0",
				"select count(*) from pg_constraint where contype = 'f'":                 "1",
				"select has_table_privilege('reader', 'sales.items', 'select')":          "true",
				"select has_schema_privilege('other', 'sales', 'create')":                "false",
			} {
				if got := p.primary.Ask(p.T, as, query); got != value {
					p.Errorf("%s gives %s, expected %s", query, got, value)
				}
			}
			if again := p.one(p.options()); again != o {
				p.Errorf("again it is %+v", again)
			}
		},
		"which is there": func(p *pair) {
			p.was(sales)
			p.refused(p.replace(), "the database "+p.database+" is there", "RENAME")
			p.primary.Do(p.T, "postgres", "create database "+p.database+"_"+suffix)
			p.refused(p.options(), "was not made by this restore")
		},
		"which is gone": func(p *pair) {
			p.was(sales)
			p.refused(p.options("nothing"), "there was no table")
			p.primary.Do(p.T, "postgres", "drop database "+p.database)
			p.refused(p.options("sales.items"), "restore it as a whole")
			if o := p.one(p.replace()); o.As != p.database {
				p.Errorf("it is %+v", o)
			}
			p.want("3", "select count(*) from sales.items")
		},
	})
}
