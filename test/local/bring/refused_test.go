package bring_test

import (
	"fmt"
	"hash/fnv"
	"testing"
)

func TestWhatIsRefused(t *testing.T) {
	each(t, map[string]func(*pair){
		"what is no table, or was not there": func(p *pair) {
			p.was(`create table orders (a int); create schema sales; create table sales.items (a int);
				create view v as select 1; create materialized view m as select 1; create sequence s;`)
			for name, words := range map[string][]string{
				"ordres":              {"there was no table public.ordres", "public.orders"},
				"items":               {"There were: sales.items"},
				"Orders":              {"There were: public.orders"},
				"nothing.like.that":   {"write schema.name"},
				`"open`:               {"a quote is not closed"},
				"v":                   {"public.v is a view, not a table: ask for the tables that it reads"},
				"m":                   {"materialized view"},
				"s":                   {"public.s is a sequence"},
				"pg_catalog.pg_class": {"PostgreSQL's own"},
			} {
				p.refused(p.options(name), words...)
			}
			o := p.options("orders")
			o.Database = "nowhere"
			p.refused(o, "there was no database nowhere", p.database)
			o.Database, o.Suffix = p.database, "Not so'"
			p.refused(o, "the suffix")
			o = p.options("orders", "public.orders")
			p.refused(o, "comes along with")
		},
		"a foreign table": func(p *pair) {
			p.on(p.database, `create foreign data wrapper w; create server s foreign data wrapper w;
				create foreign table f (a int) server s`)
			p.refused(p.options("f"), "public.f is a foreign table", "on another server")
		},
		"a table that needs what is gone": func(p *pair) {
			p.was(`create type kind as enum ('a'); create domain pos as int; create function one() returns int
				language sql as 'select 1'; create sequence numbers; create schema extra;
				create table t (a kind, b pos, c int default one(), d int default nextval('numbers'));
				create table extra.u (a int)`)
			p.then(`drop table t; drop type kind; drop domain pos; drop function one(); drop sequence numbers;
				drop table extra.u; drop schema extra`)
			p.refused(p.options("t"), "type public.kind", "type public.pos", "function public.one()",
				"sequence public.numbers", "Restore that first")
			p.refused(p.options("extra.u"), "the schema extra of extra.u is not there any more")
		},
		"an enum that lacks a value": func(p *pair) {
			p.was("create type kind as enum ('a', 'b'); create table t (a kind); insert into t values ('b')")
			p.then("drop table t; drop type kind; create type kind as enum ('a')")
			p.refused(p.options("t"), "invalid input value for enum")
		},
		"what is in the way and not of this restore": func(p *pair) {
			p.was("create table t (a int primary key)")
			p.then("create table t_" + suffix + " (mine int)")
			p.refused(p.options("t"), "t_"+suffix+" is there and was not made by this restore")
			p.then("drop table t_" + suffix + "; create table t_before_20261123_1200 (mine int)")
			p.refused(p.replace("t"), "t_before_20261123_1200 is there and was not made by this restore")
			p.then("drop table t_before_20261123_1200; create schema mine")
			h := fnv.New32a()
			_, _ = h.Write([]byte(p.database))
			role := fmt.Sprintf("toban_load_%s_%08x", suffix, h.Sum32())
			p.primary.Do(p.T, "postgres", "create role "+role)
			p.refused(p.options("t"), "the role", "was not made by this restore")
			p.primary.Do(p.T, "postgres", "drop role "+role)
			p.one(p.options("t"))
			p.want("1", "select count(*) from pg_namespace where nspname = 'mine'")
		},
		"a table of an extension": func(p *pair) {
			p.on(p.database, "create table t (a int); alter extension plpgsql add table t")
			p.refused(p.options("t"), "extension plpgsql")
		},
	})
}
