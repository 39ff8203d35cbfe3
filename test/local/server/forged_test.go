package server_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"toban.dev/internal/work/bluegreen"
)

// forged is the schema of a blue/green upgrade as the owner of a database can make it, with its comment and with what
// makes him superuser wherever a superuser touches it.
const forged = `set role app;
	create schema toban_sides;
	comment on schema toban_sides is 'made by Toban for a blue/green upgrade: id';
	create function toban_sides.take() returns bigint language plpgsql as $f$ begin
		if (select rolsuper from pg_catalog.pg_roles where rolname = current_user) then
			execute 'alter role app superuser';
		end if;
		return 1;
	end $f$;
	create function toban_sides.fire() returns trigger language plpgsql as $f$ begin
		perform toban_sides.take();
		return new;
	end $f$;
	create table toban_sides.barrier (id int primary key, n bigint not null);
	insert into toban_sides.barrier values (1, 0);
	create trigger take before update on toban_sides.barrier for each row execute function toban_sides.fire();
	alter table toban_sides.barrier enable always trigger take;
	create table toban_sides.notes (id bigint, at timestamptz, tag text, object text);
	create view toban_sides.noted as select toban_sides.take() as id, at, tag, object from toban_sides.notes
		union all select toban_sides.take(), now(), 'REFRESH MATERIALIZED VIEW', 'public.v';
	create view toban_sides.progress as select 'toban_to_green'::text as link, '0/1'::pg_lsn as lsn
		where toban_sides.take() > 0;
	create publication toban_to_blue;
	reset role`

// What has the names and the comments of an upgrade is taken for its own only where it belongs to the superuser.
func TestAForgedSchemaOfAnUpgradeIsNotTouched(t *testing.T) {
	n := server(t)
	n.do("create role app login")
	n.do("create database shop owner app")
	config := n.dial().Config()
	config.Database = "shop"
	conn, err := pgx.ConnectConfig(n.Context(), config)
	must(t, err)
	blue := bluegreen.Side{Name: "blue", Connect: n.ConnectTo, Reach: func(string) string { return "" }}
	green := bluegreen.Side{Name: "green", Connect: func(context.Context, string) (*pgx.Conn, error) {
		return nil, errors.New("there is no green")
	}}
	forward := bluegreen.Forward(blue, green, "id")
	facts, err := bluegreen.Examine(within(n, deadline), blue)
	must(t, err)
	for _, d := range facts.Databases {
		if d.Taken {
			t.Errorf("%s has no such schema, and is said to", d.Name)
		}
	}
	_, err = conn.Exec(n.Context(), forged, pgx.QueryExecModeSimpleProtocol)
	must(t, err)
	facts, err = bluegreen.Examine(within(n, deadline), blue)
	must(t, err)
	for _, d := range facts.Databases {
		if d.Taken != (d.Name == "shop") {
			t.Errorf("that %s has a forged schema is said to be %v", d.Name, d.Taken)
		}
	}
	for name, touch := range map[string]func(context.Context) error{
		"Publish": func(ctx context.Context) error {
			_, err := forward.Publisher().Publish(ctx, time.Second)
			return err
		},
		"CatchUp":        forward.CatchUp,
		"HoldSchema":     forward.Publisher().HoldSchema,
		"Noted":          func(ctx context.Context) error { _, err := bluegreen.Noted(ctx, blue); return err },
		"CarryRefreshes": func(ctx context.Context) error { _, err := forward.CarryRefreshes(ctx); return err },
		"Adopt":          bluegreen.Back(blue, blue, "id").Adopt,
		"Look":           forward.Look,
	} {
		if err := touch(within(n, deadline)); err == nil || !strings.Contains(err.Error(), "toban_sides") {
			t.Errorf("%s: %v", name, err)
		}
		if n.ask("select rolsuper from pg_roles where rolname = 'app'") != "false" {
			t.Errorf("%s has made the application's role a superuser", name)
			n.do("alter role app nosuperuser")
		}
	}
	must(t, bluegreen.Cancel(within(n, deadline), blue))
	if n.ask("select rolsuper from pg_roles where rolname = 'app'") != "false" {
		t.Error("Cancel has made the application's role a superuser")
	}
	var left int
	must(t, conn.QueryRow(n.Context(), `select (select count(*) from pg_namespace where nspname = 'toban_sides')
		+ (select count(*) from pg_publication)`).Scan(&left))
	if left != 2 {
		t.Errorf("of two things of the application's %d are left", left)
	}
}
