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

// A snapshot of the volume of a primary that writes, whose files are copied one after the other, is a backup: one new
// database is as it was then, another one has what came later too, from the archive. The snapshots' side is played, on
// real volumes; test/api has more of what drivers say, and test/local of what servers do.
func TestLongVolumeSnapshots(t *testing.T) {
	s := begin(t)
	s.apply(withBackup("main", 2, "schedule: \"0 3 * * *\""))
	s.ready("main")
	s.backedUp("main")
	s.sql("main", "CREATE TABLE kept (n int); INSERT INTO kept VALUES (1)")
	writer, err := outside.StartWriter(s.ctx, s.access("main", "main"))
	must(t, err)
	t.Cleanup(writer.Stop)
	s.rowsAtLeast("main", 200)

	s.apply(snapshotOf("main", "cut", ""))
	s.saysOfBackup("cut", v1.ReasonSnapshotAPIMissing, "external-snapshotter")
	s.startSnapshotDriver() // the operator finds the kind without a restart
	s.completed("cut")
	s.sql("main", "INSERT INTO kept VALUES (2)")
	s.apply(snapshotOf("main", "none", brokenClass))
	s.saysOfBackup("none", "", "there is no class missing")
	s.run("patch", "databasebackup", "none", "--type=merge", "-p", `{"spec":{"cancel":true}}`)
	s.saysOfBackup("none", v1.ReasonCancelled, "")
	writer.Stop()
	lost, err := writer.Lost(s.ctx)
	must(t, err)
	if len(lost) > 0 {
		t.Errorf("%d acknowledged rows are lost", len(lost))
	}
	all := s.count("main")
	to := s.clock("main")
	s.sql("main", "INSERT INTO kept VALUES (3)")
	s.archived("main")

	s.toban("restore", "main", "--into", "clone", "--backup", "cut")
	s.toban("restore", "main", "--into", "later", "--backup", "cut", "--to", to)
	s.ready("clone")
	s.ready("later")
	s.kept("clone", "1")
	s.kept("later", "1,2")
	if has := s.count("later"); has != all {
		t.Errorf("restored to after the last write it has %d rows, want %d", has, all)
	}
	if has := s.count("clone"); has < 200 || has > all {
		t.Errorf("the clone has %d rows, and there were 200 before the snapshot and %d in the end", has, all)
	}
	snapshot := s.run("get", "databasebackup", "cut", "-o", "jsonpath={.status.snapshot.name}")
	s.run("delete", "databasebackup", "cut")
	s.run("wait", "volumesnapshot/"+snapshot, "--for=delete", "--timeout=2m")
}

// snapshotOf is the manifest of a backup by a snapshot.
func snapshotOf(db, name, class string) string {
	manifest := fmt.Sprintf("apiVersion: toban.dev/v1\nkind: DatabaseBackup\nmetadata: {name: %s}\n"+
		"spec:\n  sampleDB: %s\n  method: VolumeSnapshot\n", name, db)
	if class != "" {
		manifest += "  volumeSnapshotClassName: " + class + "\n"
	}
	return manifest
}

// saysOfBackup waits until the condition Complete of a DatabaseBackup has a reason, "" for any, and these words.
func (s *story) saysOfBackup(name, reason, words string) {
	s.Helper()
	s.until(func(ctx context.Context) error {
		said, err := s.Kubectl(ctx, "get", "databasebackup", name,
			"-o", "jsonpath={range .status.conditions[?(@.type=='Complete')]}{.reason}: {.message}{end}")
		if err == nil && (!strings.HasPrefix(said, reason) || !strings.Contains(said, words)) {
			err = fmt.Errorf("it is said of the backup %s: %q", name, said)
		}
		return err
	})
}
