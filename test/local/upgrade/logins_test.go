package upgrade_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"

	"toban.dev/internal/postgres"
	"toban.dev/internal/postgres/sql"
	"toban.dev/internal/work/bluegreen"
)

// A trigger at login is a user's code, which can keep everybody out. Our own roles get in all the same: backups,
// pg_rewind, metrics, poolers and links of sides log in by them, and none of them is a superuser.
func TestLoginTriggersDoNotKeepOurRolesOut(t *testing.T) {
	i := newInstance(t, 17, "")
	i.start(i.Programs, i.Data.Path())
	superuser, err := i.Connect(t.Context())
	must(t, err)
	defer superuser.Close()
	ensure := func() {
		must(t, superuser.EnsureReplication(t.Context()))
		must(t, superuser.EnsurePooler(t.Context(), true))
		must(t, i.Server.EnsureMetricsRole(t.Context(), postgres.ReadsStatistics))
		must(t, bluegreen.EnsureRole(t.Context(), i.side("blue")))
	}
	ensure()
	roles := []string{
		postgres.RoleReplication, postgres.RoleBackup, postgres.RoleMetrics, postgres.RolePooler, postgres.RoleLink,
	}
	// what a release before had: the roles alone
	for _, role := range roles {
		i.do("postgres", "alter role "+role+" reset event_triggers")
	}
	ensure()
	i.do("postgres", `create role somebody login;
grant connect on database postgres to somebody;
create function refuse() returns event_trigger language plpgsql as 'begin raise exception $m$nobody$m$; end';
create event trigger refuse on login execute function refuse();
alter event trigger refuse enable always`)
	if err := i.logsIn("somebody"); err == nil {
		t.Fatal("the trigger keeps nobody out")
	}
	for _, role := range roles {
		if err := i.logsIn(role); err != nil {
			t.Errorf("%s: %v", role, err)
		}
	}
}

// logsIn logs in as a role, with what our sessions ask for.
func (i *instance) logsIn(role string) error {
	config, err := pgx.ParseConfig(fmt.Sprintf("host=%s port=%d user=%s dbname=postgres sslmode=disable", i.Server.Run,
		i.Port, role))
	must(i, err)
	config.RuntimeParams = sql.SettingsAt(i.Programs.Major, role, nil)
	conn, err := pgx.ConnectConfig(i.Context(), config)
	if err != nil {
		return err
	}
	return conn.Close(context.Background())
}
