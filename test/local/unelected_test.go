package local

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"toban.dev/internal/protocol"
	"toban.dev/test/outside"
)

// Somebody promotes a standby behind its agent's back. It is stopped at once, what it has written is taken back,
// and it is a standby again.
func TestAStandbyThatSomebodyPromotes(t *testing.T) {
	t.Parallel()
	c := formed(t, 3)
	w := c.write3()
	w.goesOn()
	leader := c.leader()
	standby := c.standby(leader)
	c.exec(standby, "select pg_promote(wait => false)")
	c.awaitLog(standby, "NotElected", 1)
	c.awaitLog(standby, "DataForked", 1)
	w.goesOn()
	w.check(outside.Undisturbed)
	log := c.logs[standby].String()
	if strings.Count(log, "base backup completed") != 1 || !strings.Contains(log, "pg_rewind: Done!") {
		t.Errorf("%s was not rewound:\n%s", standby, log)
	}
}

// A promotion takes longer than its deadline, and others elect another meanwhile. What PostgreSQL goes on with by
// itself must not become a primary.
func TestAPromotionThatEndsAfterItsDeadline(t *testing.T) {
	t.Parallel()
	c := formed(t, 3)
	old := c.leader()
	winner := c.standby(old)
	c.awaitCaughtUp(old, winner)
	startup := c.recovering(winner) // it does what a promotion is
	defer func() { _ = syscall.Kill(startup, syscall.SIGCONT) }()
	c.kill(old, syscall.SIGKILL)
	c.awaitLog(winner, `"msg":"elected"`, 1)
	elected, err := c.status(winner)
	if err != nil {
		t.Fatal(err)
	}
	c.startOne(old)
	c.awaitLog(winner, "wait for the promotion: ", 1)
	_ = syscall.Kill(startup, syscall.SIGCONT)
	over := func(s protocol.Status) bool { return streaming(s) || leading(s) && s.Term > elected.Term }
	for end := time.Now().Add(deadline); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		recovers, failed := c.query(winner, "select pg_is_in_recovery()::text")
		s, err := c.status(winner)
		if failed == nil && recovers == "false" && err == nil && s.Term == elected.Term {
			t.Fatalf("%s has become a primary after all", winner)
		}
		if err == nil && over(s) {
			break
		}
	}
	c.await(winner, "a standby, or elected anew", over)
	c.whole()
}
