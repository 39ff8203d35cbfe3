package api

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/protocol"
)

// afterARestore is what the Pod of the backup says which follows a restore in place.
func afterARestore() protocol.BackupResult {
	result, at := taken, time.Date(2026, 11, 20, 21, 0, 20, 0, time.UTC)
	result.ID = "20261120T210100Z-3f2b"
	result.Windows = []protocol.Window{
		{Branch: 1002, Earliest: at, EarliestLSN: "0/5000100"},
		{Branch: 1, Earliest: at.Add(-18 * time.Hour), EarliestLSN: "0/3000100", Latest: at.Add(-time.Minute),
			LatestLSN: "0/14000000"},
	}
	result.Held = "base/x/backup.json can't be understood (it is cut off), so Toban keeps all WAL"
	return result
}

func TestTheStatusShowsWhatCanBeRestoredOfWhichBranch(t *testing.T) {
	k, db := newWorld(t).ready("x")
	k.drainEvents()
	b := k.completeWith(k.ask("second", "x"), afterARestore())
	if m := k.expectComplete(b, metav1.ConditionTrue, v1.ReasonCompleted, "Completed"); !strings.Contains(m,
		"base/x/backup.json can't be understood") {
		t.Errorf("the backup says %q", m)
	}
	db = k.reconcile(db)
	windows := db.Status.Backup.Windows
	if len(windows) != 2 || windows[0].Branch != 1002 || windows[0].Latest != nil || windows[0].LatestLSN != "" ||
		windows[1].Branch != 1 || windows[1].LatestLSN != "0/14000000" ||
		windows[1].Latest.UTC().Format(time.RFC3339) != "2026-11-20T20:59:20Z" {
		t.Errorf("the windows are %+v", windows)
	}
	if events := k.drainEvents(); db.Status.Backup.Retention == "" ||
		strings.Count(events, "RetentionHeld base/x/backup.json can't be understood") != 1 {
		t.Errorf("retention says %q, the events\n%s", db.Status.Backup.Retention, events)
	}
	k.reconcile(db)
	if events := k.drainEvents(); strings.Contains(events, "RetentionHeld") {
		t.Errorf("it is told again:\n%s", events)
	}
	// A later one to which nothing is held back takes that away. What can be restored it could not see.
	result := taken
	result.ID = "20261120T230100Z-3f2c"
	k.now = k.now.Add(time.Minute)
	k.completeWith(k.ask("third", "x"), result)
	if db = k.reconcile(db); db.Status.Backup.Retention != "" || len(db.Status.Backup.Windows) != 2 {
		t.Errorf("the status has %+v", db.Status.Backup)
	}
}

func TestTheRestoreVerbNamesABranch(t *testing.T) {
	k, db := newWorld(t).ready("x")
	k.completeWith(k.ask("second", "x"), afterARestore())
	k.reconcile(db)
	of := []string{
		"of branch 1002 from 2026-11-20T21:00:20Z (0/5000100) to",
		"of branch 1 from 2026-11-20T03:00:20Z (0/3000100) to 2026-11-20T20:59:20Z (0/14000000)",
	}
	o := k.asks("", k.restores("again", backRestored, firstJob), "x", "--into", "again", "--to", "0/A000000",
		"--branch", "1")
	o.check(t, "", append(of, "as it was at position 0/A000000 of branch 1")...)
	if f := k.sample("again").Spec.RestoreFrom; f.Target.Branch != 1 || f.Target.LSN != "0/A000000" {
		t.Errorf("it begins with %+v", f)
	}
	settings := &corev1.ConfigMap{}
	k.read("again-restore", settings)
	var told protocol.RestoreSettings
	k.must(json.Unmarshal([]byte(settings.Data[naming.KeyRestore]), &told))
	if told.Target.Branch != 1 || told.Target.LSN != "0/A000000" || told.Target.Immediate {
		t.Errorf("the Pod is told %+v", told.Target)
	}
	result := backRestored
	result.Branch = 1
	o = k.asks("x\n", k.restores("x", result, inPlaceJob), "x", "--to", "latest", "--branch", "1")
	o.check(t, "", append(of, "goes back to the end of branch 1")...)
	db = k.sample("x")
	if r := db.Spec.Restore.Target; *r != (v1.RestoreTarget{Branch: 1}) || db.Status.Restore.Branch != 1 {
		t.Errorf("the target is %+v, the status %+v", r, db.Status.Restore)
	}
	k.asks("", func() {}, "x", "--backup", "second", "--branch", "1").check(t, "give --to too")
	k.asks("", func() {}, "x", "--to", "latest", "--branch", "-1").check(t, "must be the number of a branch")
	k.asks("", func() {}, "x", "--to", "latest", "--branch", "1", "--exclusive").check(t, "--exclusive goes with")
}

func TestWhatATargetCanSayOfABranch(t *testing.T) {
	w := newWorld(t)
	for name, c := range map[string]struct {
		target v1.RestoreTarget
		error  string
	}{
		"alone":          {v1.RestoreTarget{Branch: 1}, ""},
		"with a time":    {v1.RestoreTarget{Branch: 1002, Time: "2026-11-20T03:15:00Z"}, ""},
		"with an LSN":    {v1.RestoreTarget{Branch: 1002, LSN: "0/1", Exclusive: true}, ""},
		"nothing":        {v1.RestoreTarget{}, "or branch alone"},
		"two moments":    {v1.RestoreTarget{Branch: 1, LSN: "0/1", Name: "n"}, "or branch alone"},
		"right before":   {v1.RestoreTarget{Branch: 1, Exclusive: true}, "goes with time, lsn or transaction"},
		"less than one":  {v1.RestoreTarget{Branch: -1}, "a number from status.backup.windows"},
		"none is before": {v1.RestoreTarget{Exclusive: true}, "or branch alone"},
	} {
		t.Run(name, func(t *testing.T) {
			db := w.sampleDB("y-"+strings.ReplaceAll(strings.ToLower(name), " ", "-"),
				from(v1.RestoreSpec{SampleDB: "x", Target: &c.target}))
			err := w.api.Create(w.Context(), db)
			if (err == nil) != (c.error == "") || err != nil && !strings.Contains(err.Error(), c.error) {
				t.Errorf("%+v: %v", c.target, err)
			}
		})
	}
}

// The Pods of backups are told what retention leaves alone.
func TestPinnedBackupsAndThoseInUseAreTold(t *testing.T) {
	k, db := newWorld(t).ready("x")
	spared := func() (pinned, inUse []string) {
		settings := &corev1.ConfigMap{}
		k.read("x-backup", settings)
		told, err := backupSettings(settings)
		k.must(err)
		return told.Keep.Pinned, told.Keep.InUse
	}
	b := &v1.DatabaseBackup{}
	k.read(k.backups()[0], b)
	b.Spec.Keep = true
	k.must(k.api.Update(k.Context(), b))
	db = k.reconcile(db)
	if pinned, inUse := spared(); !slices.Equal(pinned, []string{taken.ID}) || len(inUse) > 0 {
		t.Errorf("pinned are %v, in use %v", pinned, inUse)
	}
	k.read(b.Name, b)
	b.Spec.Keep = false
	k.must(k.api.Update(k.Context(), b))
	// Another SampleDB is restored from it: the Pod says with which backup it begins.
	again := k.create("again", from(v1.RestoreSpec{SampleDB: "x"}), archived)
	job := &batchv1.Job{}
	k.read(firstJob(again), job)
	pod := k.restorePod(job, "again-restore-a", nil)
	again = k.reconcile(again)
	db = k.reconcile(db)
	if pinned, inUse := spared(); len(pinned) > 0 || !slices.Equal(inUse, []string{taken.ID}) {
		t.Errorf("pinned are %v, in use %v; the restore is %+v", pinned, inUse, again.Status.Restore)
	}
	k.endRestore(pod, backRestored)
	k.reconcile(again)
	k.reconcile(db)
	if _, inUse := spared(); len(inUse) > 0 {
		t.Errorf("in use are %v", inUse)
	}
}
