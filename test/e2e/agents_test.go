//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"
)

// A new operator brings its agents into the Pods that run: no Pod is made anew, no container and no PostgreSQL starts
// again, nobody else leads, and each write succeeds meanwhile.
func TestLongTheAgentIsReplacedInPlace(t *testing.T) {
	s := beginAlone(t)
	s.apply(sampleDB("shop", 3))
	db := s.ready("shop")
	s.agentsRun("shop", "")
	s.sql("shop", "CREATE TABLE written (id bigint)")
	before, program := s.lives("shop"), s.path("shop", "{.status.agents.program}")
	image := s.operator("get", operator, "-o", "jsonpath={.spec.template.spec.containers[0].image}")
	t.Cleanup(func() {
		s.operator("set", "image", operator, "*="+image)
		s.operatorRuns()
	})
	writes, failed, stop := 0, 0, make(chan struct{})
	over := make(chan struct{})
	go func() {
		defer close(over)
		for {
			select {
			case <-stop:
				return
			case <-time.After(200 * time.Millisecond):
			}
			if _, err := s.inside(db.Status.Primary, "INSERT INTO written VALUES (1)"); err != nil {
				t.Logf("a write failed: %v", err)
				failed++
			}
			writes++
		}
	}()
	s.operator("set", "image", operator, "*=toban:other")
	s.operatorRuns()
	s.agentsRun("shop", program)
	close(stop)
	<-over
	t.Logf("%d writes, %d failed", writes, failed)
	if failed > 0 || writes == 0 {
		t.Error("writes have failed")
	}
	if after := s.lives("shop"); after != before {
		t.Errorf("before:\n%safter:\n%s", before, after)
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
	s.agentsRun("shop", "")
	s.sql("shop", "CREATE TABLE written (id bigint)")
	s.sql("shop", "INSERT INTO written VALUES (1)")
	program := s.path("shop", "{.status.agents.program}")
	image := s.operator("get", operator, "-o", "jsonpath={.spec.template.spec.containers[0].image}")
	t.Cleanup(func() {
		s.operator("set", "image", operator, "*="+image)
		s.operatorRuns()
	})
	s.operator("set", "image", operator, "*=toban:other")
	s.operatorRuns()
	s.until(func(context.Context) error {
		if s.path("shop", "{.status.agents.program}") == program || s.path("shop", "{.status.agents.current}") == "" {
			return fmt.Errorf("the agents of shop: %s", s.path("shop", "{.status.agents}"))
		}
		return nil
	})
	s.run("delete", "pod", db.Status.Primary, "--grace-period=0", "--force")
	s.agentsRun("shop", program)
	now := s.ready("shop")
	if got, err := s.inside(now.Status.Primary, "SELECT count(*) FROM written"); err != nil || got != "1" {
		t.Errorf("%q rows are left of 1: %v", got, err)
	}
}

// agentsRun waits until all three agents run the operator's program, which is another one than before.
func (s *story) agentsRun(name, before string) {
	s.Helper()
	s.until(func(context.Context) error {
		program := s.path(name, "{.status.agents.program}")
		current := s.path(name, "{.status.agents.current}")
		if program == "" || program == before || strings.Count(current, name) != 3 {
			return fmt.Errorf("the agents of %s: %s", name, s.path(name, "{.status.agents}"))
		}
		return nil
	})
}

// path is a field of a SampleDB.
func (s *story) path(name, path string) string {
	s.Helper()
	return s.run("get", "sampledb", name, "-o", "jsonpath="+path)
}
