//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/ha"
	"toban.dev/internal/naming"
)

// The way back: to a moment, while the source runs on; and after the source was deleted, by the
// backup that was taken then.
func TestRestore(t *testing.T) {
	s := begin(t)
	s.apply(withBackup("main", 1, "{}"))
	s.ready("main")
	s.sql("main", "CREATE TABLE kept (n int); INSERT INTO kept VALUES (1)")
	s.backedUp("main")
	s.sql("main", "INSERT INTO kept VALUES (2)")
	at := s.clock("main")
	s.sql("main", "INSERT INTO kept VALUES (3)")
	s.archived("main")

	s.apply(sampleDB("past", 2, fmt.Sprintf("restoreFrom:\n  sampleDB: main\n  target: {time: %q}", at)))
	s.ready("past")
	s.condition("past", v1.ConditionRestored, "True", v1.ReasonRestored)
	s.kept("past", "1,2")
	s.everyInstanceStreams("past", 1)

	s.apply(sampleDB("never", 1, "restoreFrom:\n  sampleDB: main\n  target: {time: \"2020-01-01T00:00:00Z\"}"))
	if words := s.condition("never", v1.ConditionRestored, "False", v1.ReasonRestoreFailed); !strings.Contains(words,
		"outside of what can be restored") {
		t.Errorf("the message does not name the window: %s", words)
	}

	// The restored one has two instances and an archive of its own, and goes back in its place.
	s.backedUp("past")
	s.sql("past", "INSERT INTO kept VALUES (10)")
	at = s.clock("past")
	s.sql("past", "DELETE FROM kept")
	s.archived("past")
	s.run("patch", "sampledb", "past", "--type=merge",
		"-p", fmt.Sprintf(`{"spec":{"restore":{"id":"undo","confirm":"past","target":{"time":%q}}}}`, at))
	s.until(func(ctx context.Context) error {
		db, err := s.SampleDB(ctx, "past")
		if err == nil &&
			(db.Status.Restore == nil || db.Status.Restore.ID != "undo" || db.Status.Restore.CompletedAt == nil) {
			err = fmt.Errorf("the restore in place is not done: %+v", db.Status.Restore)
		}
		return err
	})
	s.ready("past")
	s.kept("past", "1,2,10")
	s.everyInstanceStreams("past", 1)

	s.sql("main", "INSERT INTO kept VALUES (4)")
	s.run("delete", "sampledb", "main", "--timeout=5m")
	final := strings.TrimSpace(s.run("get", "databasebackups",
		"-o", `jsonpath={range .items[?(@.spec.from=="Primary")]}{.metadata.name}{"\n"}{end}`))
	if !strings.HasPrefix(final, "main-final-") {
		t.Fatalf("the last backup is %q", final)
	}
	s.apply(withBackup("main", 1, "{}") + "  restoreFrom: {backup: " + final + "}\n")
	s.ready("main")
	s.kept("main", "1,2,3,4")
	s.sql("main", "INSERT INTO kept VALUES (5)")
	s.condition("main", v1.ConditionArchiving, "True", v1.ReasonArchiving)
}

// The volume of a lone instance is lost: with the permission of its spec it begins again with what its archive has, and
// says what may be missing. (TestALoneInstanceWhoseVolumeIsLost of test/local touches the same.)
func TestLongALostVolume(t *testing.T) {
	s := begin(t)
	s.apply(withBackup("main", 1, "whenDataIsLost: Restore"))
	s.ready("main")
	s.sql("main", "CREATE TABLE kept (n int); INSERT INTO kept VALUES (1)")
	s.backedUp("main")
	s.sql("main", "INSERT INTO kept VALUES (2)")
	s.archived("main")
	s.run("delete", "pvc", "data-main-0", "--wait=false")
	s.run("delete", "pod", "main-0")
	s.until(func(ctx context.Context) error {
		db, err := s.SampleDB(ctx, "main")
		if err != nil {
			return err
		}
		r := db.Status.Restore
		if r == nil || r.Cause != v1.CauseDataLost || r.CompletedAt == nil || r.ArchiveEndAt == nil {
			err = fmt.Errorf("it has not begun again: %+v", r)
		}
		return err
	})
	s.ready("main")
	s.kept("main", "1,2")
	words := s.condition("main", v1.ConditionRestored, "True", v1.ReasonRestored)
	if !strings.Contains(words, "was known to reach at least to") {
		t.Errorf("it does not say what may be missing: %s", words)
	}
	s.sql("main", "INSERT INTO kept VALUES (3)")
	s.condition("main", v1.ConditionArchiving, "True", v1.ReasonArchiving)
}

// Two of three volumes are lost, and there is no archive: no instance is elected, and the condition names the command
// that has the third go on with what it has. (TestTheSurvivorOfALostMajority of test/local has that with real servers,
// and TestTheSurvivorOfALostMajorityIsPromoted of test/api the command. Here the third one is elected, rightly, if the
// others have not both ended when the primary hands over.)
func TestLongTheSurvivorIsPromoted(t *testing.T) {
	s := begin(t)
	s.apply(bare("shop", 3))
	before := s.ready("shop").Status
	s.sql("shop", "CREATE TABLE kept AS SELECT generate_series(1, 100) AS id")
	lost := []string{before.Primary}
	for _, i := range before.InstanceStatuses {
		if i.Name != before.Primary && len(lost) < 2 {
			lost = append(lost, i.Name)
		}
	}
	s.run("delete", "pvc", naming.ClaimOf(lost[0]), naming.ClaimOf(lost[1]), "--wait=false")
	s.run("delete", "pod", lost[0], lost[1], "--grace-period=0", "--force")
	s.until(func(ctx context.Context) error {
		db, err := s.SampleDB(ctx, "shop")
		if err != nil {
			return err
		}
		c := meta.FindStatusCondition(db.Status.Conditions, v1.ConditionAvailable)
		if c == nil || !strings.Contains(c.Message, "kubectl toban promote shop --accept-loss") {
			return fmt.Errorf("the command is not named: %+v", c)
		}
		return nil
	})
	s.Log(s.toban("promote", "shop", "--accept-loss", "--yes"))
	after := s.ready("shop").Status
	if slices.Contains(lost, after.Primary) || after.Term <= before.Term+ha.RestoreTerms {
		t.Errorf("%s leads term %d; %s led term %d before", after.Primary, after.Term, before.Primary, before.Term)
	}
	if n := s.ask("shop", "SELECT count(*) FROM kept"); n != "100" {
		t.Errorf("kept has %s rows, want 100", n)
	}
	s.sql("shop", "INSERT INTO kept VALUES (101)")
	words := s.condition("shop", v1.ConditionRestored, "True", v1.ReasonRestored)
	if !strings.Contains(words, after.Primary+" went on with the data that it had") {
		t.Errorf("it says %q", words)
	}
}

// A restore in place to too early a moment loses nothing: what was left is brought back by naming its branch, beside
// and in place. TestRestore restores in place and beside, TestTheWayBackByHandToEachBranch of test/local/backup goes
// back to real branches, and branches_test.go of test/api has what the operator does about them.
func TestLongTheBranchThatARestoreInPlaceHasLeft(t *testing.T) {
	s := begin(t)
	s.apply(withBackup("main", 1, "{}"))
	s.ready("main")
	s.sql("main", "CREATE TABLE kept (n int); INSERT INTO kept VALUES (1)")
	s.backedUp("main")
	tooEarly := s.clock("main")
	s.sql("main", "INSERT INTO kept VALUES (2)")
	s.archived("main")
	s.restores("main", "--to", tooEarly, "--yes")
	s.ready("main")
	s.kept("main", "1")
	s.sql("main", "INSERT INTO kept VALUES (3)")

	left := s.leftBranch("main")
	if out := s.toban("status", "main"); !strings.Contains(out, "BRANCH") {
		t.Errorf("the status does not show the branches:\n%s", out)
	}
	s.apply(sampleDB("as-it-was", 1, fmt.Sprintf("restoreFrom:\n  sampleDB: main\n  target: {branch: %d}", left)))
	s.ready("as-it-was")
	s.kept("as-it-was", "1,2")
	s.kept("main", "1,3")

	s.restores("main", "--branch", fmt.Sprint(left), "--to", "latest", "--yes")
	s.ready("main")
	s.kept("main", "1,2")
	s.sql("main", "INSERT INTO kept VALUES (4)")
	s.condition("main", v1.ConditionArchiving, "True", v1.ReasonArchiving)
}

// leftBranch waits until the status shows two branches, and is the number of the one that was left. The backup that
// follows a restore in place tells them.
func (s *story) leftBranch(name string) int64 {
	s.Helper()
	var left int64
	s.until(func(ctx context.Context) error {
		db, err := s.SampleDB(ctx, name)
		if err != nil {
			return err
		}
		if b := db.Status.Backup; b == nil || len(b.Windows) != 2 || b.Windows[1].Latest == nil {
			return fmt.Errorf("the status does not show two branches: %+v", b)
		}
		left = db.Status.Backup.Windows[1].Branch
		return nil
	})
	return left
}

// kept checks the rows of the table kept, as the application's role.
func (s *story) kept(name, want string) {
	s.Helper()
	if got := s.ask(name, "SELECT string_agg(n::text, ',' ORDER BY n) FROM kept"); got != want {
		s.Errorf("%s has the rows %s, expected %s", name, got, want)
	}
}

// backedUp waits for the first backup.
func (s *story) backedUp(name string) {
	s.Helper()
	s.until(func(ctx context.Context) error {
		db, err := s.SampleDB(ctx, name)
		if err == nil && (db.Status.Backup == nil || db.Status.Backup.LastBackup == "") {
			err = fmt.Errorf("there is no first backup: %+v", db.Status.Backup)
		}
		return err
	})
}

// clock is the server's.
func (s *story) clock(name string) string {
	s.Helper()
	return s.ask(name, `SELECT to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`)
}
