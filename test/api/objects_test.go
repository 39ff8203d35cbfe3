package api

import (
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
)

func TestTheFirstReconcileMakesEverything(t *testing.T) {
	w := newWorld(t)
	db := w.create("x", instances(3), deletes)
	for name, object := range map[string]client.Object{
		"x":           &appsv1.StatefulSet{},
		"x-ro":        &corev1.Service{},
		"x-instances": &corev1.Service{},
		"x-config":    &corev1.ConfigMap{},
		"data-x-0":    &corev1.PersistentVolumeClaim{},
		"data-x-2":    &corev1.PersistentVolumeClaim{},
	} {
		w.read(name, object)
		if !metav1.IsControlledBy(object, db) {
			t.Errorf("%T %s does not go with the SampleDB", object, name)
		}
	}
	for name, of := range map[string]string{
		"x-app": naming.AppRevision("x", firstApp(3)), "x-ca": naming.AuthorityRevision("x", "0"),
	} {
		revision, secret := &appsv1.ControllerRevision{}, &corev1.Secret{}
		w.read(of, revision)
		w.read(name, secret)
		if !metav1.IsControlledBy(revision, db) || !metav1.IsControlledBy(secret, revision) {
			t.Errorf("the Secret %s does not go with its revision, or that not with the SampleDB", name)
		}
	}
	for _, object := range []client.Object{
		&corev1.Service{}, &corev1.ServiceAccount{}, &rbacv1.Role{}, &rbacv1.RoleBinding{},
		&policyv1.PodDisruptionBudget{}, &networkingv1.NetworkPolicy{}, &coordinationv1.Lease{},
	} {
		w.read("x", object)
	}
	if len(w.jobs(db)) != 1 {
		t.Error("there is no init Job: it must start along with the instances")
	}
	w.expect(db, v1.ConditionReady, metav1.ConditionFalse, v1.ReasonCreating)
	w.expect(db, v1.ConditionInitialized, metav1.ConditionFalse, v1.ReasonInitRunning)
}

func TestASampleDBBecomesReadyAndThenNothingIsWritten(t *testing.T) {
	w := newWorld(t)
	db := w.started("x", instances(3),
		func(db *v1.SampleDB) { db.Spec.PostgreSQL.HBA = []string{"host all all all scram-sha-256"} })
	if s := db.Status; s.Ready != "3/3" || s.Primary != "x-0" || s.Version != "17.6" || s.Phase != "Ready" ||
		s.SystemIdentifier != identifier || s.InitializedAt == nil || s.Instances != 3 {
		t.Errorf("status is %+v", s)
	}
	w.writes.take()
	for range 3 {
		db = w.reconcile(db)
	}
	if writes := w.writes.take(); len(writes) > 0 {
		t.Errorf("at rest it writes: %v", writes)
	}
	if events := w.drainEvents(); events != "" {
		t.Errorf("at rest it tells: %s", events)
	}
}

// An operator that starts again has forgotten everything it held in memory.
func TestARestartedOperatorWritesNothing(t *testing.T) {
	w := newWorld(t)
	db := w.started("x")
	again := newWorld(t)
	again.namespace, again.agents = w.namespace, w.agents
	again.reconciler.Agents = w.agents
	again.writes.take()
	again.reconcile(db)
	if writes := again.writes.take(); len(writes) > 0 {
		t.Errorf("a new operator writes: %v", writes)
	}
}

func TestAgentsAreToldAddressesAndTheIdentifierOnceItIsKnown(t *testing.T) {
	w := newWorld(t)
	w.started("x", instances(2))
	last := w.agents.configs[len(w.agents.configs)-1]
	if last.SystemIdentifier != identifier {
		t.Errorf("the identifier is %q", last.SystemIdentifier)
	}
	for _, m := range last.Members {
		if m.Address == "" {
			t.Errorf("%s has no address", m.Name)
		}
	}
	if first := w.agents.configs[0]; first.SystemIdentifier != "" || first.Authority == "" || first.Operator == "" {
		t.Errorf("the first config was %+v", first)
	}
}

// What somebody changes by hand is put right, and what they add to what is theirs is left.
func TestDriftIsRepaired(t *testing.T) {
	w := newWorld(t)
	db := w.started("x", instances(3))
	service, set, role := &corev1.Service{}, &appsv1.StatefulSet{}, &rbacv1.Role{}
	w.read("x", service)
	service.Spec.Selector = map[string]string{"app": "other"}
	service.Annotations["theirs"] = "kept"
	w.must(w.api.Update(t.Context(), service))
	w.read("x", set)
	set.Spec.Replicas = ptr.To[int32](1)
	w.must(w.api.Update(t.Context(), set))
	w.read("x", role)
	role.Rules = append(role.Rules,
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"}})
	w.must(w.api.Update(t.Context(), role))
	w.must(w.api.Delete(t.Context(),
		&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "x-ro"}}))

	w.reconcile(db)

	w.read("x", service)
	if service.Spec.Selector[naming.LabelRole] != "primary" || service.Spec.Selector["app"] != "" {
		t.Errorf("the Service selects %v", service.Spec.Selector)
	}
	if service.Annotations["theirs"] != "kept" {
		t.Error("an annotation of somebody else's is gone")
	}
	w.read("x", set)
	if *set.Spec.Replicas != 3 {
		t.Errorf("the StatefulSet has %d replicas", *set.Spec.Replicas)
	}
	w.read("x", role)
	if len(role.Rules) != 2 {
		t.Errorf("the Role still has %v", role.Rules)
	}
	w.read("x-ro", service)
}

func TestWhatIsTakenOutOfTheSpecIsTakenOffTheObject(t *testing.T) {
	w := newWorld(t)
	db := w.started("x", func(db *v1.SampleDB) {
		db.Spec.Service = v1.ServiceSpec{
			Type: corev1.ServiceTypeNodePort, Annotations: map[string]string{"a": "1", "b": "2"},
		}
	})
	before, after := &corev1.Service{}, &corev1.Service{}
	w.read("x", before)
	w.edit(db, func(db *v1.SampleDB) { db.Spec.Service.Annotations = map[string]string{"b": "2"} })
	w.read("x", after)
	if _, there := after.Annotations["a"]; there || after.Annotations["b"] != "2" {
		t.Errorf("the annotations are %v", after.Annotations)
	}
	if after.Spec.ClusterIP != before.Spec.ClusterIP || after.Spec.Ports[0].NodePort != before.Spec.Ports[0].NodePort {
		t.Errorf("the Service moved from %s:%d to %s:%d",
			before.Spec.ClusterIP, before.Spec.Ports[0].NodePort, after.Spec.ClusterIP, after.Spec.Ports[0].NodePort)
	}
}

func TestNothingOfSomebodyElsesIsTakenOver(t *testing.T) {
	for name, foreign := range map[string]client.Object{
		"ConfigMap x-config": &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: "x-config"}, Data: map[string]string{"theirs": "1"},
		},
		"ServiceAccount x": &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "x"}},
		"Lease x":          &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "x"}},
		"Service x-ro": &corev1.Service{
			// Looks like ours, and has no owner.
			ObjectMeta: metav1.ObjectMeta{Name: "x-ro", Labels: naming.Common("x")},
			Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 1}}},
		},
		"PersistentVolumeClaim data-x-0": &corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Name: "data-x-0"},
			Spec: corev1.PersistentVolumeClaimSpec{
				AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
				Resources: corev1.VolumeResourceRequirements{
					Requests: corev1.ResourceList{corev1.ResourceStorage: quantity("1Gi")},
				},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			foreign.SetNamespace(w.namespace)
			w.must(w.api.Create(t.Context(), foreign))
			version := foreign.GetResourceVersion()
			db := w.create("x")
			message := w.expect(db, v1.ConditionReady, metav1.ConditionFalse, v1.ReasonNameTaken)
			if !strings.Contains(message, name) {
				t.Errorf("the condition does not name the object: %s", message)
			}
			w.read(foreign.GetName(), foreign)
			if foreign.GetResourceVersion() != version {
				t.Error("it was changed")
			}
			if db.Status.Phase != "Blocked" {
				t.Errorf("the phase is %s", db.Status.Phase)
			}
			// Once the name is free, all goes on.
			foreign.SetFinalizers(nil)
			w.must(w.api.Update(t.Context(), foreign))
			w.must(w.api.Delete(t.Context(), foreign))
			db = w.reconcile(db)
			w.expect(db, v1.ConditionReady, metav1.ConditionFalse, v1.ReasonCreating)
		})
	}
}

func TestAnObjectThatTheServerRefusesBecomesACondition(t *testing.T) {
	w := newWorld(t)
	db := w.create("x", nowhere)
	message := w.expect(db, v1.ConditionReady, metav1.ConditionFalse, v1.ReasonInvalidSpec)
	if !strings.Contains(message, "affinity") {
		t.Errorf("the condition does not say what is wrong: %s", message)
	}
	db = w.edit(db, func(db *v1.SampleDB) { db.Spec.Pod.Affinity = nil })
	w.expect(db, v1.ConditionReady, metav1.ConditionFalse, v1.ReasonCreating)
}

func TestALoneInstanceIsProtectedFromEvictionUnlessTheSpecAllowsIt(t *testing.T) {
	w := newWorld(t)
	db := w.started("x", instances(2))
	budget := &policyv1.PodDisruptionBudget{}
	away := func() int {
		w.Helper()
		w.read("x", budget)
		return budget.Spec.MaxUnavailable.IntValue()
	}
	if n := away(); n != 1 {
		t.Errorf("of two, %d may be away", n)
	}
	db = w.edit(db, instances(1))
	if n := away(); n != 0 {
		t.Errorf("of one, %d may be away", n)
	}
	db = w.edit(db, func(db *v1.SampleDB) { db.Spec.Eviction = v1.EvictionAllow })
	if w.find("x", budget) {
		t.Error("the budget keeps a node from being drained, which the spec allows")
	}
	w.edit(db, func(db *v1.SampleDB) { db.Spec.Eviction = v1.EvictionProtect })
	if n := away(); n != 0 {
		t.Errorf("of one that is protected again, %d may be away", n)
	}
}

// The operator's right to Secrets is to create them. It must get by without more.
func TestNoSecretIsEverRead(t *testing.T) {
	w := newWorld(t)
	db := w.started("x")
	w.must(w.api.Delete(t.Context(),
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "x-app"}}))
	w.agents.change("10.1.0.1", notReady)
	for range 40 { // ten seconds each: past the longest pause between attempts
		db = w.reconcile(db)
	}
	w.read("x-app", &corev1.Secret{})
	for _, write := range w.writes.take() {
		if strings.Contains(write, "/secrets") && !strings.HasPrefix(write, "POST ") {
			t.Errorf("a Secret was asked for by %s", write)
		}
	}
	if slices.ContainsFunc(w.writes.reads(), func(r string) bool { return strings.Contains(r, "/secrets") }) {
		t.Error("a Secret was read")
	}
}

// Every container that runs PostgreSQL's programs has them from the image that spec.image names by its digest.
func TestAnImageMayBeNamedByItsDigest(t *testing.T) {
	w := newWorld(t)
	image := "registry.example:5000/team/postgres@sha256:" + strings.Repeat("0123456789abcdef", 4)
	w.create("x", func(db *v1.SampleDB) { db.Spec.Image = image })
	set := &appsv1.StatefulSet{}
	w.read("x", set)
	var images []string
	for _, c := range slices.Concat(set.Spec.Template.Spec.InitContainers, set.Spec.Template.Spec.Containers) {
		images = append(images, c.Image)
	}
	if !slices.Equal(slices.Compact(slices.Sorted(slices.Values(images))), []string{image, "toban:test"}) {
		t.Errorf("the images are %q", images)
	}
}
