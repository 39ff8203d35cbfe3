package api

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	appv1 "toban.dev/api/myapp/v1"
	pgv1 "toban.dev/api/postgresql/v1"
	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
)

// leads makes a MyApp that allows drills and has a leader, whose Pod is there.
func (k *driller) leads(name string, modify ...func(*appv1.MyApp)) *appv1.MyApp {
	k.Helper()
	app := &appv1.MyApp{
		ObjectMeta: metav1.ObjectMeta{Namespace: k.namespace, Name: name, Annotations: map[string]string{
			naming.AnnotationFaultDrills: naming.FaultDrillsAllowed,
		}},
		Spec: appv1.MyAppSpec{
			Image: "app:1", Leader: true,
			Database: &appv1.DatabaseReference{Kind: appv1.DatabaseSampleDB, Name: "x"},
		},
	}
	for _, m := range modify {
		m(app)
	}
	k.must(k.api.Create(k.Context(), app))
	if app.Spec.Leader {
		k.leader(app, name+"-a")
	}
	return app
}

// leader has a Pod lead a MyApp.
func (k *driller) leader(app *appv1.MyApp, pod string) {
	k.Helper()
	k.readyPod(pod, map[string]string{
		naming.LabelManagedBy: naming.ManagedBy, naming.LabelMyApp: app.Name, naming.LabelLeaderOf: app.Name,
	})
	k.read(app.Name, app)
	app.Status.Leader = pod
	k.must(k.api.Status().Update(k.Context(), app))
}

// The Pods that lead the applications of the SampleDB are killed, and no others. The drill is over when others lead.
func TestADrillOfLeaders(t *testing.T) {
	k, _, d := drilled(t, func(d *v1.FaultDrill) { d.Spec.Fault = v1.FaultLeaderKilled })
	waits := func(words string) {
		t.Helper()
		k.expectDrill(k.drill(d), metav1.ConditionFalse, v1.ReasonNotReadyForDrill, "Pending", words)
	}
	k.leads("elsewhere", func(app *appv1.MyApp) { app.Spec.Database.Name = "y" })
	k.leads("alone", func(app *appv1.MyApp) { app.Spec.Database = nil })
	waits("no MyApp of the namespace has x, or a PostgreSQL on it, as its spec.database")
	k.leads("reports", func(app *appv1.MyApp) { app.Spec.Leader = false })
	waits("takes a MyApp with spec.leader, and none on this SampleDB has it (reports)")
	k.leads("crm", func(app *appv1.MyApp) { app.Annotations = nil })
	waits("kubectl annotate myapp crm toban.dev/fault-drills=allowed")

	blog := k.leads("blog")
	pg := &pgv1.PostgreSQL{
		ObjectMeta: metav1.ObjectMeta{Namespace: k.namespace, Name: "orders"},
		Spec:       pgv1.PostgreSQLSpec{DB: "orders", User: "orders", Password: "orders"},
	}
	k.must(k.api.Create(k.Context(), pg))
	pg.Status.Server = &pgv1.ServerReference{Name: "x"}
	k.must(k.api.Status().Update(k.Context(), pg))
	shop := k.leads("shop", func(app *appv1.MyApp) {
		app.Spec.Database = &appv1.DatabaseReference{Kind: appv1.DatabasePostgreSQL, Name: "orders"}
	})
	d = k.drill(d)
	pod := k.clientsPod(d)
	d = k.drill(d)
	k.expectDrill(d, metav1.ConditionFalse, v1.ReasonRunning, "Running", "blog-a, shop-a were broken")
	for name, want := range map[string]bool{
		"blog-a": false, "shop-a": false, "elsewhere-a": true, "alone-a": true, "crm-a": true, "x-0": true,
	} {
		if k.find(name, &corev1.Pod{}) != want {
			t.Errorf("Pod %s is there: %t", name, !want)
		}
	}
	k.expectOrders()
	k.expectEvents("BrokenOnPurpose FaultDrill d: LeaderKilled of blog-a, shop-a")
	k.now = k.now.Add(30 * time.Second)
	k.end(pod, k.result())
	d = k.drill(d)
	k.expectDrill(d, metav1.ConditionFalse, v1.ReasonRunning, "Running", "no other Pod leads MyApp blog yet")
	k.leader(blog, "blog-b")
	k.expectDrill(k.drill(d), metav1.ConditionFalse, v1.ReasonRunning, "Running", "no other Pod leads MyApp shop yet")
	k.leader(shop, "shop-b")
	d = k.drill(k.drill(d))
	k.expectDrill(d, metav1.ConditionTrue, v1.ReasonCompleted, "Completed",
		"Ready and Durable again, with another leader, after")
}

// A leader that has lost its label, or whose Pod goes, is none to kill.
func TestADrillOfALeaderWaitsForOne(t *testing.T) {
	k, _, d := drilled(t, func(d *v1.FaultDrill) { d.Spec.Fault = v1.FaultLeaderKilled })
	k.leads("blog")
	pod := &corev1.Pod{}
	k.read("blog-a", pod)
	delete(pod.Labels, naming.LabelLeaderOf)
	k.must(k.api.Update(k.Context(), pod))
	k.expectDrill(k.drill(d), metav1.ConditionFalse, v1.ReasonNotReadyForDrill, "Pending",
		"no Pod leads MyApp blog now")
}
