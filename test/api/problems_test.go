package api

import (
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/desired"
)

// A database that serves keeps its backups, its Services and its budget, whatever object of it is refused.
func TestAProblemBlocksOnlyWhatRestsOnIt(t *testing.T) {
	for name, c := range map[string]struct {
		breaks func(*world, *v1.SampleDB) *v1.SampleDB
		reason string
	}{
		"a Service whose name is taken": {func(w *world, db *v1.SampleDB) *v1.SampleDB {
			w.takeService("x-ro")
			return w.reconcile(db)
		}, v1.ReasonNameTaken},
		"a StatefulSet that is refused": {func(w *world, db *v1.SampleDB) *v1.SampleDB {
			return w.edit(db, nowhere)
		}, v1.ReasonInvalidSpec},
		"a ServiceAccount whose name is taken": {func(w *world, db *v1.SampleDB) *v1.SampleDB {
			account := &corev1.ServiceAccount{}
			w.read("x", account)
			w.must(w.api.Delete(w.Context(), account))
			w.must(w.api.Create(w.Context(), &corev1.ServiceAccount{
				ObjectMeta: metav1.ObjectMeta{Name: "x", Namespace: w.namespace},
			}))
			return w.reconcile(db)
		}, v1.ReasonNameTaken},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			db := w.archivedHourly("x")
			db = c.breaks(w, db)
			w.expect(db, v1.ConditionReady, metav1.ConditionFalse, c.reason)
			had := len(w.backups())
			service := &corev1.Service{}
			w.read("x", service)
			w.must(w.api.Delete(t.Context(), service))
			w.now = w.now.Add(2 * time.Hour)
			for range 3 {
				db = w.reconcile(db)
			}
			if got := len(w.backups()); got != had+1 {
				t.Errorf("there were %d backups, there are %d", had, got)
			}
			if !w.find("x", service) {
				t.Error("the Service that somebody deleted is not made again")
			}
			w.expect(db, v1.ConditionReady, metav1.ConditionFalse, c.reason)
		})
	}
}

// A Service that is refused keeps no database from being made.
func TestARefusedServiceDoesNotKeepADatabaseFromStarting(t *testing.T) {
	w := newWorld(t)
	w.must(w.api.Create(t.Context(), foreignService("x-ro", w.namespace)))
	db := w.create("x")
	for range 4 {
		w.playCluster(db)
		db = w.reconcile(db)
	}
	w.expect(db, v1.ConditionReady, metav1.ConditionFalse, v1.ReasonNameTaken)
	w.expect(db, v1.ConditionInitialized, metav1.ConditionTrue, v1.ReasonInitialized)
	for _, name := range []string{"x", "x-instances"} {
		if !w.find(name, &corev1.Service{}) {
			t.Errorf("there is no Service %s", name)
		}
	}
}

// archivedHourly is a SampleDB that serves, with a backup every hour, of which the first is complete.
func (w *world) archivedHourly(name string) *v1.SampleDB {
	w.Helper()
	k := w.taker()
	db := w.started(name, daily("@hourly"))
	state := works
	db = w.archive(db, &state)
	db = w.reconcile(db)
	b := &v1.DatabaseBackup{}
	w.read(w.backups()[0], b)
	k.complete(b)
	return w.reconcile(db)
}

// takeService puts somebody else's Service in the place of one of ours.
func (w *world) takeService(name string) {
	w.Helper()
	service := &corev1.Service{}
	w.read(name, service)
	w.must(w.api.Delete(w.Context(), service))
	w.must(w.api.Create(w.Context(), foreignService(name, w.namespace)))
}

func foreignService(name, namespace string) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace, Labels: naming.Common("theirs")},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 1}}},
	}
}

// nowhere is a spec whose StatefulSet the API server refuses: a term that is in nothing.
func nowhere(db *v1.SampleDB) {
	db.Spec.Pod.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
				{Key: "zone", Operator: corev1.NodeSelectorOpIn},
			}}},
		},
	}}
}

// What refuses a Pod, a quota or a policy, is told in its words, and no longer than it lasts.
func TestARefusedPodIsTold(t *testing.T) {
	w := newWorld(t)
	db := w.create("x")
	set := &appsv1.StatefulSet{}
	w.read("x", set)
	refused := w.setEvent(set, "FailedCreate", `create Pod x-0 in StatefulSet x failed error: exceeded quota: small`)
	db = w.reconcile(db)
	message := w.expect(db, v1.ConditionReady, metav1.ConditionFalse, v1.ReasonPodRefused)
	if !strings.Contains(message, "exceeded quota: small") {
		t.Errorf("the condition says: %s", message)
	}
	refused.LastTimestamp = metav1.NewTime(refused.LastTimestamp.Add(-time.Minute))
	w.must(w.api.Update(t.Context(), refused))
	w.setEvent(set, "SuccessfulCreate", "create Pod x-0 in StatefulSet x successful")
	db = w.reconcile(db)
	w.expect(db, v1.ConditionReady, metav1.ConditionFalse, v1.ReasonCreating)
}

// setEvent is what the controller of a StatefulSet says of it.
func (w *world) setEvent(set *appsv1.StatefulSet, reason, message string) *corev1.Event {
	w.Helper()
	e := &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, GenerateName: "x."},
		InvolvedObject: corev1.ObjectReference{
			Kind: "StatefulSet", Namespace: set.Namespace, Name: set.Name, UID: set.UID, APIVersion: "apps/v1",
		},
		Reason: reason, Message: message, Type: corev1.EventTypeWarning, LastTimestamp: metav1.Now(),
	}
	w.must(w.api.Create(w.Context(), e))
	return e
}

// What the Secret of the application belongs to may have its name taken: by a former SampleDB whose objects are still
// being removed, or for good. The status says so, and what to do.
func TestTheRevisionOfTheSecretHasItsNameTaken(t *testing.T) {
	for name, c := range map[string]struct {
		owner        *v1.SampleDB
		first, stays string
		said, told   string
	}{
		"a former SampleDB's": {
			owner: &v1.SampleDB{ObjectMeta: metav1.ObjectMeta{Name: "x", UID: "former"}},
			first: v1.ReasonCreating, said: "of the former SampleDB x is still being removed",
			stays: v1.ReasonNameTaken, told: "kubectl delete controllerrevision x-app-0",
		},
		"somebody's": {
			owner: &v1.SampleDB{ObjectMeta: metav1.ObjectMeta{Name: "other", UID: "other"}},
			first: v1.ReasonNameTaken, said: "x-app-0",
			stays: v1.ReasonNameTaken, told: "kubectl delete controllerrevision x-app-0",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.must(w.api.Create(t.Context(), revisionOf(c.owner, w.namespace)))
			db := w.create("x")
			if got := w.expect(db, v1.ConditionReady, metav1.ConditionFalse, c.first); !strings.Contains(got, c.said) {
				t.Errorf("it says %q", got)
			}
			w.now = w.now.Add(2 * time.Minute)
			db = w.reconcile(db)
			message := w.expect(db, v1.ConditionReady, metav1.ConditionFalse, c.stays)
			if !strings.Contains(message, c.told) {
				t.Errorf("it says %q", message)
			}
			taken := &appsv1.ControllerRevision{}
			w.read(naming.AppRevision("x", firstApp(1)), taken)
			w.must(w.api.Delete(t.Context(), taken))
			for range 4 {
				w.now = w.now.Add(time.Minute)
				w.playCluster(db)
				db = w.reconcile(db)
			}
			w.expect(db, v1.ConditionReady, metav1.ConditionTrue, v1.ReasonReady)
			w.password(db)
		})
	}
}

// A revision that has lost its label is the SampleDB's all the same.
func TestARevisionWithoutItsLabelIsStillTheSampleDBs(t *testing.T) {
	w := newWorld(t)
	db := w.started("x")
	secret, revision := &corev1.Secret{}, &appsv1.ControllerRevision{}
	w.read(naming.AppRevision("x", firstApp(1)), revision)
	revision.Labels = nil
	w.must(w.api.Update(t.Context(), revision))
	w.read(naming.AppSecret("x"), secret)
	w.must(w.api.Delete(t.Context(), secret))
	for range 2 {
		w.now = w.now.Add(20 * time.Minute)
		db = w.reconcile(db)
	}
	w.expect(db, v1.ConditionReady, metav1.ConditionTrue, v1.ReasonReady)
	w.password(db)
}

// firstApp names what the first NAME-app of a SampleDB with so many instances is made of.
func firstApp(instances int) string { return fmt.Sprintf("0-of-%d", instances) }

// revisionOf is the first revision of NAME-app, of a SampleDB.
func revisionOf(db *v1.SampleDB, namespace string) *appsv1.ControllerRevision {
	revision := desired.AppRevision(&v1.SampleDB{ObjectMeta: metav1.ObjectMeta{Name: "x"}}, 0, "", "", 1)
	revision.Namespace, revision.Labels = namespace, naming.Common("x")
	revision.OwnerReferences = []metav1.OwnerReference{
		*metav1.NewControllerRef(db, v1.GroupVersion.WithKind("SampleDB")),
	}
	return revision
}
