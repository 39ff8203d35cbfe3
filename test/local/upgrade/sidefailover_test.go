package upgrade_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"toban.dev/internal/work/bluegreen"
)

// When another instance of blue is elected, the link goes on there if the slots came along, and green is the same row
// for row. If they did not come along, it is said that the link is broken.
func TestLongALinkOutlivesAFailover(t *testing.T) {
	for name, along := range map[string]bool{"the slots come along": true, "they do not": false} {
		t.Run(name, func(t *testing.T) {
			s := newBlue(t, 17)
			standby := s.standby(along)
			s.followBoth(standby)
			must(t, s.forward.CatchUp(s.ctx))
			s.expectCopies(along)
			s.blue.do("shop", "insert into app.emptied select generate_series(1, 100)")
			end := s.blue.ask("postgres", "select pg_current_wal_flush_lsn()")
			s.until("the standby has all", func() bool {
				return standby.ask("postgres", "select pg_last_wal_replay_lsn() >= '"+end+"'") == "true"
			})
			s.stopBlue(syscall.SIGQUIT)
			standby.ask("postgres", "select pg_promote()")
			s.forward.Serving = standby.side("blue")
			broken, err := s.forward.Publisher().Broken(s.ctx)
			must(t, err)
			if !along {
				if !strings.Contains(broken, "has no WAL any more") {
					t.Errorf("it says %q", broken)
				}
				must(t, bluegreen.Cancel(s.ctx, standby.side("blue")))
				return
			}
			if broken != "" {
				t.Fatal(broken)
			}
			standby.do("shop",
				"insert into app.emptied select generate_series(101, 200);\nupdate app.orders set n = n + 1")
			must(t, s.forward.CatchUp(s.ctx))
			if got := s.green.ask("shop", "select count(*) from app.emptied"); got != "200" {
				t.Errorf("green has %s rows", got)
			}
			s.same(s.forward)
		})
	}
}

// expectCopies waits until the standby has copies of the slots, or for long enough to see that it gets none.
func (s *sides) expectCopies(along bool) {
	s.Helper()
	patience, cancel := context.WithTimeout(s.ctx, deadline)
	if !along {
		patience, cancel = context.WithTimeout(s.ctx, 3*time.Second)
	}
	defer cancel()
	err := s.forward.Publisher().AwaitCopies(patience, func(string) {})
	if along {
		must(s, err)
	} else if err == nil || !strings.Contains(err.Error(), "the standby walreceiver has copies") {
		s.Errorf("without copies it says %v", err)
	}
}

// followBoth has green follow blue, and after a failover its standby.
func (s *sides) followBoth(standby *instance) {
	s.Helper()
	both := s.blue.side("blue")
	both.Reach = func(database string) string {
		return fmt.Sprintf("host=%s,%s port=5432,5432 user=postgres dbname=%s target_session_attrs=read-write",
			s.blue.Server.Run, standby.Server.Run, database)
	}
	both.Standby = func(ctx context.Context, _ string) (*pgx.Conn, error) {
		return standby.side("blue").Connect(ctx, "postgres")
	}
	position := s.publish()
	s.copyTo(position, 17)
	s.forward.Serving = both
	s.follow(position)
}

// One that is elected may lack what green has been sent already. A comparison says so, also if none did before.
func TestLongAComparisonFindsWhatAFailoverHasLost(t *testing.T) {
	s := newBlue(t, 17)
	standby := s.standby(true)
	s.followBoth(standby)
	s.same(s.forward)
	s.expectCopies(true)
	standby.do("postgres", "alter system set primary_conninfo = '';\nselect pg_reload_conf()")
	s.until("the standby receives nothing", func() bool {
		return standby.ask("postgres", "select count(*) from pg_stat_wal_receiver") == "0"
	})
	s.blue.do("shop", "insert into app.emptied select generate_series(1, 100)")
	must(t, s.forward.CatchUp(s.ctx))
	s.stopBlue(syscall.SIGQUIT)
	standby.ask("postgres", "select pg_promote()")
	standby.do("shop", "insert into app.emptied values (4711)")
	s.forward.Serving = standby.side("blue")
	found, err := s.forward.Compare(s.ctx, bluegreen.Comparison{LockTimeout: time.Second, Patience: deadline})
	t.Logf("%+v, %v", found, err)
	if !errors.Is(err, bluegreen.ErrAhead) && len(found.Differ) == 0 {
		t.Error("the sides are said to be the same")
	}
}

// standby makes one of blue, which runs.
func (s *sides) standby(along bool) *instance {
	s.Helper()
	i := s.blue.beside()
	s.blue.ask("postgres", "select slot_name from pg_create_physical_replication_slot('standby', true)")
	s.blue.backUp(i.Data.Path(), "stream")
	i.configure(fmt.Sprintf("archive_mode = off\nhot_standby_feedback = on\nprimary_slot_name = standby\n"+
		"primary_conninfo = 'host=%s port=5432 user=postgres dbname=postgres'\nsync_replication_slots = %t\n",
		s.blue.Server.Run, along))
	must(s, os.WriteFile(filepath.Join(i.Data.Path(), "standby.signal"), nil, 0o600))
	i.start(i.Programs, i.Data.Path())
	return i
}
