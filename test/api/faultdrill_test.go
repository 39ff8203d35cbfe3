package api

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/order/faultdrill"
	"toban.dev/internal/protocol"
)

// breaker notes what agents are ordered.
type breaker struct {
	mutex  sync.Mutex
	orders []string
	last   protocol.FaultOrder
	fails  error
	// failsAt is the one host where it fails, "" for all.
	failsAt string
	// meanwhile is done while an agent carries an order out.
	meanwhile func()
	// status is what agents say of their instances, nil where none answers.
	status *protocol.Status
}

func (b *breaker) Status(context.Context, types.UID, string, protocol.Config) (protocol.Status, error) {
	if b.status == nil {
		return protocol.Status{}, errors.New("no agent answers")
	}
	return *b.status, nil
}

func (b *breaker) Fault(
	_ context.Context, _ types.UID, host string, _ protocol.Config, order protocol.FaultOrder,
) (protocol.FaultResult, error) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.orders = append(b.orders, string(order.Fault)+" at "+host)
	b.last = order
	if b.meanwhile != nil {
		b.meanwhile()
	}
	if b.failsAt != "" && b.failsAt != host {
		return protocol.FaultResult{}, nil
	}
	return protocol.FaultResult{}, b.fails
}

// driller reconciles FaultDrills.
type driller struct {
	*world
	breaker breaker
}

// drilled is a SampleDB that may be broken, with a FaultDrill of it that was reconciled once.
func drilled(t *testing.T, modify ...func(*v1.FaultDrill)) (*driller, *v1.SampleDB, *v1.FaultDrill) {
	t.Helper()
	w := newWorld(t)
	db := w.started("x", instances(3), withoutArchive)
	db = w.edit(db, func(db *v1.SampleDB) {
		db.Annotations = map[string]string{naming.AnnotationFaultDrills: naming.FaultDrillsAllowed}
	})
	w.drainEvents()
	k := &driller{world: w}
	return k, db, k.ask("d", modify...)
}

func withoutArchive(db *v1.SampleDB) { db.Spec.Backup = &v1.BackupSpec{None: true} }

func (k *driller) ask(name string, modify ...func(*v1.FaultDrill)) *v1.FaultDrill {
	k.Helper()
	d := &v1.FaultDrill{
		ObjectMeta: metav1.ObjectMeta{Namespace: k.namespace, Name: name},
		Spec: v1.FaultDrillSpec{
			SampleDB: "x", Fault: v1.FaultServerHung, Duration: metav1.Duration{Duration: 10 * time.Second},
			Observe:    metav1.Duration{Duration: 30 * time.Second},
			AbortAfter: metav1.Duration{Duration: time.Minute}, Deadline: metav1.Duration{Duration: time.Hour},
			Objectives: v1.FaultDrillObjectives{
				MaxOutage:   metav1.Duration{Duration: 5 * time.Second},
				WholeWithin: metav1.Duration{Duration: 5 * time.Minute},
			},
		},
	}
	for _, m := range modify {
		m(d)
	}
	k.must(k.api.Create(k.Context(), d))
	return k.drill(d)
}

// drill reconciles a FaultDrill once, a second later.
func (k *driller) drill(d *v1.FaultDrill) *v1.FaultDrill {
	k.Helper()
	now, err := k.tryDrill(d)
	k.must(err)
	return now
}

func (k *driller) tryDrill(d *v1.FaultDrill) (*v1.FaultDrill, error) {
	k.Helper()
	k.now = k.now.Add(time.Second)
	_, err := k.drillReconciler().Reconcile(k.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(d)})
	now := &v1.FaultDrill{}
	k.read(d.Name, now)
	return now, err
}

func (k *driller) drillReconciler() *faultdrill.Reconciler {
	return &faultdrill.Reconciler{
		Base:    k.base(),
		Breaker: &k.breaker,
	}
}

func (k *driller) expectDrill(d *v1.FaultDrill, status metav1.ConditionStatus, reason, phase, words string) {
	k.Helper()
	c := meta.FindStatusCondition(d.Status.Conditions, v1.ConditionComplete)
	if c == nil || c.Status != status || c.Reason != reason || d.Status.Phase != phase ||
		!strings.Contains(c.Message, words) {
		k.Fatalf("the drill is %s: %+v, want %s for %s: %s", d.Status.Phase, c, status, reason, words)
	}
}

// clientsPod makes the Pod of the Job, whose clients write steadily.
func (k *driller) clientsPod(d *v1.FaultDrill) *corev1.Pod {
	k.Helper()
	job := &batchv1.Job{}
	k.read(naming.DrillJob(d.Name), job)
	if !metav1.IsControlledBy(job, d) {
		k.Errorf("the Job belongs to %v", job.OwnerReferences)
	}
	pod := &corev1.Pod{ObjectMeta: *job.Spec.Template.ObjectMeta.DeepCopy(), Spec: *job.Spec.Template.Spec.DeepCopy()}
	pod.Namespace, pod.Name = k.namespace, job.Name+"-a"
	pod.OwnerReferences = []metav1.OwnerReference{
		*metav1.NewControllerRef(job, batchv1.SchemeGroupVersion.WithKind("Job")),
	}
	k.must(k.api.Create(k.Context(), pod))
	pod.Status.Phase = corev1.PodRunning
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	k.must(k.api.Status().Update(k.Context(), pod))
	return pod
}

// end ends the clients, with what they have seen.
func (k *driller) end(pod *corev1.Pod, result protocol.DrillResult) {
	k.Helper()
	text, err := json.Marshal(result)
	k.must(err)
	pod.Status.Phase, pod.Status.Conditions = corev1.PodSucceeded, nil
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: naming.ContainerDrill, Image: "x", ImageID: "x", State: corev1.ContainerState{
			Terminated: &corev1.ContainerStateTerminated{Message: string(text)},
		},
	}}
	k.must(k.api.Status().Update(k.Context(), pod))
}

func (k *driller) result() protocol.DrillResult {
	return protocol.DrillResult{Began: k.now.Add(-time.Minute), Ended: k.now, Clients: []protocol.DrillClient{
		{Way: "Service", Outage: 2 * time.Second, Acknowledged: 100, Errors: 1, FirstError: "FATAL"},
		{Way: "Hosts", Outage: time.Second, Acknowledged: 120},
	}}
}

func TestADrillBreaksAnInstanceWhileClientsWrite(t *testing.T) {
	k, _, d := drilled(t)
	k.expectDrill(d, metav1.ConditionFalse, v1.ReasonRunning, "Running", "started")
	d = k.drill(d)
	if len(k.breaker.orders) > 0 {
		t.Fatalf("it was broken before the clients wrote: %q", k.breaker.orders)
	}
	pod := k.clientsPod(d)
	d = k.drill(d)
	k.expectDrill(d, metav1.ConditionFalse, v1.ReasonRunning, "Running", "x-0 was broken")
	d = k.drill(k.drill(d))
	if want := []string{"hang-server at 10.1.0.1"}; !slices.Equal(k.breaker.orders, want) {
		t.Errorf("the agents were ordered %q", k.breaker.orders)
	}
	if s := d.Status; s.Instance != "x-0" || s.OrderedAt == nil || s.StruckAt == nil {
		t.Errorf("the status is %+v", s)
	}
	if role := k.breaker.last.Role; role != protocol.RolePrimary {
		t.Errorf("the agent was ordered to break it as the %q", role)
	}
	k.now = k.now.Add(30 * time.Second)
	k.end(pod, k.result())
	d = k.drill(d)
	k.expectDrill(d, metav1.ConditionTrue, v1.ReasonCompleted, "Completed", "220 writes acknowledged, none lost")
	if s := d.Status; s.Outage != "2.00s" || s.Lost == nil || *s.Lost != 0 || len(s.Clients) != 2 ||
		s.Clients[0].FirstError != "FATAL" || !meta.IsStatusConditionTrue(s.Conditions, v1.ConditionPassed) {
		t.Errorf("the status is %+v", s)
	}
	k.expectEvents("Started", "BrokenOnPurpose", "Completed")
	k.now = k.now.Add(11 * time.Minute)
	k.drill(d)
	if k.find(naming.DrillJob("d"), &batchv1.Job{}) {
		t.Error("its Job stays")
	}
}

// expectEvents expects events with these reasons to be among those that were told.
func (k *driller) expectEvents(reasons ...string) {
	k.Helper()
	told := k.drainEvents()
	for _, reason := range reasons {
		if !strings.Contains(told, reason) {
			k.Errorf("nobody tells of %s: %s", reason, told)
		}
	}
}

// Another may have been elected since the instance was chosen: the volume of a new primary is not taken as that of a
// standby.
func TestADrillBreaksNoInstanceOfAnotherRole(t *testing.T) {
	k, _, d := drilled(t, func(d *v1.FaultDrill) { d.Spec.Instance, d.Spec.Fault = v1.DrillStandby, v1.FaultPodKilled })
	k.clientsPod(d)
	label := func(role protocol.Role) {
		pod := &corev1.Pod{}
		k.read("x-1", pod)
		pod.Labels[naming.LabelRole] = string(role)
		k.must(k.api.Update(k.Context(), pod))
	}
	label(protocol.RolePrimary)
	d = k.drill(d)
	k.expectDrill(d, metav1.ConditionFalse, v1.ReasonRunning, "Running", "x-1 was chosen as the standby")
	if d.Status.OrderedAt != nil || !k.find("x-1", &corev1.Pod{}) {
		t.Errorf("it was broken: %+v", d.Status)
	}
	label(protocol.RoleStandby)
	if d = k.drill(d); d.Status.OrderedAt == nil || k.find("x-1", &corev1.Pod{}) {
		t.Errorf("it was not broken: %+v", d.Status)
	}
}

// Nobody breaks a database by mistake, or one that has trouble already.
func TestADrillWaitsUntilItMay(t *testing.T) {
	k, db, _ := drilled(t, func(d *v1.FaultDrill) { d.Spec.Cancel = true })
	edit := func(f func(*v1.SampleDB)) { db = k.edit(db, f) }
	edit(func(db *v1.SampleDB) { db.Annotations = nil })
	d := k.ask("later")
	k.expectDrill(d, metav1.ConditionFalse, v1.ReasonDrillNotAllowed, "Pending",
		"kubectl annotate sampledb x toban.dev/fault-drills=allowed")
	edit(func(db *v1.SampleDB) {
		db.Annotations = map[string]string{naming.AnnotationFaultDrills: naming.FaultDrillsAllowed}
	})
	k.agents.change("10.1.0.2", func(s *protocol.Status) { s.Streaming, s.Ready = false, false })
	db = k.reconcile(db)
	d = k.drill(d)
	k.expectDrill(d, metav1.ConditionFalse, v1.ReasonNotReadyForDrill, "Pending", "not Ready now")
	if k.find(naming.DrillJob(d.Name), &batchv1.Job{}) {
		t.Error("its clients write already")
	}
	k.agents.change("10.1.0.2", func(s *protocol.Status) { s.Streaming, s.Ready = true, true })
	k.reconcile(db)
	k.expectDrill(k.drill(d), metav1.ConditionFalse, v1.ReasonRunning, "Running", "")
	other := k.ask("other")
	k.expectDrill(other, metav1.ConditionFalse, v1.ReasonNotReadyForDrill, "Pending", "FaultDrill later")
	elsewhere := k.ask("elsewhere", func(d *v1.FaultDrill) { d.Spec.SampleDB = "y" })
	k.expectDrill(elsewhere, metav1.ConditionFalse, v1.ReasonSampleDBNotFound, "Pending", "")
}

func TestADrillOfAStandbyTakesOneThatVotes(t *testing.T) {
	k, _, d := drilled(t, func(d *v1.FaultDrill) { d.Spec.Instance, d.Spec.Fault = v1.DrillStandby, v1.FaultPodKilled })
	k.clientsPod(d)
	d = k.drill(d)
	if d.Status.Instance != "x-1" || k.find("x-1", &corev1.Pod{}) || !k.find("x-0", &corev1.Pod{}) {
		t.Errorf("it has taken %q", d.Status.Instance)
	}
	if len(k.breaker.orders) > 0 {
		t.Errorf("agents were asked: %q", k.breaker.orders)
	}
}

// All instances are broken at once, and what lasts is undone at all of them.
func TestADrillOfAllInstances(t *testing.T) {
	k, _, d := drilled(t, func(d *v1.FaultDrill) {
		d.Spec.Instance = v1.DrillAll
		d.Spec.Duration.Duration, d.Spec.Observe.Duration = 5*time.Minute, 10*time.Minute
	})
	k.clientsPod(d)
	d = k.drill(d)
	k.expectDrill(d, metav1.ConditionFalse, v1.ReasonRunning, "Running", "x-0, x-1, x-2 were broken")
	k.expectOrders("hang-server at 10.1.0.1", "hang-server at 10.1.0.2", "hang-server at 10.1.0.3")
	if d.Status.Instance != "x-0, x-1, x-2" {
		t.Errorf("it has taken %q", d.Status.Instance)
	}
	gone := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: k.namespace, Name: "x-1"}}
	k.must(k.api.Delete(t.Context(), gone, client.GracePeriodSeconds(0))) // what hung there is gone, too
	d.Spec.Cancel = true
	k.must(k.api.Update(k.Context(), d))
	k.expectDrill(k.drill(d), metav1.ConditionFalse, v1.ReasonCancelled, "Cancelled", "")
	k.expectOrders("undo at 10.1.0.1", "undo at 10.1.0.3")
}

// One of them can't be broken: those that were are let go.
func TestADrillThatFailsAtOneInstance(t *testing.T) {
	k, _, d := drilled(t, func(d *v1.FaultDrill) { d.Spec.Instance = v1.DrillAll })
	k.clientsPod(d)
	k.breaker.fails, k.breaker.failsAt = errors.New("no route to host"), "10.1.0.2"
	d = k.drill(d)
	k.expectDrill(d, metav1.ConditionFalse, v1.ReasonFailed, "Failed", "x-1: no route to host")
	k.expectOrders("hang-server at 10.1.0.1", "hang-server at 10.1.0.2", "hang-server at 10.1.0.3",
		"undo at 10.1.0.1", "undo at 10.1.0.2", "undo at 10.1.0.3")
}

// The instances of one zone are broken, and no others. Without any there, nothing is.
func TestADrillOfAZone(t *testing.T) {
	in := func(zone string) func(*v1.FaultDrill) {
		return func(d *v1.FaultDrill) {
			d.Spec.Fault, d.Spec.Instance, d.Spec.Zone = v1.FaultPodKilled, v1.DrillZone, zone
		}
	}
	k, db, d := drilled(t, in("c"))
	k.expectDrill(d, metav1.ConditionFalse, v1.ReasonNotReadyForDrill, "Pending", "are in none that is known")
	k.place(db, "a", "b", "a")
	k.expectDrill(k.drill(d), metav1.ConditionFalse, v1.ReasonNotReadyForDrill, "Pending",
		"no instance is in zone c: they are in a, b")
	k.must(k.api.Delete(t.Context(), d))
	d = k.ask("zone", in("a"))
	k.clientsPod(d)
	d = k.drill(d)
	if d.Status.Instance != "x-0, x-2" || k.find("x-0", &corev1.Pod{}) || k.find("x-2", &corev1.Pod{}) ||
		!k.find("x-1", &corev1.Pod{}) {
		t.Errorf("it has taken %q", d.Status.Instance)
	}
}

// expectOrders expects that the agents were ordered this since it was asked last, in any order.
func (k *driller) expectOrders(want ...string) {
	k.Helper()
	got := k.breaker.orders
	k.breaker.orders = nil
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		k.Errorf("the agents were ordered %q, want %q", got, want)
	}
}

// All Pods of a pooler go at once, and nothing else does. The drill is over when they are there again.
func TestADrillOfPoolers(t *testing.T) {
	k, db, d := drilled(t, func(d *v1.FaultDrill) { d.Spec.Fault = v1.FaultPoolersKilled })
	k.expectDrill(d, metav1.ConditionFalse, v1.ReasonNotReadyForDrill, "Pending", "no Pod of spec.pooler takes clients")
	db = k.settlePooler(k.edit(db, func(db *v1.SampleDB) {
		pooler(db)
		db.Spec.Pooler.ReadOnly = &v1.ReadPoolSpec{Instances: 1}
	}))
	for name, component := range map[string]string{
		"a": naming.ComponentPooler, "b": naming.ComponentPooler, "reads": naming.ComponentReadPool,
	} {
		k.readyPod(name, naming.PoolSelector("x", component))
	}
	d = k.drill(d)
	k.clientsPod(d)
	d = k.drill(d)
	if d.Status.Instance != "x-pool" || k.find("a", &corev1.Pod{}) || k.find("b", &corev1.Pod{}) {
		t.Errorf("it has taken %q", d.Status.Instance)
	}
	if !k.find("reads", &corev1.Pod{}) || !k.find("x-0", &corev1.Pod{}) || len(k.breaker.orders) > 0 {
		t.Error("others are broken, too")
	}
	deployment := &appsv1.Deployment{}
	k.read("x-pool", deployment)
	deployment.Status.ReadyReplicas = 0
	k.must(k.api.Status().Update(t.Context(), deployment))
	k.reconcile(db)
	if d = k.drill(d); d.Status.WholeAt != nil {
		t.Error("it is whole while no pooler takes clients")
	}
	k.settlePooler(db)
	if d = k.drill(d); d.Status.WholeAt == nil {
		t.Error("it is not whole though the poolers take clients")
	}
}

// Only a standby loses its volume, with its Pod, and only where two others have all commits.
func TestADrillOfAVolume(t *testing.T) {
	loses := func(d *v1.FaultDrill) { d.Spec.Fault, d.Spec.Instance = v1.FaultVolumeLost, v1.DrillPrimary }
	k, _, d := drilled(t, loses)
	claim := func(instance string) bool {
		found := &corev1.PersistentVolumeClaim{}
		return k.find(naming.ClaimOf(instance), found) && found.DeletionTimestamp == nil
	}
	if !claim("x-1") {
		t.Fatal("x-1 has no volume to begin with")
	}
	k.clientsPod(d)
	d = k.drill(d)
	if d.Status.Instance != "x-1" || k.find("x-1", &corev1.Pod{}) || claim("x-1") {
		t.Errorf("it has taken %q", d.Status.Instance)
	}
	for _, other := range []string{"x-0", "x-2"} {
		if !k.find(other, &corev1.Pod{}) || !claim(other) {
			t.Errorf("%s is broken, too", other)
		}
	}
	if len(k.breaker.orders) > 0 {
		t.Errorf("agents were asked: %q", k.breaker.orders)
	}

	k.edit(k.started("y", instances(2), withoutArchive), func(db *v1.SampleDB) {
		db.Annotations = map[string]string{naming.AnnotationFaultDrills: naming.FaultDrillsAllowed}
	})
	two := k.ask("two", loses, func(d *v1.FaultDrill) { d.Spec.SampleDB = "y" })
	k.expectDrill(two, metav1.ConditionFalse, v1.ReasonNotReadyForDrill, "Pending", "takes 3 instances that vote")
}

// The agent is told for how long, and how large its volume is. What it fills makes no volume grow, and the conditions
// say whose doing it is.
func TestADrillOfAFullDisk(t *testing.T) {
	k, db, d := drilled(t, func(d *v1.FaultDrill) {
		d.Spec.Fault, d.Spec.Duration.Duration = v1.FaultDiskFull, 2*time.Minute
		d.Spec.Observe.Duration, d.Spec.AbortAfter.Duration = 3*time.Minute, 3*time.Minute
	})
	db = k.edit(db, growing("2Gi"))
	k.clientsPod(d)
	d = k.drill(d)
	k.expectDrill(d, metav1.ConditionFalse, v1.ReasonRunning, "Running", "x-0 was broken")
	if last := k.breaker.last; last.Fault != protocol.FaultFillVolume || last.For != 2*time.Minute ||
		last.Volume != 1<<30 {
		t.Errorf("the agent was ordered %+v", last)
	}
	k.agents.change("10.1.0.1", func(s *protocol.Status) {
		s.ReadOnly, s.Room = true, &protocol.Room{Size: 1 << 30, Used: 950 << 20, Drill: 800 << 20}
	})
	db = k.reconcile(db)
	k.expectSize(db, 3, "1Gi")
	for _, condition := range []string{v1.ConditionHasRoom, v1.ConditionAvailable} {
		if m := k.expect(db, condition, metav1.ConditionFalse, v1.ReasonWritesRefused); !strings.Contains(m,
			"a FaultDrill has filled volume data-x-0") {
			t.Errorf("%s says %q", condition, m)
		}
	}
	if d = k.drill(d); d.Status.WholeAt != nil {
		t.Error("it is whole while no writes are taken")
	}
	d.Spec.Cancel = true
	k.must(k.api.Update(k.Context(), d))
	k.expectDrill(k.drill(d), metav1.ConditionFalse, v1.ReasonCancelled, "Cancelled", "")
	if last := k.breaker.last; last.Fault != protocol.FaultUndo || last.For != 0 {
		t.Errorf("the last order is %+v", last)
	}
}

// The replay of a standby is paused, and the clients read from standbys, too.
func TestADrillOfReplay(t *testing.T) {
	k, _, d := drilled(t, func(d *v1.FaultDrill) {
		d.Spec.Fault, d.Spec.Instance = v1.FaultReplayPaused, v1.DrillStandby
	})
	pod := k.clientsPod(d)
	if !slices.Contains(pod.Spec.Containers[0].Command, "--standbys") {
		t.Errorf("nobody reads from standbys: %q", pod.Spec.Containers[0].Command)
	}
	d = k.drill(d)
	d = k.drill(d)
	k.expectOrders("pause-replay at 10.1.0.2")
	k.now = k.now.Add(30 * time.Second)
	result := k.result()
	result.Clients = append(result.Clients, protocol.DrillClient{
		Way: "Standbys", Reads: 500, StaleReads: 90, Staleness: 9876 * time.Millisecond,
	})
	k.end(pod, result)
	d = k.drill(d)
	k.expectDrill(d, metav1.ConditionTrue, v1.ReasonCompleted, "Completed", "standbys answered up to 9.88s late")
	c := d.Status.Clients
	if len(c) != 3 || c[0].Staleness != nil || c[2].Staleness.Duration != 9876*time.Millisecond {
		t.Errorf("the clients are %+v", c)
	}
}

// readyPod makes a Pod that is ready.
func (k *driller) readyPod(name string, labels map[string]string) {
	k.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: k.namespace, Name: name, Labels: labels},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
	}
	k.must(k.api.Create(k.Context(), pod))
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	k.must(k.api.Status().Update(k.Context(), pod))
}

// An operator that stops while it breaks something breaks it no second time, and does not say that it knows.
func TestNoFaultIsDoneTwice(t *testing.T) {
	k, _, d := drilled(t)
	k.clientsPod(d)
	ctx, stop := context.WithCancel(k.Context())
	defer stop()
	k.breaker.meanwhile = func() { // the status says so before it is done
		ordered := &v1.FaultDrill{}
		k.read(d.Name, ordered)
		if ordered.Status.OrderedAt == nil || ordered.Status.Instance != "x-0" {
			t.Errorf("nobody can know that it is being done: %+v", ordered.Status)
		}
		ordered.Status.StruckAt = nil
		stop()
	}
	request := ctrl.Request{NamespacedName: client.ObjectKeyFromObject(d)}
	if _, err := k.drillReconciler().Reconcile(ctx, request); err == nil {
		t.Error("it could write what it had done")
	}
	k.breaker.meanwhile = nil
	d = k.drill(d)
	k.expectDrill(d, metav1.ConditionFalse, v1.ReasonFailed, "Failed", "not known whether")
	if len(k.breaker.orders) != 1 {
		t.Errorf("the agents were ordered %q", k.breaker.orders)
	}
	if k.find(naming.DrillJob(d.Name), &batchv1.Job{}) {
		t.Error("its clients write on")
	}
}

// lagging is a cache that has what a FaultDrill was.
type lagging struct {
	client.Client
	was *v1.FaultDrill
}

func (b lagging) Get(ctx context.Context, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
	if d, ok := object.(*v1.FaultDrill); ok {
		b.was.DeepCopyInto(d)
		return nil
	}
	return b.Client.Get(ctx, key, object, opts...)
}

// What was ordered is seen, though the cache does not have it yet.
func TestADrillGoesOnWithACacheThatIsBehind(t *testing.T) {
	k, _, d := drilled(t)
	k.reconciler.Client = lagging{k.reconciler.Client, d.DeepCopy()}
	pod := k.clientsPod(d)
	for range 3 {
		d = k.drill(d)
		k.expectDrill(d, metav1.ConditionFalse, v1.ReasonRunning, "Running", "x-0 was broken")
	}
	if len(k.breaker.orders) != 1 {
		t.Errorf("the agents were ordered %q", k.breaker.orders)
	}
	k.now = k.now.Add(30 * time.Second)
	k.end(pod, k.result())
	k.expectDrill(k.drill(d), metav1.ConditionTrue, v1.ReasonCompleted, "Completed", "none lost")
}

func TestADrillThatIsCancelledIsUndone(t *testing.T) {
	k, _, d := drilled(t)
	k.clientsPod(d)
	d = k.drill(d)
	d.Spec.Cancel = true
	k.must(k.api.Update(k.Context(), d))
	k.breaker.fails = errors.New("no route to host")
	if _, err := k.tryDrill(d); err == nil {
		t.Error("it is over, and the server hangs")
	}
	k.breaker.fails = nil
	d = k.drill(d)
	k.expectDrill(d, metav1.ConditionFalse, v1.ReasonCancelled, "Cancelled", "")
	if got := k.breaker.orders[len(k.breaker.orders)-1]; got != "undo at 10.1.0.1" {
		t.Errorf("the last order is %q", got)
	}
}

func TestADrillThatCannotBeDoneHasFailed(t *testing.T) {
	k, _, d := drilled(t)
	k.clientsPod(d)
	k.breaker.fails = errors.New("the agent at 10.1.0.1 answers 404 Not Found")
	d = k.drill(d)
	k.expectDrill(d, metav1.ConditionFalse, v1.ReasonFailed, "Failed", "could not be done: x-0: the agent")
}

func TestADrillIsRefusedWithASentence(t *testing.T) {
	k, _, d := drilled(t)
	with := func(s *v1.FaultDrillSpec, fault v1.FaultDrillFault, instance v1.FaultDrillInstance) {
		s.Meanwhile = append(slices.Clone(s.Meanwhile), v1.FaultDrillPart{Fault: fault, Instance: instance})
	}
	for name, c := range map[string]struct {
		change func(*v1.FaultDrillSpec)
		words  string
	}{
		"another fault": {func(s *v1.FaultDrillSpec) { s.Fault = v1.FaultPodDeleted }, "create another FaultDrill"},
		"a further fault": {func(s *v1.FaultDrillSpec) { with(s, v1.FaultAPIAway, v1.DrillAll) },
			"create another FaultDrill"},
		"an objective": {func(s *v1.FaultDrillSpec) { s.Objectives.MaxOutage.Duration = time.Minute },
			"create another FaultDrill"},
	} {
		changed := d.DeepCopy()
		c.change(&changed.Spec)
		err := k.api.Update(k.Context(), changed)
		if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), c.words) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, c := range map[string]struct {
		change func(*v1.FaultDrillSpec)
		words  string
	}{
		"no fault":         {func(s *v1.FaultDrillSpec) { s.Fault = "" }, "fault"},
		"an unknown fault": {func(s *v1.FaultDrillSpec) { s.Fault = "Fire" }, "Unsupported value"},
		"too short": {func(s *v1.FaultDrillSpec) { s.Observe.Duration = 20 * time.Second },
			"observe must be at least 15s longer than duration"},
		"the replay of a primary": {func(s *v1.FaultDrillSpec) { s.Fault = v1.FaultReplayPaused },
			"give instance: Standby"},
		"all volumes": {func(s *v1.FaultDrillSpec) { s.Fault, s.Instance = v1.FaultVolumeLost, v1.DrillAll },
			"choose one of these, or instance: Primary or Standby"},
		"all zones of a further fault": {func(s *v1.FaultDrillSpec) { with(s, v1.FaultAPIAway, v1.DrillZone) },
			"zone goes with instance: Zone"},
		"a further fault of nobody": {func(s *v1.FaultDrillSpec) { with(s, v1.FaultAPIAway, "") },
			"Unsupported value"},
		"the same twice": {func(s *v1.FaultDrillSpec) { with(s, v1.FaultServerHung, v1.DrillPrimary) },
			"there already"},
		"the archive of all, twice": {func(s *v1.FaultDrillSpec) {
			s.Fault, s.Instance = v1.FaultArchiveAway, v1.DrillAll
			with(s, v1.FaultArchiveAway, v1.DrillAll)
		}, "there already"},
		"an archive that is away for too long": {func(s *v1.FaultDrillSpec) {
			s.Fault, s.Observe.Duration = v1.FaultArchiveAway, 20*time.Second
		}, "observe must be at least 15s longer than duration"},
		"the leaders of all instances": {func(s *v1.FaultDrillSpec) {
			s.Fault, s.Instance = v1.FaultLeaderKilled, v1.DrillAll
		}, "choose one of these, or instance: Primary or Standby"},
		"all leaders twice": {func(s *v1.FaultDrillSpec) {
			with(s, v1.FaultLeaderKilled, v1.DrillPrimary)
			with(s, v1.FaultLeaderKilled, v1.DrillStandby)
		}, "there already"},
		"all poolers twice": {func(s *v1.FaultDrillSpec) {
			with(s, v1.FaultPoolersKilled, v1.DrillPrimary)
			with(s, v1.FaultPoolersKilled, v1.DrillStandby)
		}, "there already"},
		"an instance ends twice": {func(s *v1.FaultDrillSpec) { with(s, v1.FaultPodKilled, v1.DrillPrimary) },
			"an instance is ended once"},
		"one ends, and all": {func(s *v1.FaultDrillSpec) { with(s, v1.FaultPodKilled, v1.DrillAll) },
			"an instance is ended once"},
		"a volume is lost, and who has all commits ends": {func(s *v1.FaultDrillSpec) {
			with(s, v1.FaultVolumeLost, v1.DrillStandby)
		}, "VolumeLost goes with APIAway, ArchiveAway, PoolersKilled and LeaderKilled alone"},
		"a server hangs whose replay is to pause": {func(s *v1.FaultDrillSpec) {
			s.Instance = v1.DrillStandby
			with(s, v1.FaultReplayPaused, v1.DrillStandby)
		}, "ReplayPaused is over when the server"},
		"the replay of a primary, as a further fault": {func(s *v1.FaultDrillSpec) {
			with(s, v1.FaultReplayPaused, v1.DrillPrimary)
		}, "give instance: Standby"},
		"all disks are full, as a further fault": {func(s *v1.FaultDrillSpec) {
			with(s, v1.FaultDiskFull, v1.DrillAll)
		}, "choose one of these, or instance: Primary or Standby"},
		"the Service is given up before the API is back": {func(s *v1.FaultDrillSpec) {
			s.AbortAfter.Duration = 15 * time.Second
			with(s, v1.FaultAPIAway, v1.DrillAll)
		}, "while the Kubernetes API is away, the Service does not lead"},
		"a further fault that lasts for too long": {func(s *v1.FaultDrillSpec) {
			s.Fault, s.Observe.Duration = v1.FaultServerKilled, 20*time.Second
			with(s, v1.FaultAPIAway, v1.DrillAll)
		}, "observe must be at least 15s longer than duration"},
		"a zone without its name": {func(s *v1.FaultDrillSpec) { s.Instance = v1.DrillZone },
			"zone goes with instance: Zone"},
		"a zone of the primary": {func(s *v1.FaultDrillSpec) { s.Zone = "a" }, "zone goes with instance: Zone"},
		"a full disk that is given up": {func(s *v1.FaultDrillSpec) {
			s.Fault, s.Duration.Duration, s.Observe.Duration = v1.FaultDiskFull, time.Minute, 2*time.Minute
		}, "abortAfter must be at least 10s longer than duration"},
		"for ever": {func(s *v1.FaultDrillSpec) { s.Duration.Duration = time.Hour }, "duration must be from 1s to 5m"},
	} {
		other := &v1.FaultDrill{ObjectMeta: metav1.ObjectMeta{Namespace: k.namespace, Name: "e"}, Spec: d.Spec}
		c.change(&other.Spec)
		err := k.api.Create(k.Context(), other)
		if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), c.words) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// scheduled are the faults of the drills that the schedule has asked for, the oldest first.
func (w *world) scheduled() (faults []v1.FaultDrillFault) {
	w.Helper()
	var all v1.FaultDrillList
	w.must(w.api.List(w.Context(), &all, client.InNamespace(w.namespace)))
	slices.SortFunc(all.Items, func(a, b v1.FaultDrill) int { return strings.Compare(a.Name, b.Name) })
	for _, d := range all.Items {
		faults = append(faults, d.Spec.Fault)
	}
	return faults
}

// A SampleDB is broken by its schedule: each time in the next way, at no other time, and only where that is allowed.
// What came of it is in its condition.
func TestDrillsByASchedule(t *testing.T) {
	w := newWorld(t)
	db := w.started("x", instances(3), withoutArchive)
	db = w.edit(db, func(db *v1.SampleDB) {
		db.Spec.Drills = &v1.DrillsSpec{Schedule: "0 * * * *", Keep: 1, Objectives: v1.FaultDrillObjectives{
			MaxOutage: metav1.Duration{Duration: 5 * time.Second}, WholeWithin: metav1.Duration{Duration: time.Minute},
		}}
	})
	if got := db.Spec.Drills; len(got.Faults) != 2 || got.Instance != v1.DrillPrimary {
		t.Errorf("the defaults are %+v", got)
	}
	onTheHour := func() *v1.SampleDB {
		w.now = w.now.Truncate(time.Hour).Add(time.Hour)
		return w.reconcile(db)
	}
	db = onTheHour()
	w.expect(db, v1.ConditionDrillsPassed, metav1.ConditionFalse, v1.ReasonDrillNotAllowed)
	w.now = w.now.Add(20 * time.Minute)
	db = w.edit(db, func(db *v1.SampleDB) {
		db.Annotations = map[string]string{naming.AnnotationFaultDrills: naming.FaultDrillsAllowed}
	})
	w.expect(db, v1.ConditionDrillsPassed, metav1.ConditionUnknown, v1.ReasonNoDrillYet)
	if got := w.scheduled(); len(got) > 0 {
		t.Fatalf("%v, which no schedule asks for", got)
	}
	db = onTheHour()
	w.expectEvent("Drill", "the schedule asks for it")
	db = w.reconcile(db)
	if got := w.scheduled(); !slices.Equal(got, []v1.FaultDrillFault{v1.FaultServerKilled}) {
		t.Fatalf("on the hour there are %v", got)
	}
	first := w.endDrill(db, metav1.ConditionFalse)
	db = w.reconcile(db)
	if m := w.expect(db, v1.ConditionDrillsPassed, metav1.ConditionFalse,
		v1.ReasonLastDrillNotPassed); !strings.Contains(m, first+" (ServerKilled of x-0)") {
		t.Errorf("it says %q", m)
	}
	db = onTheHour()
	if got := w.scheduled(); !slices.Equal(got, []v1.FaultDrillFault{v1.FaultServerKilled, v1.FaultPodDeleted}) {
		t.Fatalf("an hour later there are %v", got)
	}
	w.endDrill(db, metav1.ConditionTrue)
	db = w.reconcile(db)
	db = w.reconcile(db)
	w.expect(db, v1.ConditionDrillsPassed, metav1.ConditionTrue, v1.ReasonLastDrillPassed)
	if got := w.scheduled(); !slices.Equal(got, []v1.FaultDrillFault{v1.FaultPodDeleted}) {
		t.Errorf("kept are %v", got)
	}
}

// endDrill ends the drill of a SampleDB that has not ended, and returns its name.
func (w *world) endDrill(db *v1.SampleDB, passed metav1.ConditionStatus) (name string) {
	w.Helper()
	var all v1.FaultDrillList
	w.must(w.api.List(w.Context(), &all, client.InNamespace(w.namespace)))
	for _, d := range all.Items {
		if d.Status.CompletedAt != nil {
			continue
		}
		if !metav1.IsControlledBy(&d, db) {
			w.Errorf("%s belongs to %v", d.Name, d.OwnerReferences)
		}
		at := metav1.NewTime(w.now)
		d.Status.CompletedAt, d.Status.Instance = &at, "x-0"
		d.Status.Conditions = []metav1.Condition{{
			Type: v1.ConditionPassed, Status: passed, Reason: v1.ReasonObjectivesMet, LastTransitionTime: at,
		}}
		w.must(w.api.Status().Update(w.Context(), &d))
		name = d.Name
	}
	return name
}
