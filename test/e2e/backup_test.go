//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	v1 "toban.dev/api/v1"
	"toban.dev/test/outside"
)

// withBackup is a manifest with an archive on a volume of its own.
func withBackup(name string, instances int, backup string) string {
	return sampleDB(name, instances, "backup:\n"+strings.TrimRight(indent(backup), "\n"))
}

// archived waits until all WAL that the primary of a SampleDB which is Ready has on disk now is in the archive.
func (s *story) archived(name string) {
	s.Helper()
	s.archivedBy(s.ready(name).Status.Primary)
}

// archivedBy waits until all WAL that a primary has on disk now is in the archive. The slot of the archive goes on to
// the next segment when all before it is there.
func (s *story) archivedBy(primary string) {
	s.Helper()
	end, err := s.inside(primary, "SELECT pg_switch_wal()")
	must(s.T, err)
	s.until(func(context.Context) error {
		behind, err := s.inside(primary,
			fmt.Sprintf("SELECT restart_lsn < '%s' FROM pg_replication_slots WHERE slot_name = 'toban_archive'", end))
		if err == nil && behind != "f" {
			return fmt.Errorf("the WAL before %s is not archived yet: %q", end, behind)
		}
		return err
	})
}

// completed waits until a backup is in the archive.
func (s *story) completed(name string) {
	s.Helper()
	s.until(func(ctx context.Context) error {
		phase, err := s.Kubectl(ctx, "get", "databasebackup", name,
			"-o", "jsonpath={.status.phase} {.status.conditions[*].message}")
		if err == nil && !strings.HasPrefix(phase, "Completed ") {
			return fmt.Errorf("%s is %s", name, phase)
		}
		return err
	})
}

// A SampleDB with backup has an archive, and a first backup, without more being
// asked for; WAL and backups go on through a change of the primary.
func TestBackupOnAVolumeOfItsOwn(t *testing.T) {
	s := begin(t)
	s.apply(withBackup("kept", 3, "schedule: \"0 3 * * *\"\ntimeZone: Asia/Tokyo\nretention: {count: 2}\n"+
		"verification: {assertions: [{name: sound, sql: \"SELECT 'yes'\", want: \"yes\"}]}"))
	s.ready("kept")
	s.condition("kept", v1.ConditionArchiving, "True", v1.ReasonArchiving)
	s.condition("kept", v1.ConditionScheduled, "True", v1.ReasonScheduled)
	s.backedUp("kept")
	check := s.writing("kept")
	before := s.ready("kept")
	s.run("delete", "pod", before.Status.Primary, "--wait=false", "--grace-period=0", "--force")
	s.electedAfter(before)
	s.ready("kept")
	check(outside.Lost)
	s.archived("kept")
	s.condition("kept", v1.ConditionArchiving, "True", v1.ReasonArchiving)

	s.asksForBackups("kept", "now")
	s.run("annotate", "databasebackup", "now", "toban.dev/verify=please")
	s.until(func(ctx context.Context) error {
		said, err := s.Kubectl(ctx, "get", "databasebackup", "now",
			"-o", "jsonpath={range .status.conditions[?(@.type=='Verified')]}{.status}: {.message}{end}")
		if err == nil && !strings.HasPrefix(said, "True: ") {
			err = fmt.Errorf("verified: %q", said)
		}
		return err
	})
	if answer := s.run("get", "databasebackup", "now",
		"-o", "jsonpath={.status.verification.answers[0].got}"); answer != "yes" {
		t.Errorf("the question was answered with %q", answer)
	}
	if from := s.run("get", "databasebackup", "now",
		"-o", "jsonpath={.status.instance}"); from == s.ready("kept").Status.Primary {
		t.Errorf("the backup was taken from the primary %s, though standbys stream", from)
	}
}

// asksForBackups takes a backup with kubectl toban backup, which returns when the backup has ended: without an error
// if it is in the archive. A name that is taken, and a SampleDB that is not there, are errors.
func (s *story) asksForBackups(db, backup string) {
	s.Helper()
	said := s.toban("backup", db, "--name", backup, "--keep")
	status := s.run("get", "databasebackup", backup, "-o", "jsonpath={.status.phase} {.spec.sampleDB} {.spec.keep}")
	if want := "Completed " + db + " true"; status != want {
		s.Errorf("when kubectl toban backup returned, the backup was %q, want %q", status, want)
	}
	lines := strings.Split(strings.TrimSpace(said), "\n")
	if last := lines[len(lines)-1]; !strings.HasPrefix(last, backup+": ") ||
		!strings.Contains(last, " stored, from "+db) {
		s.Errorf("kubectl toban backup ends with %q", last)
	}
	for why, args := range map[string][]string{
		"already exists": {"backup", db, "--name", backup}, "not found": {"backup", "nobody"},
	} {
		if _, err := s.Toban(s.ctx, args...); err == nil || !strings.Contains(err.Error(), why) {
			s.Errorf("kubectl toban %s: %v, want an error with %q", strings.Join(args, " "), err, why)
		}
	}
}

// What can't be is said in words, and prevents nothing else.
func TestBackupThatCannotBe(t *testing.T) {
	s := begin(t)
	s.apply(withBackup("odd", 1, "schedule: every now and then"))
	s.ready("odd")
	if message := s.condition("odd", v1.ConditionScheduled, "False",
		v1.ReasonScheduleInvalid); !strings.Contains(message, "every now and then") {
		t.Errorf("the message does not name the schedule: %s", message)
	}
	if next := s.ready("odd").Status.Backup.NextBackupAt; next != nil {
		t.Errorf("the next backup is said to be at %s", next)
	}
	s.apply("apiVersion: toban.dev/v1\nkind: DatabaseBackup\nmetadata: {name: nobodys}\nspec: {sampleDB: nobody}\n")
	s.until(func(ctx context.Context) error {
		reason, err := s.Kubectl(ctx, "get", "databasebackup", "nobodys",
			"-o", "jsonpath={.status.conditions[?(@.type=='Complete')].reason}")
		if err == nil && reason != v1.ReasonSampleDBNotFound {
			err = fmt.Errorf("the reason is %q", reason)
		}
		return err
	})
}
