package api

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/desired"
	"toban.dev/internal/operator/order/verification"
	"toban.dev/internal/protocol"
)

// verify reconciles the verification of a backup once.
func (k *taker) verify(b *v1.DatabaseBackup) *v1.DatabaseBackup {
	k.Helper()
	k.now = k.now.Add(10 * time.Second)
	r := &verification.Reconciler{
		Base:  k.base(),
		Pods:  replaying{},
		Turns: k.turns,
	}
	_, err := r.Reconcile(k.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(b)})
	k.must(err)
	now := &v1.DatabaseBackup{}
	k.read(b.Name, now)
	return now
}

// verifies ends the Pod of a verification with a result.
func (k *taker) verifies(b *v1.DatabaseBackup, asked string, result protocol.VerifyResult) *v1.DatabaseBackup {
	k.Helper()
	job := &batchv1.Job{}
	k.read(desired.VerifyJobName(b, asked), job)
	pod := &corev1.Pod{ObjectMeta: *job.Spec.Template.ObjectMeta.DeepCopy(), Spec: *job.Spec.Template.Spec.DeepCopy()}
	pod.Namespace, pod.Name = k.namespace, job.Name+"-a"
	pod.OwnerReferences = []metav1.OwnerReference{
		*metav1.NewControllerRef(job, batchv1.SchemeGroupVersion.WithKind("Job")),
	}
	k.must(k.api.Create(k.Context(), pod))
	// It restores in an init container, and can be asked as soon as it has an address.
	pod.Status.Phase, pod.Status.PodIP, pod.Status.PodIPs = corev1.PodPending, "192.0.2.9",
		[]corev1.PodIP{{IP: "192.0.2.9"}}
	k.must(k.api.Status().Update(k.Context(), pod))
	if c := meta.FindStatusCondition(k.verify(b).Status.Conditions, v1.ConditionVerified); c == nil ||
		c.Message != "replays WAL: 50 %" {
		k.Errorf("while it runs the condition is %+v", c)
	}
	text, err := json.Marshal(result)
	k.must(err)
	pod.Status.Phase = corev1.PodSucceeded
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: naming.ContainerVerify, Image: "x", ImageID: "x",
		State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Message: string(text)}}}}
	k.must(k.api.Status().Update(k.Context(), pod))
	return k.verify(b)
}

func (k *taker) expectVerified(b *v1.DatabaseBackup, status metav1.ConditionStatus, reason string) string {
	k.Helper()
	c := meta.FindStatusCondition(b.Status.Conditions, v1.ConditionVerified)
	if c == nil || c.Status != status || c.Reason != reason {
		k.Fatalf("the condition is %+v, want %s for %s", c, status, reason)
	}
	return c.Message
}

var proven = protocol.VerifyResult{LSN: "0/6000000", Recovery: 2.4,
	Steps: []protocol.VerifyStep{
		{Name: "unpack", Seconds: 1.2}, {Name: "amcheck", Skipped: "the image has no pg_amcheck"},
	},
	Answers: []protocol.VerifyAnswer{{Name: "orders", Rows: 1, Got: "t"}},
	Scrub:   &protocol.ScrubState{Position: 1<<63 + 4711, At: time.Date(2026, 11, 20, 3, 0, 0, 0, time.UTC)}}

func TestABackupIsVerifiedWhenThatIsAskedFor(t *testing.T) {
	k, db := newWorld(t).ready("x")
	db = k.edit(db, func(db *v1.SampleDB) {
		db.Spec.Backup.Verification = v1.VerificationSpec{
			AfterBackup: true, Size: "3Gi", Assertions: []v1.Assertion{{Name: "orders", SQL: "select true"}},
		}
	})
	k.checkVerifySettings()
	b := k.ask("one", "x")
	if b = k.verify(b); meta.FindStatusCondition(b.Status.Conditions, v1.ConditionVerified) != nil {
		t.Error("nobody asked for it")
	}
	b = k.ask("two", "x", func(b *v1.DatabaseBackup) { b.Spec.Verify = true })
	k.complete(&v1.DatabaseBackup{ObjectMeta: metav1.ObjectMeta{Namespace: k.namespace, Name: "one"}})
	b = k.complete(k.take(b))
	b = k.verify(b)
	k.expectVerified(b, metav1.ConditionFalse, v1.ReasonVerifying)
	if scratch := k.scratch(b, "spec.verify"); scratch != "3Gi" {
		t.Errorf("the Job has a scratch volume of %q", scratch)
	}
	b = k.verifies(b, "spec.verify", proven)
	if m := k.expectVerified(b, metav1.ConditionTrue, v1.ReasonVerified); !strings.Contains(m, "0/6000000") ||
		!strings.Contains(m, "2.4s") {
		t.Errorf("it says %q", m)
	}
	if v := b.Status.Verification; v.RecoveryTime.Duration != 2400*time.Millisecond || len(v.Steps) != 2 ||
		v.Answers[0].Got != "t" || v.CompletedAt == nil {
		t.Errorf("the status is %+v", v)
	}
	if db = k.reconcile(db); db.Status.Backup.LastVerified != "two" {
		t.Errorf("the SampleDB says %+v", db.Status.Backup)
	}
	k.expect(db, v1.ConditionIntact, metav1.ConditionTrue, v1.ReasonIntact)
	k.expectReadOn(1<<63 + 4711)
	// Once more, and now something is broken; until then what was found before holds.
	b.Annotations = map[string]string{naming.AnnotationVerify: "again"}
	k.must(k.api.Update(k.Context(), b))
	b = k.verify(b)
	k.expectVerified(b, metav1.ConditionTrue, v1.ReasonVerifying)
	b = k.verifies(b, "again", protocol.VerifyResult{
		Error: "base/two/base.tar.00000.zst is altered", Objects: []string{"base/two/base.tar.00000.zst"},
		Scrub: &protocol.ScrubState{At: time.Date(2026, 11, 27, 3, 0, 0, 0, time.UTC),
			Broken: []protocol.BrokenObject{{Name: "base/one/base.tar.00001.zst", Problem: "missing"}}},
	})
	if m := k.expectVerified(b, metav1.ConditionFalse, v1.ReasonVerificationFailed); !strings.Contains(m,
		"is altered") || len(b.Status.Verification.Objects) != 1 {
		t.Errorf("it says %q, %+v", m, b.Status.Verification)
	}
	broken := k.expect(k.reconcile(db), v1.ConditionIntact, metav1.ConditionFalse, v1.ReasonObjectsBroken)
	if !strings.Contains(broken, "base/one/base.tar.00001.zst (missing)") {
		t.Errorf("it says %q", broken)
	}
}

// expectReadOn checks from where on the next verification is told to read.
func (k *taker) expectReadOn(position uint64) {
	k.Helper()
	settings := &corev1.ConfigMap{}
	db := &v1.SampleDB{}
	k.read("x", db)
	k.reconcile(db) // with the status as it is now
	k.read("x-backup", settings)
	if told, err := backupSettings(settings); err != nil || told.Verify.Scrub.Last.Position != position {
		k.Errorf("it reads on at %+v, %v", told.Verify.Scrub, err)
	}
}

// checkVerifySettings checks what the Pods are told that verify backups of x.
func (k *taker) checkVerifySettings() {
	k.Helper()
	settings := &corev1.ConfigMap{}
	k.read("x-backup", settings)
	told, err := backupSettings(settings)
	if err != nil || len(told.Verify.Assertions) != 1 || told.Verify.Assertions[0].Database != "app" ||
		told.Verify.Major != 17 {
		k.Errorf("the Pod is told %+v, %v", told.Verify, err)
	}
}

// scratch is the size of the scratch volume of a verification.
func (k *taker) scratch(b *v1.DatabaseBackup, asked string) string {
	k.Helper()
	job := &batchv1.Job{}
	k.read(desired.VerifyJobName(b, asked), job)
	if !metav1.IsControlledBy(job, b) {
		k.Error("the Job does not go with the backup")
	}
	for _, v := range job.Spec.Template.Spec.Volumes {
		if v.Ephemeral != nil {
			return v.Ephemeral.VolumeClaimTemplate.Spec.Resources.Requests.Storage().String()
		}
	}
	return ""
}

func TestTheLastBackupIsVerifiedBySchedule(t *testing.T) {
	k, db := newWorld(t).ready("x")
	db = k.edit(db, func(db *v1.SampleDB) { db.Spec.Backup.Verification.Schedule = "nonsense" })
	if m := k.expect(db, v1.ConditionScheduled, metav1.ConditionFalse, v1.ReasonScheduleInvalid); !strings.Contains(m,
		"verification.schedule") {
		t.Errorf("it says %q", m)
	}
	at := k.now.UTC().Add(2 * time.Hour)
	schedule := fmt.Sprintf("%d %d * * *", at.Minute(), at.Hour())
	db = k.edit(db, func(db *v1.SampleDB) {
		db.Spec.Backup.Verification.Schedule, db.Spec.Backup.Spread = schedule, &metav1.Duration{}
	})
	last := &v1.DatabaseBackup{}
	k.read(k.backups()[0], last)
	if last.Annotations[naming.AnnotationVerify] != "" {
		t.Error("it is not due yet")
	}
	k.now = k.now.Add(3 * time.Hour)
	db = k.reconcile(db)
	k.read(last.Name, last)
	due, err := time.Parse(time.RFC3339, last.Annotations[naming.AnnotationVerify])
	if err != nil || !due.Equal(at.Truncate(time.Minute)) {
		t.Errorf("at %s it was asked for %s, %v", k.now, due, err)
	}
	before := last.Annotations[naming.AnnotationVerify]
	k.reconcile(db)
	if k.read(last.Name, last); last.Annotations[naming.AnnotationVerify] != before {
		t.Error("it is asked for twice")
	}
}

// A verification that hangs ends some time: Kubernetes stops its Job, and the status says what happened.
func TestAVerificationHasADeadline(t *testing.T) {
	w := newWorld(t)
	k := w.taker()
	db := w.started("x", daily("@daily"))
	state := works
	db = w.archive(db, &state)
	b := k.complete(k.ask("b", db.Name, func(b *v1.DatabaseBackup) { b.Spec.Verify = true }))
	b = k.verify(b)
	job := &batchv1.Job{}
	k.read(desired.VerifyJobName(b, "spec.verify"), job)
	if got := job.Spec.ActiveDeadlineSeconds; got == nil || *got != 24*60*60 {
		t.Fatalf("the Job may take %v seconds", got)
	}
	now := metav1.Now()
	job.Status.StartTime, job.Status.Failed = &now, 1
	for _, kind := range []batchv1.JobConditionType{batchv1.JobFailureTarget, batchv1.JobFailed} {
		job.Status.Conditions = append(job.Status.Conditions, batchv1.JobCondition{
			Type: kind, Status: corev1.ConditionTrue, Reason: batchv1.JobReasonDeadlineExceeded,
		})
	}
	k.must(k.api.Status().Update(t.Context(), job))
	message := k.expectVerified(k.verify(b), metav1.ConditionFalse, v1.ReasonVerificationFailed)
	if !strings.Contains(message, "longer than 24h0m0s") {
		t.Errorf("it says %q", message)
	}
}

// backupSettings reads what a ConfigMap tells the Pods of backups.
func backupSettings(cm *corev1.ConfigMap) (protocol.BackupSettings, error) {
	var settings protocol.BackupSettings
	err := json.Unmarshal([]byte(cm.Data[naming.KeyBackup]), &settings)
	return settings, err
}
