//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
)

// sleeps is how often the database of the story sleeps.
const sleeps = 3

// A database that nobody uses goes to sleep, and a psql through its pooler wakes it and gets its answer. A session that
// was idle lives through it, and nothing is lost. TestADatabaseIsStoppedAndStarted has the steps of a stop, TestPooler
// the clients of a pooler, and test/local that they wait while a database sleeps.
func TestLongADatabaseSleepsAndWakes(t *testing.T) {
	s := begin(t)
	s.apply(sampleDB("shop", 2, "sleepAfter: 1m", "pooler: {}",
		"backup: {schedule: none, verification: {schedule: none}}"))
	s.ready("shop")
	s.condition("shop", v1.ConditionPoolerReady, "True", v1.ReasonPoolerServes)
	s.sql("shop", "CREATE TABLE t (n int)")
	pool := s.access("shop", naming.Pool("shop")).Patient()
	idle, err := pool.Connect(s.ctx)
	must(t, err)
	defer idle.Close(context.Background())
	for n := range sleeps {
		_, err := idle.Exec(s.ctx, fmt.Sprintf("INSERT INTO t VALUES (%d)", n))
		must(t, err)
		began := time.Now()
		s.sleeps("shop")
		t.Logf("asleep %.1f s after the last statement", time.Since(began).Seconds())

		began = time.Now()
		psql := exec.CommandContext(s.ctx, "psql", "-XAtc", "SELECT count(*) FROM t")
		psql.Env = append(append(os.Environ(), pool.Environment()...), "PGCONNECT_TIMEOUT=300")
		out, err := psql.CombinedOutput()
		if err != nil {
			t.Fatalf("the client that wakes it got an error after %s: %v: %s", time.Since(began), err, out)
		}
		t.Logf("MEASURED the answer came %.2f s after the client did", time.Since(began).Seconds())
		if got := strings.TrimSpace(string(out)); got != fmt.Sprint(n+1) {
			t.Errorf("there are %s rows, want %d", got, n+1)
		}
	}
	after := s.ready("shop")
	if after.Status.Stop != nil {
		t.Errorf("awake, the status still says %+v", after.Status.Stop)
	}
	s.condition("shop", v1.ConditionDurable, "True", v1.ReasonDurable)

	// An order of a person is stronger: the poolers go, and nobody wakes it.
	s.sleeps("shop")
	s.toban("stop", "shop")
	s.condition("shop", v1.ConditionReady, "False", v1.ReasonStopped)
	s.until(func(ctx context.Context) error { return s.noPods(ctx, "toban.dev/sampledb=shop") })
	s.toban("start", "shop")
	s.ready("shop")
}

// sleeps waits until a SampleDB sleeps, and checks what is left of it.
func (s *story) sleeps(name string) {
	s.Helper()
	s.condition(name, v1.ConditionReady, "False", v1.ReasonSleeping)
	s.condition(name, v1.ConditionPoolerReady, "True", v1.ReasonPoolerServes)
	must(s.T, s.noPods(s.ctx, "toban.dev/sampledb="+name+",toban.dev/component=instance"))
	db, err := s.SampleDB(s.ctx, name)
	must(s.T, err)
	if stop := db.Status.Stop; stop == nil || stop.Asleep == "" || stop.Archive != v1.StopArchiveComplete {
		s.Errorf("asleep it says %+v", stop)
	}
}

// noPods fails while there are Pods that have not ended.
func (s *story) noPods(ctx context.Context, selector string) error {
	pods, err := s.Kubectl(ctx, "get", "pods", "-l", selector, "-o", "name",
		"--field-selector=status.phase!=Succeeded,status.phase!=Failed")
	if err == nil && strings.TrimSpace(pods) != "" {
		err = errors.New("there is still " + pods)
	}
	return err
}
