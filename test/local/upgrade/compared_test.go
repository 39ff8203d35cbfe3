package upgrade_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"toban.dev/internal/work/bluegreen"
)

// Who is changed to is who was compared: not one that was elected since, on either side, and not where rows differed.
func TestOnlyWhoWasComparedIsChangedTo(t *testing.T) {
	s := newBlue(t, 17)
	position := s.publish()
	s.copyTo(position, 17)
	s.follow(position)
	refused := func(names string) {
		t.Helper()
		if _, err := s.forward.WasCompared(s.ctx); !inTheWay(err, bluegreen.NotCompared, names) {
			t.Errorf("it says %v, want %s", err, names)
		}
	}
	same := func() bluegreen.Servers {
		t.Helper()
		s.same(s.forward)
		compared, err := s.forward.WasCompared(s.ctx)
		must(t, err)
		return compared
	}
	refused("were not compared")
	compared := same()

	s.stopGreen(syscall.SIGINT)
	s.green.configure("recovery_target_lsn = ''\nrestore_command = ''\nrecovery_target_timeline = latest\n")
	must(t, os.WriteFile(filepath.Join(s.green.Data.Path(), "standby.signal"), nil, 0o600))
	s.stopGreen = s.green.start(s.green.Programs, s.green.Data.Path())
	s.green.ask("postgres", "select pg_promote()")
	refused("other servers were compared")
	if err := s.forward.Still(s.ctx, compared); !inTheWay(err, bluegreen.NotCompared, "other servers were compared") {
		t.Errorf("in the pause it says %v", err)
	}
	same()

	s.green.do("shop", "update app.orders set n = n + 1 where id = 17")
	found, err := s.forward.Compare(s.ctx, bluegreen.Comparison{LockTimeout: time.Second, Patience: deadline})
	if err != nil || len(found.Differ) != 1 {
		t.Errorf("it finds %+v, %v", found, err)
	}
	refused("were not compared")
	s.green.do("shop", "update app.orders set n = n - 1 where id = 17")
	same()

	another := s.forward
	another.Mark = "another upgrade"
	if _, err := another.WasCompared(s.ctx); !inTheWay(err, bluegreen.NotCompared, "were not compared") {
		t.Errorf("for another upgrade it says %v", err)
	}
	must(t, s.forward.Subscriber().Remove(s.ctx)) // a link that is made anew is compared anew
	must(t, s.forward.Follow(s.ctx, 0))
	refused("were not compared")
}
