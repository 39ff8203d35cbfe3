package api

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
)

// What the retention has removed is no backup any more, and nobody should take it for one.
func TestABackupThatRetentionRemovesSaysSo(t *testing.T) {
	k, db := newWorld(t).ready("x")
	first := k.complete(k.ask("first", "x"))
	result := taken
	result.ID, result.Removed = "20261121T031500Z-3f2b", []string{taken.ID}
	second := k.completeWith(k.ask("second", "x"), result)
	k.expectComplete(second, metav1.ConditionTrue, v1.ReasonCompleted, "Completed")
	k.read("first", first)
	k.expectComplete(first, metav1.ConditionFalse, v1.ReasonRemoved, "Removed")
	again := k.create("again", from(v1.RestoreSpec{Backup: "first"}))
	k.expect(again, v1.ConditionRestored, metav1.ConditionFalse, v1.ReasonRestoreSourceNotFound)
	if db = k.reconcile(db); db.Status.Backup.LastBackup != "second" {
		t.Errorf("the last backup is %s", db.Status.Backup.LastBackup)
	}
}
