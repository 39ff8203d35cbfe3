package server_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// Who writes is ended on a full volume, and with reads whoever does anything, also where activity is not tracked: such
// a session has no state and no time. Who does nothing stays.
func TestWritersAreEndedWhoseActivityIsNotTracked(t *testing.T) {
	n := nodes(t, 1)[0]
	n.found()
	n.settings.HBA = []string{"host all all all scram-sha-256"}
	n.configure()
	n.do("create role app login password 'app''s password'; create role hidden login password 'hidden''s password'")
	n.do("alter role hidden set track_activities = off")
	n.do("grant connect on database postgres to app, hidden")
	n.do("create table written (n int); grant insert on written to app, hidden")
	for _, role := range []string{"app", "hidden"} {
		t.Run(role, func(t *testing.T) { n.endsWriters(t, role) })
	}
}

// endsWriters has three sessions of a role: one writes, one reads, one does nothing.
func (n *node) endsWriters(t *testing.T, role string) {
	t.Helper()
	var all []*pgx.Conn
	for _, statement := range []string{"begin; insert into written values (1)", "", "select 1"} {
		conn := n.mustLogin(role, role+"'s password", "postgres")
		all = append(all, conn)
		if statement == "" {
			go func() { _, _ = conn.Exec(t.Context(), "select pg_sleep(3600)") }()
			continue
		}
		_, err := conn.Exec(t.Context(), statement, pgx.QueryExecModeSimpleProtocol)
		must(t, err)
	}
	n.eventually("it reads", func() bool {
		return n.ask("select count(*) from pg_stat_activity where usename = '"+role+"' and backend_xmin is not null "+
			"and wait_event = 'PgSleep'") == "1"
	})
	s := n.session()
	defer s.Close()
	for _, reads := range []bool{false, true} {
		ended, err := s.EndWriters(t.Context(), time.Now().Add(time.Hour), reads)
		if err != nil || ended != 1 {
			t.Errorf("with those who read too, %t: %d were ended, %v", reads, ended, err)
		}
		n.eventually("they have ended", func() bool {
			return n.ask("select count(*) from pg_stat_activity where usename = '"+role+"'") == map[bool]string{
				false: "2", true: "1"}[reads]
		})
	}
	if _, err := all[2].Exec(t.Context(), "select 1"); err != nil {
		t.Errorf("who did nothing was ended: %v", err)
	}
	_ = all[2].Close(t.Context())
}
