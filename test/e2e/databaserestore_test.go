//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
)

// Somebody deletes rows of one table by mistake, and the application writes on. The table comes back beside the present
// one, with what differs; then the rows that were there take their place again, and nobody else has noticed.
func TestOneTableComesBack(t *testing.T) {
	s := begin(t)
	s.apply(withBackup("shop", 1, "schedule: \"0 3 * * *\""))
	s.ready("shop")
	s.backedUp("shop")
	s.sql("shop", `create table customers (id int primary key);
		create table orders (id bigserial primary key, customer int references customers, what text not null);
		create table items (id int primary key, in_order bigint references orders);
		create view whats as select what from orders;
		insert into customers select generate_series(1, 10);
		insert into orders (customer, what) select 1 + i % 10, 'order ' || i from generate_series(1, 1000) i;
		insert into items values (1, 1000)`)
	moment := s.clock("shop")
	s.sql("shop", `delete from orders where id <= 300; update orders set what = 'wrong' where id between 301 and 310;
		insert into customers values (11); insert into orders (customer, what) values (11, 'written after')`)
	s.archived("shop")

	out := s.toban("restore", "shop", "--table", "orders", "--to", moment)
	if !strings.Contains(out, "only in the restored one: 300 rows; only in the present one: 1; different: 10") {
		t.Errorf("it says %s", out)
	}
	beside := s.ask("shop",
		"select relname from pg_class where relname ~ '^orders_restored_[0-9a-f_]*$' and relkind = 'r'")
	if got := s.ask("shop", fmt.Sprintf("select count(*) || ' ' || count(distinct what) from %s", beside)); got !=
		"1000 1000" {
		t.Errorf("%s has %s", beside, got)
	}
	if got := s.ask("shop", "select count(*) from orders"); got != "701" {
		t.Errorf("orders has %s rows, which were not asked for back", got)
	}

	s.apply(fmt.Sprintf("apiVersion: toban.dev/v1\nkind: DatabaseRestore\nmetadata: {name: in-place}\nspec:\n"+
		"  sampleDB: shop\n  tables: [public.orders]\n  mode: Replace\n  target: {time: %q}\n", moment))
	s.until(func(ctx context.Context) error {
		phase, err := s.Kubectl(ctx, "get", "databaserestore", "in-place",
			"-o", "jsonpath={.status.phase} {.status.conditions[*].message}")
		if err == nil && !strings.HasPrefix(phase, "Completed ") {
			return fmt.Errorf("it is %s", phase)
		}
		return err
	})
	kept := s.run("get", "databaserestore", "in-place", "-o", "jsonpath={.status.objects[0].kept}")
	for _, c := range []struct{ query, want string }{
		{"select count(*) || ' ' || count(distinct what) from orders", "1000 1000"},
		{"select count(*) from whats where what = 'wrong'", "0"},
		{"select count(*) from " + kept + " where what = 'wrong'", "10"},
		{"select count(*) from customers", "11"},
		{"insert into orders (customer, what) values (1, 'the next') returning id > 1001", "true"},
	} {
		if got := s.ask("shop", c.query); got != c.want {
			t.Errorf("%s: %s, expected %s", c.query, got, c.want)
		}
	}
	_, err := s.Toban(s.ctx, "restore", "shop", "--table", "orderz", "--to", moment)
	if err == nil || !strings.Contains(err.Error(), "orderz") {
		t.Errorf("a table that is not there is restored: %v", err)
	}
	if roles := s.ask("shop", "select count(*) from pg_roles where rolname ~ '^toban_load'"); roles != "0" {
		t.Errorf("%s roles of the restores are left", roles)
	}
}
