package api

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/order/databaserestore"
	"toban.dev/internal/protocol"
)

// bring reconciles a DatabaseRestore once.
func (k *taker) bring(d *v1.DatabaseRestore) *v1.DatabaseRestore {
	k.Helper()
	k.now = k.now.Add(10 * time.Second)
	r := &databaserestore.Reconciler{
		Base: k.base(),
		Pods: replaying{},
	}
	_, err := r.Reconcile(k.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(d)})
	k.must(err)
	now := &v1.DatabaseRestore{}
	k.read(d.Name, now)
	return now
}

// askBack creates a DatabaseRestore of a table, and reconciles it once.
func (k *taker) askBack(name, db string, modify ...func(*v1.DatabaseRestore)) *v1.DatabaseRestore {
	k.Helper()
	d := &v1.DatabaseRestore{
		ObjectMeta: metav1.ObjectMeta{Namespace: k.namespace, Name: name},
		Spec: v1.DatabaseRestoreSpec{
			SampleDB: db, Tables: []string{"public.orders"}, Target: &v1.RestoreTarget{LSN: "0/3000060"},
			Deadline: metav1.Duration{Duration: 24 * time.Hour},
		},
	}
	for _, m := range modify {
		m(d)
	}
	k.must(k.api.Create(k.Context(), d))
	return k.bring(d)
}

func (k *taker) expectBack(d *v1.DatabaseRestore, status metav1.ConditionStatus, reason, phase string) string {
	k.Helper()
	c := meta.FindStatusCondition(d.Status.Conditions, v1.ConditionComplete)
	if c == nil || c.Status != status || c.Reason != reason || d.Status.Phase != phase {
		k.Fatalf("the restore is %s: %+v, want %s for %s", d.Status.Phase, c, status, reason)
	}
	return c.Message
}

// bringPod makes a Pod of the Job, as Kubernetes does, which can be asked while it restores.
func (k *taker) bringPod(d *v1.DatabaseRestore) *corev1.Pod {
	k.Helper()
	job := &batchv1.Job{}
	k.read(naming.Bring(d.Name), job)
	if !metav1.IsControlledBy(job, d) {
		k.Errorf("the Job belongs to %v", job.OwnerReferences)
	}
	pod := &corev1.Pod{ObjectMeta: *job.Spec.Template.ObjectMeta.DeepCopy(), Spec: *job.Spec.Template.Spec.DeepCopy()}
	pod.Namespace, pod.Name = k.namespace, job.Name+"-a"
	pod.OwnerReferences = []metav1.OwnerReference{
		*metav1.NewControllerRef(job, batchv1.SchemeGroupVersion.WithKind("Job")),
	}
	k.must(k.api.Create(k.Context(), pod))
	pod.Status.Phase, pod.Status.PodIP, pod.Status.PodIPs = corev1.PodPending, "192.0.2.9",
		[]corev1.PodIP{{IP: "192.0.2.9"}}
	k.must(k.api.Status().Update(k.Context(), pod))
	return pod
}

// endsWith ends the containers of a Pod with what they leave.
func (k *taker) endsWith(pod *corev1.Pod, phase corev1.PodPhase, restored, brought any) {
	k.Helper()
	ended := func(name string, left any) []corev1.ContainerStatus {
		text, err := json.Marshal(left)
		k.must(err)
		return []corev1.ContainerStatus{{Name: name, Image: "x", ImageID: "x", State: corev1.ContainerState{
			Terminated: &corev1.ContainerStateTerminated{Message: string(text)}}}}
	}
	pod.Status.Phase = phase
	pod.Status.InitContainerStatuses = ended(naming.ContainerRestore, restored)
	pod.Status.ContainerStatuses = ended(naming.ContainerBring, brought)
	k.must(k.api.Status().Update(k.Context(), pod))
}

func TestATableIsBroughtBack(t *testing.T) {
	k, _ := newWorld(t).ready("x")
	d := k.askBack("lost", "x")
	k.expectBack(d, metav1.ConditionFalse, v1.ReasonRunning, "Running")
	settings := &corev1.ConfigMap{}
	k.read(naming.Bring("lost"), settings)
	for key, words := range map[string]string{
		naming.KeyRestore: `"scratch": true`, naming.KeyBring: `"database": "app"`,
	} {
		if !strings.Contains(settings.Data[key], words) {
			t.Errorf("%s says %s", key, settings.Data[key])
		}
	}
	pod := k.bringPod(d)
	if m := k.expectBack(k.bring(d), metav1.ConditionFalse, v1.ReasonRunning, "Running"); m != "replays WAL" {
		t.Errorf("while it runs the message is %q", m)
	}
	k.endsWith(pod, corev1.PodSucceeded, protocol.RestoreResult{Backup: "b1", LSN: "0/3000060"}, protocol.BringResult{
		Objects: []protocol.BroughtObject{{
			Name: "public.orders", As: "public.orders_restored_1", Rows: 12, Present: 9, Compared: true,
			OnlyRestored: 3,
		}},
	})
	d = k.bring(d)
	m := k.expectBack(d, metav1.ConditionTrue, v1.ReasonCompleted, "Completed")
	if !strings.Contains(m, "public.orders is there as public.orders_restored_1 (12 rows; 3 only there") {
		t.Errorf("it says %q", m)
	}
	if s := d.Status; s.Backup != "b1" || s.LSN != "0/3000060" || len(s.Objects) != 1 ||
		s.Objects[0].OnlyRestored != 3 || s.CompletedAt == nil || s.Attempts != 1 {
		t.Errorf("the status is %+v", s)
	}
	k.expectTidied(d)
}

// expectTidied expects the Job to stay for its log for a while, and to go then: and that nothing begins anew.
func (k *taker) expectTidied(d *v1.DatabaseRestore) {
	k.Helper()
	k.bring(d)
	k.read(naming.Bring(d.Name), &batchv1.Job{})
	k.now = k.now.Add(11 * time.Minute)
	k.bring(d)
	k.bring(d)
	key := client.ObjectKey{Namespace: k.namespace, Name: naming.Bring(d.Name)}
	if err := k.api.Get(k.Context(), key, &batchv1.Job{}); !apierrors.IsNotFound(err) {
		k.Errorf("the Job is still there: %v", err)
	}
}

func TestATableThatCantBeBroughtBack(t *testing.T) {
	k, _ := newWorld(t).ready("x")
	d := k.askBack("refused", "x")
	pod := k.bringPod(d)
	k.endsWith(pod, corev1.PodFailed, protocol.RestoreResult{Backup: "b1"},
		protocol.BringResult{Error: "refused: there is no table public.orders"})
	k.expectBack(k.bring(d), metav1.ConditionFalse, v1.ReasonRunning, "Running") // another Pod may follow
	job := &batchv1.Job{}
	k.read(naming.Bring("refused"), job)
	k.fail(job)
	if m := k.expectBack(k.bring(d), metav1.ConditionFalse, v1.ReasonFailed, "Failed"); !strings.Contains(m,
		"there is no table public.orders") {
		t.Errorf("it says %q", m)
	}
	d = k.askBack("nobody", "y")
	k.expectBack(d, metav1.ConditionFalse, v1.ReasonSampleDBNotFound, "Pending")
	d.Spec.Cancel = true
	k.must(k.api.Update(k.Context(), d))
	k.expectBack(k.bring(d), metav1.ConditionFalse, v1.ReasonCancelled, "Cancelled")
	d = k.askBack("nothing", "x", func(d *v1.DatabaseRestore) { d.Spec.Backup = "gone" })
	if m := k.expectBack(d, metav1.ConditionFalse, v1.ReasonRestoreSourceNotFound, "Pending"); !strings.Contains(m,
		"no DatabaseBackup gone") {
		t.Errorf("it says %q", m)
	}
}

// fail ends a Job as Kubernetes does when its Pods have failed.
func (k *taker) fail(job *batchv1.Job) {
	k.Helper()
	now := metav1.Now()
	job.Status.StartTime = &now
	job.Status.Failed = 1
	for _, kind := range []batchv1.JobConditionType{batchv1.JobFailureTarget, batchv1.JobFailed} {
		job.Status.Conditions = append(job.Status.Conditions, batchv1.JobCondition{Type: kind,
			Status: corev1.ConditionTrue, Reason: batchv1.JobReasonPodFailurePolicy, LastTransitionTime: now})
	}
	k.must(k.api.Status().Update(k.Context(), job))
}

func TestADatabaseRestoreIsRefusedWithASentence(t *testing.T) {
	w := newWorld(t)
	for name, c := range map[string]struct {
		modify func(*v1.DatabaseRestoreSpec)
		words  string
	}{
		"no moment": {func(s *v1.DatabaseRestoreSpec) { s.Target = nil }, "say of which moment"},
		"tables of schemas": {
			func(s *v1.DatabaseRestoreSpec) { s.Schemas = []string{"sales"} }, "give tables, or schemas",
		},
		"another mode": {func(s *v1.DatabaseRestoreSpec) { s.Mode = "Above" }, "Beside"},
	} {
		t.Run(name, func(t *testing.T) {
			d := &v1.DatabaseRestore{
				ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "d"},
				Spec: v1.DatabaseRestoreSpec{
					SampleDB: "x", Tables: []string{"orders"}, Target: &v1.RestoreTarget{Name: "n"},
					Deadline: metav1.Duration{Duration: time.Hour},
				},
			}
			c.modify(&d.Spec)
			refused(t, w.api.Create(t.Context(), d), c.words)
		})
	}
	k := w.taker()
	d := k.askBack("fixed", "x")
	d.Spec.Tables = []string{"public.customers"}
	refused(t, w.api.Update(t.Context(), d), "only cancel and deadline can be changed")
}
