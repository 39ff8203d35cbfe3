package bring_test

import (
	"strings"
	"testing"
)

func TestATableTakesThePlaceOfThePresentOne(t *testing.T) {
	each(t, map[string]func(*pair){
		"and stays the same table for all others": replacePresent,
		"which is gone": replaceGone,
		"which is gone, with rows that have no partner": func(p *pair) {
			p.was(orders)
			p.then("drop table orders; delete from customers where id = 3")
			o := p.one(p.replace("orders"))
			if !strings.Contains(o.Says, "orders_customer_fkey, which is NOT VALID") {
				p.Errorf("it says %q", o.Says)
			}
			p.want("false", "select convalidated from pg_constraint where conname = 'orders_customer_fkey'")
		},
		"whose columns do not fit any more": func(p *pair) {
			p.was("create table t (a int primary key, b int, c int); insert into t values (1, 2, 3)")
			p.then("alter table t drop column b; alter table t alter c type text; alter table t add d int;" +
				"update t set d = 1; alter table t alter d set not null")
			p.refused(p.replace("t"), "column b is not there any more", "column c was integer and is text",
				"column d is NOT NULL", "stays as public.t_"+suffix)
			p.want("2", "select b from t_"+suffix)
			p.want("1", "select d from t")
		},
		"with a new column that has a default": func(p *pair) {
			p.was("create table t (a int primary key); insert into t values (1), (2)")
			p.then("alter table t add d int not null default 7; delete from t")
			p.one(p.replace("t"))
			p.want("14", "select sum(d) from t")
		},
		"to which others refer that would lose their partner": func(p *pair) {
			p.was("create table t (a int primary key); create table u (t int references t on delete cascade)")
			p.then("insert into t values (1), (2); insert into u values (1), (1), (2)")
			p.refused(p.replace("t"), "3 rows of public.u would have no partner in public.t (u_t_fkey)")
			p.want("3", "select count(*) from u")
			p.want("2", "select count(*) from t")
			p.want("<nil>", "select to_regclass('t_before_20261123_1200')::oid::int where false union all "+
				"select null from t where a = 1")
		},
		"together with those that it refers to": func(p *pair) {
			p.was(`create table t (a int primary key); create table u (t int references t on delete cascade);
				insert into t values (1); insert into u values (1)`)
			p.then("delete from t; insert into t values (2); insert into u values (2)")
			objects := p.bring(p.replace("u", "t"))
			if len(objects) != 2 || objects[0].As != "public.u" || objects[1].Kept != "public.t_before_20261123_1200" {
				p.Errorf("it has brought %+v", objects)
			}
			p.want("1", "select sum(t) from u")
			p.want("1", "select sum(a) from t")
			p.want("2", "select a from t_before_20261123_1200")
		},
		"in spite of triggers that always fire, and of row level security": func(p *pair) {
			p.was("create table t (a int primary key); insert into t values (1), (2)")
			p.then(`delete from t; insert into t values (3);
				create table seen (a text);
				create function see() returns trigger language plpgsql as
					$$ begin insert into public.seen values (tg_op); return null; end $$;
				create trigger always before insert or delete on t for each row execute function see();
				alter table t enable always trigger always;
				create trigger normal before insert or delete on t for each row execute function see();
				alter table t enable row level security, force row level security`)
			p.one(p.replace("t"))
			p.want("1, 2", "select string_agg(a::text, ', ' order by a) from t")
			p.want("3", "select a from t_before_20261123_1200")
			p.want("0", "select count(*) from seen")
			p.want("A", "select tgenabled::text from pg_trigger where tgname = 'always'")
			p.want("true", "select relforcerowsecurity from pg_class where relname = 't'")
		},
		"that is partitioned, with a foreign key to it": func(p *pair) {
			p.was(`create table logs (at int primary key) partition by range (at);
				create table logs_1 partition of logs for values from (0) to (10);
				create table logs_2 partition of logs for values from (10) to (20);
				create table refs (at int references logs); insert into logs values (1), (11);
				insert into refs values (11)`)
			p.then("delete from refs; delete from logs; insert into logs values (2); insert into refs values (2)")
			p.refused(p.replace("logs"), "1 rows of public.refs would have no partner in public.logs")
			p.then("delete from refs")
			p.one(p.replace("logs"))
			p.want("12", "select sum(at) from logs")
			p.want("2", "select at from logs_before_20261123_1200")
		},
		"whose new CHECK the rows break": func(p *pair) {
			p.was("create table t (a int primary key); insert into t values (1)")
			p.then("delete from t; alter table t add check (a > 5)")
			p.refused(p.replace("t"), "violates check constraint")
			p.want("1", "select a from t_"+suffix)
		},
	})
}

func replacePresent(p *pair) {
	p.was(orders + "create view all_orders as select * from orders; create publication pub for table orders;")
	p.then(`create table items (o bigint references orders on delete cascade); insert into items values (500);
		delete from orders where id < 400; alter table orders rename "Mixed Case" to x;
		alter table orders rename x to "Mixed Case"`)
	oid := p.ask("select 'orders'::regclass::oid::text")
	audit := p.ask("select count(*) from audit")
	o := p.one(p.replace("orders"))
	if o.As != "public.orders" || o.Kept != "public.orders_before_20261123_1200" || o.OnlyRestored != 399 {
		p.Errorf("it is %+v", o)
	}
	p.want(oid, "select 'orders'::regclass::oid::text")
	p.want("1000", "select count(*) from all_orders")
	p.want("601", "select count(*) from orders_before_20261123_1200")
	p.want("1", "select count(*) from items")
	p.want(audit, "select count(*) from audit")
	p.want("1001", "select nextval('orders_id_seq')")
	p.want("1001", "select nextval(pg_get_serial_sequence('orders', 'line'))")
	p.want("1", "select count(*) from pg_publication_rel")
	p.want("<nil>", "select to_regclass('"+beside+"')::text")
	p.then("insert into orders (customer, price, amount) values (1, 1, 1)")
	if again := p.one(p.replace("orders")); again != o {
		p.Errorf("again it is %+v", again)
	}
	p.want("1001", "select count(*) from orders")
	p.want("601", "select count(*) from orders_before_20261123_1200")
}

func replaceGone(p *pair) {
	p.was(orders)
	p.then("drop table orders")
	o := p.one(p.replace("orders"))
	if o.As != "public.orders" || o.Kept != "" || o.Rows != 1000 || o.Says != "" {
		p.Errorf("it is %+v", o)
	}
	p.want("1000", "select count(*) from orders")
	p.want("Orders Line, orders_customer, orders_pkey", "select string_agg(relname, ', ' order by relname) "+
		"from pg_index i join pg_class c on c.oid = indexrelid where indrelid = 'orders'::regclass")
	p.want("true", "select convalidated from pg_constraint where conname = 'orders_customer_fkey'")
	p.want("noted", "select tgname::text from pg_trigger where tgrelid = 'orders'::regclass and not tgisinternal")
	p.want("mine", "select polname::text from pg_policy where polrelid = 'orders'::regclass")
	p.want("true", "select has_table_privilege('reader', 'orders', 'select')")
	p.want("1001", "select nextval('orders_id_seq')")
	if again := p.one(p.replace("orders")); again != o {
		p.Errorf("again it is %+v", again)
	}
}
