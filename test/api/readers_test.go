package api

import (
	"context"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/cli/status"
	"toban.dev/internal/naming"
	"toban.dev/internal/protocol"
)

func readers(n int32) func(*v1.SampleDB) {
	return func(db *v1.SampleDB) { db.Spec.Readers = &v1.ReadersSpec{Count: n} }
}

// autoscaled lets the number of readers follow the load.
func autoscaled(least, most int32) func(*v1.SampleDB) {
	return func(db *v1.SampleDB) {
		db.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")}
		db.Spec.Readers = &v1.ReadersSpec{Autoscale: &v1.ReadersAutoscale{Min: least, Max: most, CPU: 70}}
	}
}

// playReaders does what Kubernetes would with the StatefulSet of the readers: Pods with agents come, their claims with
// them, and Pods go. It returns how many there are.
func (w *world) playReaders(db *v1.SampleDB) int {
	w.Helper()
	set := &appsv1.StatefulSet{}
	replicas := 0
	if w.find(naming.Readers(db.Name), set) {
		replicas = int(*set.Spec.Replicas)
	}
	for i := range replicas {
		if !w.find(naming.Reader(db.Name, i), &corev1.Pod{}) {
			w.runReader(db, set, i)
		}
	}
	for i := replicas; w.find(naming.Reader(db.Name, i), &corev1.Pod{}); i++ {
		pod := &corev1.Pod{}
		w.read(naming.Reader(db.Name, i), pod)
		w.must(w.api.Delete(w.Context(), pod))
	}
	if set.Name != "" {
		set.Status.ObservedGeneration, set.Status.Replicas = set.Generation, int32(replicas)
		w.must(w.api.Status().Update(w.Context(), set))
	}
	return replicas
}

func (w *world) runReader(db *v1.SampleDB, set *appsv1.StatefulSet, ordinal int) {
	w.Helper()
	template := set.Spec.VolumeClaimTemplates[0].DeepCopy()
	template.Namespace, template.Name = w.namespace, template.Name+"-"+naming.Reader(db.Name, ordinal)
	if !w.find(template.Name, &corev1.PersistentVolumeClaim{}) {
		w.must(w.api.Create(w.Context(), template))
		w.bindClaim(template.Name)
	}
	w.makePod(set, ordinal, address(set, ordinal))
	w.agents.change(address(set, ordinal), func(s *protocol.Status) {
		*s = protocol.Status{
			Name: naming.Reader(db.Name, ordinal), Protocol: protocol.Version, Role: protocol.RoleStandby, Ready: true,
			Streaming: true, Reason: "Follower", Data: protocol.DataPresent, SystemIdentifier: identifier,
			ServerVersion: "17.6", Term: 1,
		}
	})
}

// settle plays the cluster until nothing moves any more.
func (w *world) settleReaders(db *v1.SampleDB) *v1.SampleDB {
	w.Helper()
	for range 6 {
		w.playCluster(db)
		w.playReaders(db)
		db = w.reconcile(db)
	}
	return db
}

func TestReadersComeAndGo(t *testing.T) {
	w := newWorld(t)
	db := w.started("x", instances(3))
	revision := w.lastConfig().Revision
	w.writes.take()

	db = w.settleReaders(w.edit(db, readers(5)))
	w.fiveReadersServe(db, revision)
	w.readersObjects()
	w.writes.take()
	db = w.reconcile(db)
	if writes := w.writes.take(); len(writes) > 0 {
		t.Errorf("at rest it writes: %v", writes)
	}

	db = w.settleReaders(w.edit(db, readers(1)))
	if r := db.Status.Readers; r.Desired != 1 || r.Ready != 1 || len(r.Instances) != 1 || w.lastConfig().Readers != 1 {
		t.Errorf("the status says %s", jsonOf(t, db.Status.Readers))
	}
	w.noReaders(w.settleReaders(w.edit(db, readers(0))))
}

// fiveReadersServe holds what is said of five readers of three instances, which have nothing to load for them.
func (w *world) fiveReadersServe(db *v1.SampleDB, revision string) {
	w.Helper()
	w.expect(db, v1.ConditionReadersReady, metav1.ConditionTrue, v1.ReasonReadersServe)
	w.expect(db, v1.ConditionReady, metav1.ConditionTrue, v1.ReasonReady)
	if r := db.Status.Readers; r.Desired != 5 || r.Ready != 5 || len(r.Instances) != 5 || db.Status.Ready != "3/3" ||
		db.Status.Instances != 3 || len(db.Status.InstanceStatuses) != 3 {
		w.Errorf("the status says %s", jsonOf(w.T, db.Status))
	}
	config := w.lastConfig()
	if config.Readers != 5 || len(config.Members) != 3 || config.Revision != revision {
		w.Errorf("the agents are told of %d readers, %d members, and have to load %v", config.Readers,
			len(config.Members), config.Revision != revision)
	}
	out, err := w.command(w.Context(), status.Status(), "x")
	if err != nil || !strings.Contains(out, "readers: 5 of 5 serve reads") || !strings.Contains(out, "x-readers-4") {
		w.Errorf("toban status says, %v:\n%s", err, out)
	}
}

// noReaders holds that all of the readers is gone, and the volumes of the instances are not.
func (w *world) noReaders(db *v1.SampleDB) {
	w.Helper()
	if db.Status.Readers != nil || w.find("x-readers", &appsv1.StatefulSet{}) ||
		w.find("x-readers", &policyv1.PodDisruptionBudget{}) || w.lastConfig().Readers != 0 {
		w.Errorf("readers are left: %s", jsonOf(w.T, db.Status.Readers))
	}
	w.expect(db, v1.ConditionReady, metav1.ConditionTrue, v1.ReasonReady)
	for i := range 3 {
		if w.deleting(naming.Claim("x", i)) {
			w.Errorf("the volume of instance %d goes with the readers", i)
		}
	}
}

// readersObjects holds what there is of three readers.
func (w *world) readersObjects() {
	w.Helper()
	set, service, role := &appsv1.StatefulSet{}, &corev1.Service{}, &rbacv1.Role{}
	w.read("x-readers", set)
	keep := set.Spec.PersistentVolumeClaimRetentionPolicy
	if keep.WhenScaled != appsv1.DeletePersistentVolumeClaimRetentionPolicyType || keep.WhenDeleted != keep.WhenScaled {
		w.Errorf("the volumes of readers stay: %+v", keep)
	}
	w.read("x-ro", service)
	if s := service.Spec.Selector; s[naming.LabelComponent] != "" || s[naming.LabelRole] != "standby" {
		w.Errorf("x-ro leads to %v", s)
	}
	w.read("x", service)
	if s := service.Spec.Selector; s[naming.LabelComponent] != naming.ComponentInstance {
		w.Errorf("x leads to %v", s)
	}
	w.read("x", role)
	if !slices.Contains(role.Rules[0].ResourceNames, "x-readers-2") {
		w.Errorf("a reader may not label its Pod: %v", role.Rules[0].ResourceNames)
	}
	budget := &policyv1.PodDisruptionBudget{}
	w.read("x", budget)
	if budget.Spec.Selector.MatchLabels[naming.LabelComponent] != naming.ComponentInstance {
		w.Errorf("the budget of the instances counts %v", budget.Spec.Selector)
	}
}

// lastConfig is the one that an agent was given last.
func (w *world) lastConfig() protocol.Config {
	w.agents.mu.Lock()
	defer w.agents.mu.Unlock()
	return w.agents.configs[len(w.agents.configs)-1]
}

// What an autoscaler asks for stays, within the limits of the spec, and a stop and a start begin with the least.
func TestAnAutoscalerOfReadersIsLeftAlone(t *testing.T) {
	w := newWorld(t)
	db := w.settleReaders(w.started("x", instances(2), autoscaled(1, 5)))
	scaler := &autoscalingv2.HorizontalPodAutoscaler{}
	w.read("x-readers", scaler)
	if ref := scaler.Spec.ScaleTargetRef; ref.Kind != "StatefulSet" || ref.Name != "x-readers" ||
		*scaler.Spec.MinReplicas != 1 || scaler.Spec.MaxReplicas != 5 {
		t.Errorf("the autoscaler is %s", jsonOf(t, scaler.Spec))
	}
	for _, n := range []int32{4, 2} {
		set := &appsv1.StatefulSet{}
		w.read("x-readers", set)
		set.Spec.Replicas = &n
		w.must(w.api.Update(t.Context(), set))
		db = w.settleReaders(db)
		if r := db.Status.Readers; r.Desired != n || r.Ready != n || w.lastConfig().Readers != int(n) {
			t.Errorf("after it has asked for %d there are %s", n, jsonOf(t, r))
		}
		w.expect(db, v1.ConditionReady, metav1.ConditionTrue, v1.ReasonReady)
	}
	db = w.settleReaders(w.edit(db, readers(3)))
	if w.find("x-readers", &autoscalingv2.HorizontalPodAutoscaler{}) || db.Status.Readers.Ready != 3 {
		t.Errorf("with a fixed number there are %s, or still an autoscaler", jsonOf(t, db.Status.Readers))
	}
}

// meanwhile is the API server of a reconcile while which somebody scales a StatefulSet, after it is read first.
type meanwhile struct {
	client.Client
	name  string
	scale func()
}

func (m *meanwhile) Get(ctx context.Context, key client.ObjectKey, into client.Object, o ...client.GetOption) error {
	err := m.Client.Get(ctx, key, into, o...)
	if _, ok := into.(*appsv1.StatefulSet); ok && key.Name == m.name && m.scale != nil {
		m.scale()
		m.scale = nil
	}
	return err
}

// What the autoscaler asks for while a reconcile is under way is not undone by it.
func TestAnAutoscalersReadersAreNotUndoneByAReconcile(t *testing.T) {
	w := newWorld(t)
	db := w.settleReaders(w.started("x", instances(2), autoscaled(1, 5)))
	cached := w.reconciler.Client
	for _, n := range []int32{4, 2} { // the first change is also the first by server-side apply
		w.reconciler.Client = &meanwhile{Client: cached, name: "x-readers", scale: func() {
			set := &appsv1.StatefulSet{}
			w.read("x-readers", set)
			scale := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: n}}
			w.must(w.api.SubResource("scale").Update(t.Context(), set, client.WithSubResourceBody(scale)))
		}}
		db = w.reconcile(db)
		w.reconciler.Client = cached
		set := &appsv1.StatefulSet{}
		if w.read("x-readers", set); *set.Spec.Replicas != n {
			t.Errorf("the %d that were asked for have become %d", n, *set.Spec.Replicas)
		}
		db = w.settleReaders(db)
		w.expect(db, v1.ConditionReady, metav1.ConditionTrue, v1.ReasonReady)
		w.writes.take()
		db = w.reconcile(db)
		if writes := w.writes.take(); len(writes) > 0 {
			t.Errorf("at rest it writes: %v", writes)
		}
	}
}

// The readers are not in the way of a larger volume, which they get too, nor of a new image: each is replaced.
func TestReadersFollowTheSpec(t *testing.T) {
	w := newWorld(t)
	w.storageClass("grows", true, true)
	db := w.settleReaders(w.started("x", readers(2)))
	before := map[int]string{}
	for i := range 2 {
		pod := &corev1.Pod{}
		w.read(naming.Reader("x", i), pod)
		before[i] = string(pod.UID)
	}
	db = w.edit(db, func(db *v1.SampleDB) {
		db.Spec.Storage.Size = "2Gi"
		db.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")}
	})
	for range 4 {
		db = w.settleReaders(db)
	}
	for i := range 2 {
		claim, pod := &corev1.PersistentVolumeClaim{}, &corev1.Pod{}
		w.read(naming.ReaderClaim("x", i), claim)
		if size := claim.Spec.Resources.Requests[corev1.ResourceStorage]; size.String() != "2Gi" {
			t.Errorf("the volume of reader %d has %s", i, size.String())
		}
		w.read(naming.Reader("x", i), pod)
		if string(pod.UID) == before[i] {
			t.Errorf("reader %d was not replaced", i)
		}
	}
}

// Whatever else is called NAME-readers keeps its name and its objects.
func TestReadersWhoseNameIsTaken(t *testing.T) {
	w := newWorld(t)
	other := w.started("x-readers")
	db := w.started("x")
	db = w.edit(db, readers(2))
	message := w.expect(db, v1.ConditionReadersReady, metav1.ConditionFalse, v1.ReasonNameTaken)
	if !strings.Contains(message, "StatefulSet x-readers") {
		t.Errorf("it says %q", message)
	}
	w.expect(db, v1.ConditionReady, metav1.ConditionTrue, v1.ReasonReady)
	role := &rbacv1.Role{}
	w.read("x", role)
	if slices.Contains(role.Rules[0].ResourceNames, "x-readers-0") {
		t.Error("the agents of x may label the Pod of x-readers")
	}
	other = w.reconcile(other)
	w.expect(other, v1.ConditionReady, metav1.ConditionTrue, v1.ReasonReady)
	if w.deleting(naming.Claim("x-readers", 0)) {
		t.Error("its volume goes")
	}
}

func TestReadersGoBeforeTheSampleDB(t *testing.T) {
	w := newWorld(t)
	db := w.settleReaders(w.started("x", withoutBackup, readers(2)))
	w.must(w.api.Delete(t.Context(), db))
	w.reconcile(db)
	if w.find("x-readers", &appsv1.StatefulSet{}) {
		t.Error("the readers are still there")
	}
}

func TestBadReadersAreRefused(t *testing.T) {
	w := newWorld(t)
	for name, c := range map[string]struct {
		change func(*v1.SampleDB)
		want   string
	}{
		"too many":       {readers(51), "readers.count must be from 0 to 50"},
		"less than none": {readers(-1), "readers.count must be from 0 to 50"},
		"more than most": {autoscaled(4, 2), "readers.autoscale.min can't be more than readers.autoscale.max"},
		"far too many":   {autoscaled(1, 51), "readers.autoscale.max must be from 1 to 50"},
		"a number as well": {func(db *v1.SampleDB) { autoscaled(1, 2)(db); db.Spec.Readers.Count = 2 },
			"exclude each other"},
		"no request": {func(db *v1.SampleDB) { autoscaled(1, 2)(db); db.Spec.Resources.Requests = nil },
			"compares the use of the CPU with resources.requests.cpu"},
	} {
		t.Run(name, func(t *testing.T) {
			refused(t, w.api.Create(t.Context(), w.sampleDB("x", c.change)), c.want)
		})
	}
}
