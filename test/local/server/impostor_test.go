package server_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

// A role that may replicate takes the name of a standby whose acknowledgement counts: PostgreSQL would believe it. Its
// session is ended, also when the role was removed meanwhile; a standby's, and one of the same role with a name of its
// own, stay.
func TestReplicationThatPassesForAStandbyIsEnded(t *testing.T) {
	primary, standbys := pair(t, 1)
	name := primary.ask("select string_agg(application_name, ',') from pg_stat_replication")
	primary.obey(`ANY 1 ("` + name + `")`)
	primary.ensure(foodb())
	connect := func(role, as string) *pgconn.PgConn {
		config := primary.loginConfig(role, "mypassword", "foo")
		config.RuntimeParams = map[string]string{"replication": "database", "application_name": as}
		conn, err := pgconn.ConnectConfig(t.Context(), &config.Config)
		must(t, err)
		t.Cleanup(func() { _ = conn.Close(context.Background()) })
		return conn
	}
	for _, role := range []string{"capture", "gone"} {
		primary.do("create role " + role + " login replication password 'mypassword';" +
			"grant connect on database foo to " + role)
	}
	honest, impostor := connect("capture", "capture"), connect("capture", strings.ToUpper(name))
	connect("gone", name)
	primary.do("drop owned by gone; drop role gone")
	s := primary.session()
	defer s.Close()
	names, ended, err := s.Standbys(t.Context())
	slices.Sort(ended)
	want := []string{"a role that is gone as " + name, "capture as " + strings.ToUpper(name)}
	if err != nil || !slices.Equal(ended, want) {
		t.Errorf("it ends %q, %v; want %q", ended, err, want)
	}
	if len(names) != len(standbys) {
		t.Errorf("the standbys are %q", names)
	}
	if _, err := impostor.Exec(t.Context(), "IDENTIFY_SYSTEM").ReadAll(); err == nil {
		t.Error("the impostor is still there")
	}
	if _, err := honest.Exec(t.Context(), "IDENTIFY_SYSTEM").ReadAll(); err != nil {
		t.Errorf("the other one is ended too: %v", err)
	}
	if names, ended, err = s.Standbys(t.Context()); err != nil || len(ended) > 0 || len(names) != len(standbys) {
		t.Errorf("then the standbys are %q, and it ends %q, %v", names, ended, err)
	}
}
