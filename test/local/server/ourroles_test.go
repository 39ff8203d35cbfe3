package server_test

import (
	"testing"

	"github.com/jackc/pgx/v5"

	"toban.dev/internal/postgres"
)

// Who may make roles can make one with the name of one of ours before we do, and is its member. What we give to that
// role later is not his.
func TestWhoMadeARoleOfOursIsNoMember(t *testing.T) {
	n := server(t)
	n.do("create role dev login createrole password 'secret'")
	n.do("create table public.secret as select 'mine' as what")
	n.do("grant connect on database postgres to dev")
	login := func() *pgx.Conn { return n.mustLogin("dev", "secret", "postgres") }
	dev := login()
	_, err := dev.Exec(n.Context(), "create role toban_metrics login; grant toban_metrics to dev; create role later; "+
		"grant toban_metrics to later; set role toban_metrics", pgx.QueryExecModeSimpleProtocol)
	must(t, err)
	must(t, n.EnsureMetricsRole(n.Context(), postgres.ReadsAllData))
	for name, conn := range map[string]*pgx.Conn{"the session that was there": dev, "a new one": login()} {
		var what string
		_, _ = conn.Exec(n.Context(), "set role toban_metrics") // refused, or the session has ended
		if conn.QueryRow(n.Context(), "select what from public.secret").Scan(&what) == nil {
			t.Errorf("%s reads %q with the rights of our role", name, what)
		}
	}
	if got := n.ask("select count(*) from pg_auth_members where roleid = 'toban_metrics'::regrole"); got != "0" {
		t.Errorf("our role has %s members", got)
	}
	if got := n.ask("select pg_has_role('toban_metrics', 'pg_read_all_data', 'usage')"); got != "true" {
		t.Errorf("it reads all data: %s", got)
	}
}
