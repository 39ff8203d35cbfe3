package api

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/cli/restore"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/desired"
	"toban.dev/internal/protocol"
)

// outcome is what a verb has come to.
type outcome struct {
	out string
	err error
}

func (o outcome) check(t *testing.T, failed string, words ...string) {
	t.Helper()
	if (o.err == nil) != (failed == "") || o.err != nil && !strings.Contains(o.err.Error(), failed) {
		t.Errorf("it ends with %v, want %q; it says\n%s", o.err, failed, o.out)
	}
	for _, w := range words {
		if !strings.Contains(o.out, w) {
			t.Errorf("it does not say %q:\n%s", w, o.out)
		}
	}
}

// asks runs `toban restore` as a person does who types something, and plays the world until it has ended.
func (k *taker) asks(typed string, play func(), args ...string) outcome {
	k.Helper()
	return k.types(typed, play, restore.RestoreTo(), args...)
}

// types runs a verb as a person does who types something, and plays the world until it has ended.
func (k *taker) types(typed string, play func(), verb *cobra.Command, args ...string) outcome {
	k.Helper()
	done := make(chan outcome, 1)
	var out bytes.Buffer
	verb.SetIn(strings.NewReader(typed))
	verb.SetOut(&out)
	verb.SetErr(&out)
	verb.SetArgs(append(args, "--kubeconfig", k.kubeconfig()))
	ctx, cancel := context.WithTimeout(k.Context(), time.Minute)
	defer cancel()
	go func() { err := verb.ExecuteContext(ctx); done <- outcome{out.String(), err} }()
	for {
		select {
		case o := <-done:
			return o
		case <-time.After(100 * time.Millisecond):
			play()
		}
	}
}

// restores plays the operator and the cluster for a SampleDB, of which the Pod of the restore leaves a result.
func (k *taker) restores(name string, result protocol.RestoreResult, jobName func(*v1.SampleDB) string) func() {
	return func() {
		k.Helper()
		db := &v1.SampleDB{}
		if !k.find(name, db) {
			return
		}
		db = k.reconcile(db)
		if db.Status.Restore != nil && db.Status.Restore.CompletedAt == nil {
			job := &batchv1.Job{}
			if pod := name + "-restore-a"; k.find(jobName(db), job) && !k.find(pod, &corev1.Pod{}) {
				k.restorePod(job, pod, &result)
				if result.Error != "" {
					k.failJob(job.Name, batchv1.JobReasonPodFailurePolicy)
				}
			}
		}
		k.playCluster(db)
	}
}

func firstJob(db *v1.SampleDB) string { return desired.FirstRestore(db).JobName(db) }

func inPlaceJob(db *v1.SampleDB) string {
	if db.Spec.Restore == nil {
		return "none"
	}
	return desired.InPlace(*db.Spec.Restore, 0).JobName(db)
}

func (k *taker) sample(name string) *v1.SampleDB {
	k.Helper()
	db := &v1.SampleDB{}
	k.read(name, db)
	return db
}

func TestTheRestoreVerbMakesANewSampleDB(t *testing.T) {
	k, db := newWorld(t).ready("x")
	db = k.edit(db, func(db *v1.SampleDB) {
		db.Spec.Service = v1.ServiceSpec{
			Type: corev1.ServiceTypeLoadBalancer, Annotations: map[string]string{"name.example": "db.example.com"},
		}
		db.Labels = map[string]string{"of": "another-tool"}
	})
	o := k.asks("", k.restores("again", backRestored, firstJob), "x", "--into", "again", "--to", "2026-11-20T03:14:00Z")
	o.check(t, "", "x: every moment from 2026-11-01T03:00:00Z to ",
		"again: begins with x as it was at 2026-11-20T03:14:00Z", "again: again-0 takes writes")
	again := k.sample("again")
	if f := again.Spec.RestoreFrom; f == nil || f.SampleDB != "x" || f.Target == nil ||
		f.Target.Time != "2026-11-20T03:14:00Z" {
		t.Errorf("it begins with %+v", f)
	}
	if s := again.Spec; s.Version != db.Spec.Version || s.Instances != 2 ||
		s.Storage.Size != db.Spec.Storage.Size || s.Backup == nil {
		t.Errorf("it is %+v", s)
	}
	if s := again.Spec.Service; s.Annotations != nil || s.Type == corev1.ServiceTypeLoadBalancer ||
		again.Labels["of"] != "" {
		t.Errorf("it takes the name of the other outside: %+v, %v", s, again.Labels)
	}
	if k.sample("x").Spec.Restore != nil {
		t.Error("the other is restored too")
	}
	o = k.asks("", func() {}, "x", "--into", "again", "--to", "latest")
	o.check(t, "already exists")
}

func TestTheRestoreVerbKnowsDeletedSampleDBsByTheirBackups(t *testing.T) {
	k, db := newWorld(t).ready("x")
	db = k.edit(db, func(db *v1.SampleDB) { db.Spec.DeletionPolicy = v1.DeletionDelete })
	backup := k.backups()[0]
	k.goes(db)
	k.gone(db)
	k.asks("", func() {}, "x", "--into", "again", "--to", "latest").check(t, "name one with --backup: "+backup)
	k.asks("", func() {}, "x", "--backup", backup).check(t, "make a new one of its backup with --into")
	k.asks("", func() {}, "x", "--into", "again", "--backup", backup).check(t, "The data takes 25Mi")
	o := k.asks("", k.restores("again", backRestored, firstJob), "x", "--into", "again", "--backup", backup,
		"--size", "2Gi", "--instances", "2")
	o.check(t, "", "again: begins with x as it was at the end of the backup "+backup, "again-0 takes writes")
	if s := k.sample("again").Spec; s.Version != 17 || s.Storage.Size != "2Gi" || s.Instances != 2 || s.Backup == nil ||
		s.RestoreFrom.Backup != backup || s.RestoreFrom.Target != nil {
		t.Errorf("it is %+v", s)
	}
	k.asks("", func() {}, "x", "--into", "latest", "--backup", backup, "--to", "latest", "--size", "2Gi",
		"--wait=false").check(t, "")
	if f := k.sample("latest").Spec.RestoreFrom; f.Backup != "" || f.Archive == nil || f.Archive.Claim != "x-archive" {
		t.Errorf("all of the archive is %+v", f)
	}
	k.asks("", func() {}, "y", "--into", "again", "--backup", backup).check(t, "is of the SampleDB x, not of y")
	k.asks("", func() {}, "nobody", "--into", "again", "--to", "latest").check(t, "no backup of one")
}

func TestTheRestoreVerbGoesBackInPlace(t *testing.T) {
	k, db := newWorld(t).ready("x")
	k.reconcile(db)
	for typed, args := range map[string][]string{
		"":    {"x", "--to", "0/4000100"},
		"y\n": {"x", "--to", "0/4000100"},
	} {
		k.asks(typed, func() {}, args...).check(t, "it was not confirmed",
			"every moment from 2026-11-01T03:00:00Z", "type the name")
	}
	if k.sample("x").Spec.Restore != nil {
		t.Fatal("it was restored without a confirmation")
	}
	o := k.asks("x\n", k.restores("x", backRestored, inPlaceJob), "x", "--to", "0/4000100", "--exclusive")
	o.check(t, "", "x: goes back to right before position 0/4000100", "is asked for", "x: x-0 takes writes")
	db = k.sample("x")
	if r := db.Spec.Restore; r == nil || r.Confirm != "x" || r.Target.LSN != "0/4000100" || !r.Target.Exclusive ||
		r.Before != v1.BeforeKeep {
		t.Errorf("the spec has %+v", db.Spec.Restore)
	}
	k.expect(db, v1.ConditionRestored, metav1.ConditionTrue, v1.ReasonRestored)
	k.expectInstances(db, 2, db.Spec.Restore.ID)
}

func TestWhatTheRestoreVerbSaysOfARefusal(t *testing.T) {
	k, _ := newWorld(t).ready("x")
	refused := protocol.RestoreResult{
		Error: "restore to position 0/7000000: outside of what can be restored: that is from 0/4000100 to 0/6000000",
	}
	o := k.asks("", k.restores("x", refused, inPlaceJob), "x", "--to", "0/7000000", "--yes")
	o.check(t, "that is from 0/4000100 to 0/6000000\nThe database is as it was, and the request is taken back")
	if k.sample("x").Spec.Restore != nil {
		t.Error("the operator will try it again")
	}
	o = k.asks("", k.restores("again", refused, firstJob), "x", "--to", "0/7000000", "--into", "again")
	o.check(t, "to give it up: kubectl delete sampledb again")
	k.asks("", func() {}, "x").check(t, "say up to where")
	k.asks("", func() {}, "x", "--to", "latest").check(t, "has the latest already")
	k.asks("", func() {}, "x", "--to", "yesterday").check(t, `"yesterday" can't be understood`)
	k.asks("", func() {}, "x", "--to", "0/1", "--size", "1Gi").check(t, "they go with --into")
	k.asks("", func() {}, "x", "--backup", "nothing").check(t, "read the DatabaseBackup nothing")
	db := k.edit(k.sample("x"), inPlace("mine", "x"))
	k.asks("", func() {}, "x", "--to", "0/1", "--yes").check(t, "the restore mine is under way")
	k.edit(db, func(db *v1.SampleDB) { db.Spec.Restore = nil })
	w := k.started("plain", withoutBackup)
	k.asks("", func() {}, w.Name, "--to", "0/1", "--yes").check(t, "has no archive")
	waits := k.ask(naming.ScheduledBackup("plain", k.now), "plain")
	k.asks("", func() {}, "plain", "--backup", waits.Name, "--yes").check(t, "can't be restored: ArchiveNotReady")
}

// A moment that is in no window is refused before anything is made of it.
func TestTheRestoreVerbMakesNothingOfAMomentThatCannotBeRestored(t *testing.T) {
	k, db := newWorld(t).ready("x")
	k.reconcile(db)
	backup := k.backups()[0]
	for _, args := range [][]string{
		{"--to", "2020-01-01T00:00:00Z"}, {"--to", "2100-01-01T00:00:00Z"},
		{"--to", "2020-01-01T00:00:00Z", "--backup", backup},
	} {
		o := k.asks("", func() {}, append(args, "x", "--into", "never", "--wait=false")...)
		o.check(t, "outside of what can be restored: every moment from 2026-11-01T03:00:00Z to ")
		if k.find("never", &v1.SampleDB{}) {
			t.Fatalf("%v has made a SampleDB", args)
		}
	}
}
