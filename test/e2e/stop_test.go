//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"toban.dev/internal/naming"
	"toban.dev/test/outside"

	v1 "toban.dev/api/v1"
)

// A database is stopped under load: no acknowledged row is lost, the archive has all, and nothing runs any more, while
// the volumes and the Secrets stay, and a PostgreSQL on it says that its server is stopped. It comes back with all rows
// and the same quorum. It can be deleted while it is stopped, and leaves its last backup.
func TestADatabaseIsStoppedAndStarted(t *testing.T) {
	s := begin(t)
	s.apply(sampleDB("shared", 3, "backup: {schedule: none, verification: {schedule: none}}"))
	s.apply(database("foodb", "foo", "secret one"))
	s.ready("shared")
	s.pgReason("foodb", "Ready")
	s.backedUp("shared")
	s.mustAs("foo", "secret one", "foo", "CREATE TABLE t AS SELECT generate_series(1, 10) AS n")
	writer, err := outside.StartWriter(s.ctx, s.access("shared", "shared"))
	must(t, err)
	s.Cleanup(writer.Stop)
	s.rowsAtLeast("shared", 50)

	began := time.Now()
	s.Log(s.toban("stop", "shared"))
	s.Logf("stopped after %.1f s", time.Since(began).Seconds())
	s.nothingRuns("shared")
	s.pgReason("foodb", "ServerStopped")

	began = time.Now()
	s.patch("shared", `{"stopped":false}`)
	access := s.access("shared", "shared")
	// A connection may end between the commit and its answer: the next try finds the table.
	s.until(func(ctx context.Context) error { return access.Do(ctx, "CREATE TABLE IF NOT EXISTS again (id int)") })
	s.Logf("the first write %.1f s after the start", time.Since(began).Seconds())
	s.rowsAtLeast("shared", s.count("shared")+50)
	writer.Stop()
	lost, err := writer.Lost(s.ctx)
	must(t, err)
	if len(lost) > 0 {
		t.Errorf("%d of %d acknowledged rows are lost, from %d", len(lost), writer.Acknowledged(), lost[0])
	}
	s.Logf("%d rows acknowledged", writer.Acknowledged())
	after := s.ready("shared")
	s.condition("shared", v1.ConditionDurable, "True", v1.ReasonDurable)
	for _, i := range after.Status.InstanceStatuses {
		if !i.Voter {
			t.Errorf("%s does not vote any more", i.Name)
		}
	}
	if after.Status.Stop != nil {
		t.Errorf("the status still says %+v", after.Status.Stop)
	}
	s.pgReason("foodb", "Ready")
	if n := s.mustAs("foo", "secret one", "foo", "SELECT count(*) FROM t"); n != "10" {
		t.Errorf("foo has %s rows", n)
	}
	s.stopsInItsWindow("shared")
	if !ofOneNamespace() { // such an operator keeps the data instead
		s.isDeletedStopped("shared")
	}
}

// stopsInItsWindow has a window stop a SampleDB, and starts it before the window ends. The window opens at the first
// full minute of its life: one that was open when it was created would not count.
func (s *story) stopsInItsWindow(name string) {
	s.Helper()
	db, err := s.SampleDB(s.ctx, name)
	must(s.T, err)
	opens := db.CreationTimestamp.UTC().Truncate(time.Minute).Add(time.Minute)
	s.patch(name, fmt.Sprintf(`{"stopWindows":[{"start":%q,"duration":"20h"}]}`, opens.Format("15:04")))
	s.nothingRuns(name)
	says := s.condition(name, v1.ConditionReady, "False", v1.ReasonStopped)
	if !strings.Contains(says, "stopped until ") {
		s.Errorf("it says %q", says)
	}
	s.Log(s.toban("start", name))
	s.ready(name)
}

// nothingRuns checks what is left of a SampleDB of three instances that is stopped.
func (s *story) nothingRuns(name string) {
	s.Helper()
	s.until(func(ctx context.Context) error {
		pods, err := s.Kubectl(ctx, "get", "pods", "-l", naming.LabelSampleDB+"="+name, "-o", "name",
			"--field-selector=status.phase!=Succeeded,status.phase!=Failed")
		if err == nil && strings.TrimSpace(pods) != "" {
			err = fmt.Errorf("there is still %s", pods)
		}
		return err
	})
	for i := range 3 {
		s.claim(name, i, true)
	}
	s.run("get", "persistentvolumeclaim/"+naming.Archive(name), "secret/"+naming.AppSecret(name), "service/"+name)
	s.condition(name, v1.ConditionReady, "False", v1.ReasonStopped) // a moment after the last Pod is gone
	db, err := s.SampleDB(s.ctx, name)
	must(s.T, err)
	stop := db.Status.Stop
	if stop == nil || stop.Archive != v1.StopArchiveComplete || len(stop.Behind) > 0 || db.Status.Phase != "Stopped" {
		s.Fatalf("it is %s: %+v", db.Status.Phase, stop)
	}
	s.condition(name, v1.ConditionAvailable, "False", v1.ReasonStopped)
	s.condition(name, v1.ConditionArchiving, "True", v1.ReasonStopped)
}

// isDeletedStopped stops a SampleDB and deletes it: its last backup is taken first.
func (s *story) isDeletedStopped(name string) {
	s.Helper()
	s.toban("stop", name)
	s.run("delete", "sampledb", name, "--timeout=4m")
	s.until(func(ctx context.Context) error {
		out, err := s.Kubectl(ctx, "get", "databasebackups", "-o",
			`jsonpath={range .items[*]}{.metadata.name} {.status.phase}{"\n"}{end}`)
		if err != nil {
			return err
		}
		for _, line := range strings.Split(out, "\n") {
			if strings.HasPrefix(line, name+"-final-") && strings.HasSuffix(line, " Completed") {
				return nil
			}
		}
		return errors.New("there is no complete last backup: " + out)
	})
	s.claim(name, 0, false)
}
