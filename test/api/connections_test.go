package api

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/desired"
)

// NAME-app names the hosts of all instances, also after there are more.
func TestTheApplicationsSecretNamesAllHosts(t *testing.T) {
	w := newWorld(t)
	db := w.started("x", instances(3))
	names := func(want int) {
		t.Helper()
		app := &corev1.Secret{}
		w.read(naming.AppSecret("x"), app)
		if got := strings.Count(string(app.Data[naming.KeyHostsURI]), ".x-instances."); got != want {
			t.Errorf("it names %d hosts, want %d: %s", got, want, app.Data[naming.KeyHostsURI])
		}
	}
	names(3)
	db = w.edit(db, func(db *v1.SampleDB) { db.Spec.Instances = 5 })
	for range 4 {
		db = w.reconcile(db)
		w.collectSecrets()
	}
	names(5)
	if db.Status.AppHosts != 5 {
		t.Errorf("the status says %d", db.Status.AppHosts)
	}
	w.password(db)
}

// One that an earlier release has made names no hosts, and stays: who mounts it may be restarted when it changes. It
// gets them when it is made anew.
func TestTheApplicationsSecretOfAnEarlierReleaseStays(t *testing.T) {
	w := newWorld(t)
	db := w.started("x", instances(3))
	revision, secret := &appsv1.ControllerRevision{}, &corev1.Secret{}
	w.read(naming.AppRevision("x", firstApp(3)), revision)
	w.must(w.api.Delete(t.Context(), revision))
	former := desired.AppRevision(db, 0, "", "", 0)
	w.must(w.api.Create(t.Context(), former))
	w.read(naming.AppSecret("x"), secret)
	w.must(w.api.Delete(t.Context(), secret))
	secret = desired.AppSecret(db, former, "former", nil)
	w.must(w.api.Create(t.Context(), secret))
	db.Status.AppHosts = 0
	w.must(w.api.Status().Update(t.Context(), db))
	for range 3 {
		db = w.reconcile(db)
		w.collectSecrets()
	}
	now := &corev1.Secret{}
	if w.read(naming.AppSecret("x"), now); now.UID != secret.UID {
		t.Error("it was made anew")
	}
	db = w.settlePooler(w.edit(db, pooler))
	if w.read(naming.AppSecret("x"), now); now.Data[naming.KeyHostsURI] == nil || db.Status.AppHosts != 3 {
		t.Errorf("made anew, it does not name the hosts; the status says %d", db.Status.AppHosts)
	}
}

// The Service leads to all instances when all of them pass clients on, and to the primary before and after.
func TestTheServiceLeadsToAllInstancesWhenTheyPassClientsOn(t *testing.T) {
	w := newWorld(t)
	db := w.started("x", instances(3))
	route := func(route v1.Route) func(*v1.SampleDB) {
		return func(db *v1.SampleDB) { db.Spec.Service.Route = route }
	}
	leads := func(toAll bool) {
		t.Helper()
		service := &corev1.Service{}
		w.read(naming.ReadWriteService("x"), service)
		byRelay, port := service.Spec.Selector[naming.LabelRelay] != "", service.Spec.Ports[0].TargetPort.String()
		byRole := service.Spec.Selector[naming.LabelRole] != ""
		if byRelay != toAll || byRole == toAll || (port == "5433") != toAll {
			t.Errorf("it leads to %v, port %s", service.Spec.Selector, port)
		}
	}
	relays := func(pod string, relays bool) {
		t.Helper()
		p := &corev1.Pod{}
		w.read(pod, p)
		p.Labels[naming.LabelRelay] = naming.Relays
		if !relays {
			delete(p.Labels, naming.LabelRelay)
		}
		w.must(w.api.Update(t.Context(), p))
	}
	leads(false)
	db = w.reconcile(w.edit(db, route(v1.RouteRelay)))
	if !w.lastConfig().Relay {
		t.Error("the agents are not told to pass clients on")
	}
	relays("x-0", true)
	relays("x-2", true)
	db = w.reconcile(db)
	leads(false) // one is of an earlier release
	relays("x-1", true)
	db = w.reconcile(db)
	leads(true)
	relays("x-1", false) // it is not heard
	db = w.reconcile(db)
	leads(true)
	w.expect(db, v1.ConditionReady, metav1.ConditionTrue, v1.ReasonReady)
	w.writes.take()
	db = w.reconcile(db)
	if writes := w.writes.take(); len(writes) > 0 {
		t.Errorf("at rest it writes: %v", writes)
	}
	w.reconcile(w.edit(db, route(v1.RoutePrimary)))
	leads(false)
	if w.lastConfig().Relay || len(w.agents.restarts) > 0 {
		t.Errorf("the agents are told to pass clients on: %t; restarts: %v", w.lastConfig().Relay, w.agents.restarts)
	}
}

// The primary's agent says of each Pod whether it passes clients on. One that is not there does not.
func TestThePrimarysAgentLabelsWhoPassesClientsOn(t *testing.T) {
	w := newWorld(t)
	w.started("x", instances(3))
	agent := w.ofAgent()
	for _, leads := range []bool{true, true, false, false} {
		w.must(agent.SetRelay(t.Context(), "x-1", leads))
		pod := &corev1.Pod{}
		w.read("x-1", pod)
		if is := pod.Labels[naming.LabelRelay] == naming.Relays; is != leads {
			t.Errorf("its labels are %v, and clients are to come: %t", pod.Labels, leads)
		}
	}
	w.must(agent.SetRelay(t.Context(), "x-7", true))
}
