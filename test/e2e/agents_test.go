//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"toban.dev/test/outside"
)

// A new operator leaves the agents as they are. It brings its program into the Pods that run when it is asked to, and
// the next one does so in a window: no Pod is made anew, no container and no PostgreSQL starts again, a session stays
// open, nobody else leads, and each write succeeds meanwhile.
func TestLongTheAgentIsReplacedInPlace(t *testing.T) {
	s := beginAlone(t)
	s.apply(sampleDB("shop", 3))
	db := s.ready("shop")
	own := s.agentsRun(db.Status.Primary, "shop", "")
	s.makeWritten(db.Status.Primary)
	before, session := s.lives("shop"), s.openSession(db.Status.Primary)
	writes := s.writeOn(db.Status.Primary)
	s.otherOperator()
	s.agentsWait("shop", own)
	s.run("annotate", "sampledb", "shop", "toban.dev/replace-agents=now")
	other := s.agentsRun(db.Status.Primary, "shop", own)
	s.operator("rollout", "undo", operator)
	s.operatorRuns()
	s.agentsWait("shop", other)
	always := `{start: "00:00", duration: 24h}`
	s.run("patch", "sampledb", "shop", "--type=merge", "-p", `spec: {update: {window: `+always+`}}`)
	if back := s.agentsRun(db.Status.Primary, "shop", other); back != own {
		t.Errorf("the agents run %s, and at first %s", back, own)
	}
	writes.end(t)
	if after := s.lives("shop"); after != before {
		t.Errorf("before:\n%safter:\n%s", before, after)
	}
	if after := s.sessions(db.Status.Primary); after != session {
		t.Errorf("the session is %q, and was %q", after, session)
	}
	if now := s.ready("shop"); now.Status.Primary != db.Status.Primary || now.Status.Term != db.Status.Term {
		t.Errorf("%s leads term %d, and before %s term %d", now.Status.Primary, now.Status.Term, db.Status.Primary,
			db.Status.Term)
	}
}

// The primary's Pod is lost when one agent has been replaced: another leads, and all agents are replaced in the end.
func TestLongThePrimaryIsLostWhileAgentsAreReplaced(t *testing.T) {
	s := beginAlone(t)
	s.apply(sampleDB("shop", 3))
	db := s.ready("shop")
	own := s.agentsRun(db.Status.Primary, "shop", "")
	s.makeWritten(db.Status.Primary)
	_, err := s.inside(db.Status.Primary, "INSERT INTO written VALUES (1)")
	must(t, err)
	s.otherOperator()
	s.agentsWait("shop", own)
	check := s.writing("shop")
	s.run("annotate", "sampledb", "shop", "toban.dev/replace-agents=now")
	s.until(func(context.Context) error {
		if s.path("shop", "{.status.agents.current}") == "" {
			return fmt.Errorf("the agents of shop: %s", s.path("shop", "{.status.agents}"))
		}
		return nil
	})
	s.run("delete", "pod", db.Status.Primary, "--grace-period=0", "--force")
	s.agentsRun("", "shop", own)
	now := s.ready("shop")
	check(outside.Lost)
	if got, err := s.inside(now.Status.Primary, "SELECT count(*) FROM written"); err != nil || got != "1" {
		t.Errorf("%q rows are left of 1: %v", got, err)
	}
}

// otherOperator installs another release of the operator, until the test ends.
func (s *story) otherOperator() {
	s.Helper()
	image := s.operator("get", operator, "-o", "jsonpath={.spec.template.spec.containers[0].image}")
	s.Cleanup(func() {
		s.operator("set", "image", operator, "*="+image)
		s.operatorRuns()
	})
	s.operator("set", "image", operator, "*=toban:other")
	s.operatorRuns()
}

// agentsRun waits until all three agents run the operator's program, which is another one than before, and tells which.
// The primary's is the last one.
func (s *story) agentsRun(primary, name, before string) (program string) {
	s.Helper()
	s.until(func(context.Context) error {
		program = s.path(name, "{.status.agents.program}")
		current := s.path(name, "{.status.agents.current}")
		n := strings.Count(current, name)
		if program != before && n < 3 && primary != "" && strings.Contains(current, primary) {
			s.Errorf("the agent of the primary %s is replaced before others: %s", primary, current)
		}
		if program == "" || program == before || n != 3 {
			return fmt.Errorf("the agents of %s: %s", name, s.path(name, "{.status.agents}"))
		}
		return nil
	})
	return program
}

// agentsWait waits until an operator with another program has said that nobody asks for the agents to run that.
func (s *story) agentsWait(name, before string) {
	s.Helper()
	s.until(func(context.Context) error {
		program, reason := s.path(name, "{.status.agents.program}"), s.path(name, "{.status.agents.reason}")
		if program == before || reason != "NotAsked" {
			return fmt.Errorf("the agents of %s: %s", name, s.path(name, "{.status.agents}"))
		}
		return nil
	})
	if current := s.path(name, "{.status.agents.current}"); current != "" {
		s.Errorf("nobody has asked, and the new program is run by %s", current)
	}
}

// path is a field of a SampleDB.
func (s *story) path(name, path string) string {
	s.Helper()
	return s.run("get", "sampledb", name, "-o", "jsonpath="+path)
}

// openSession opens a session with the server in a Pod, which stays open, and says which it is.
func (s *story) openSession(pod string) (session string) {
	s.Helper()
	go func() { _, _ = s.inside(pod, "SELECT pg_sleep(3600)") }() // the end of the namespace ends it
	s.until(func(context.Context) error {
		if session = s.sessions(pod); session == "" {
			return fmt.Errorf("there is no session with %s", pod)
		}
		return nil
	})
	return session
}

// sessions are those that openSession has opened.
func (s *story) sessions(pod string) string {
	s.Helper()
	found, err := s.inside(pod, "SELECT pid, backend_start FROM pg_stat_activity WHERE query = 'SELECT pg_sleep(3600)'")
	must(s.T, err)
	return found
}

// makeWritten makes the table written.
func (s *story) makeWritten(pod string) {
	s.Helper()
	_, err := s.inside(pod, "CREATE TABLE written (id bigint)")
	must(s.T, err)
}

// writing counts writes.
type writing struct {
	done, failed int
	stop, over   chan struct{}
}

// writeOn writes into the table written, as soon as it may again.
func (s *story) writeOn(pod string) *writing {
	w := &writing{stop: make(chan struct{}), over: make(chan struct{})}
	go func() {
		defer close(w.over)
		for {
			select {
			case <-w.stop:
				return
			case <-time.After(200 * time.Millisecond):
			}
			if _, err := s.inside(pod, "INSERT INTO written VALUES (1)"); err != nil {
				s.Logf("a write failed: %v", err)
				w.failed++
			}
			w.done++
		}
	}()
	return w
}

// end ends it: no write has failed.
func (w *writing) end(t *testing.T) {
	t.Helper()
	close(w.stop)
	<-w.over
	t.Logf("%d writes, %d failed", w.done, w.failed)
	if w.failed > 0 || w.done == 0 {
		t.Error("writes have failed")
	}
}
