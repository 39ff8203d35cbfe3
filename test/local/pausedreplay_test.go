package local

import (
	"syscall"
	"testing"

	"toban.dev/test/outside"
)

// The primary is lost while the replay of a standby is paused: that goes on, so that there is an election, and
// nothing is lost. By whom it was paused makes no difference.
func TestAPausedReplayIsNoneForAnElection(t *testing.T) {
	t.Parallel()
	c := formed(t, 3)
	leader := c.whole()
	w := c.write3()
	w.goesOn()
	c.exec(c.standby(leader), "select pg_wal_replay_pause()")
	w.goesOn()
	c.kill(leader, syscall.SIGKILL)
	c.leader(leader)
	w.goesOn()
	c.startOne(leader)
	c.whole()
	w.check(outside.Lost)
}
