package api

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appv1 "toban.dev/api/myapp/v1"
	"toban.dev/internal/naming"
)

func withLeader(app *appv1.MyApp) { app.Spec.Leader = true }

// led is an application with a leader.
func (w *appWorld) led() *appv1.MyApp {
	w.Helper()
	app := w.served(withLeader)
	if app.Status.Leader == "" || w.leaders(app) != app.Status.Leader {
		w.Fatalf("%q leads, and it says %q", w.leaders(app), app.Status.Leader)
	}
	return app
}

// another is a Pod that does not lead.
func (w *appWorld) another(app *appv1.MyApp) string {
	w.Helper()
	for _, pod := range w.pods(naming.AppSelector(app.Name)) {
		if pod.Name != app.Status.Leader {
			return pod.Name
		}
	}
	w.Fatal("there is no other Pod")
	return ""
}

func TestOnePodLeadsAndTheServiceLeadsToIt(t *testing.T) {
	w := newAppWorld(t)
	app := w.led()
	service := &corev1.Service{}
	w.read("sample-app-leader", service)
	selector := labels.SelectorFromSet(service.Spec.Selector)
	var selected []string
	for _, pod := range w.pods(nil) {
		if selector.Matches(labels.Set(pod.Labels)) {
			selected = append(selected, pod.Name)
		}
	}
	if len(selected) != 1 || selected[0] != app.Status.Leader || service.Spec.PublishNotReadyAddresses {
		t.Errorf("the Service leads to %v, and %s leads", selected, app.Status.Leader)
	}
	w.rests(app)

	// Another Pod that is older by its date does not take over from one that serves.
	w.restart()
	w.rests(app)

	app = w.change(app, func(app *appv1.MyApp) { app.Spec.Leader = false })
	if w.leaders(app) != "" || app.Status.Leader != "" || w.find("sample-app-leader", &corev1.Service{}) {
		t.Errorf("turned off, %q leads, and it says %q", w.leaders(app), app.Status.Leader)
	}
}

// The leader moves when its Pod is not ready, is being deleted, or is gone, and the label is taken before it is given.
func TestTheLeaderMoves(t *testing.T) {
	for name, lose := range map[string]func(*appWorld, string){
		"it is not ready": func(w *appWorld, pod string) {
			w.setPod(pod, func(s *corev1.PodStatus) { s.Conditions = isReady(false) })
		},
		"it is being deleted": func(w *appWorld, name string) {
			pod := &corev1.Pod{}
			w.read(name, pod)
			pod.Finalizers = []string{"example.com/test"}
			w.must(w.api.Update(w.Context(), pod))
			w.must(w.api.Delete(w.Context(), pod, client.GracePeriodSeconds(0)))
		},
		"it is gone": func(w *appWorld, name string) {
			w.must(w.api.Delete(w.Context(),
				&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}},
				client.GracePeriodSeconds(0)))
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newAppWorld(t)
			app := w.led()
			was := app.Status.Leader
			lose(w, was)
			w.writes.take()
			app = w.again(app)
			if app.Status.Leader == was || app.Status.Leader == "" || w.leaders(app) != app.Status.Leader {
				t.Fatalf("%q leads, and it says %q; before it was %s", w.leaders(app), app.Status.Leader, was)
			}
			patched := slices.DeleteFunc(w.writes.take(),
				func(write string) bool { return !strings.Contains(write, "/pods/") })
			want := []string{"PATCH /api/v1/namespaces/" + w.namespace + "/pods/" + app.Status.Leader}
			if name != "it is gone" {
				want = append([]string{"PATCH /api/v1/namespaces/" + w.namespace + "/pods/" + was}, want...)
			}
			if !slices.Equal(patched, want) {
				t.Errorf("it writes %v, want %v", patched, want)
			}
			if told := w.drainEvents(); !strings.Contains(told, "from "+was+" to "+app.Status.Leader) {
				t.Errorf("it tells %s", told)
			}
			w.rests(app)
		})
	}
}

// While the label can't be taken from one Pod, no other gets it.
func TestNeverTwoLead(t *testing.T) {
	w := newAppWorld(t)
	app := w.led()
	was := app.Status.Leader
	w.setPod(was, func(s *corev1.PodStatus) { s.Conditions = isReady(false) })
	w.broken.name = was
	if err := w.try(app); err == nil {
		t.Error("it does not notice that the label could not be taken")
	}
	app = w.fresh(app)
	if w.leaders(app) != was {
		t.Fatalf("%s lead", w.leaders(app))
	}
	w.ready(app, metav1.ConditionFalse, appv1.ReasonRetrying)
	w.broken.name = ""
	app = w.again(app)
	if w.leaders(app) != app.Status.Leader || app.Status.Leader == was {
		t.Errorf("%s lead, and it says %s", w.leaders(app), app.Status.Leader)
	}
}

// A Pod that bears the label by somebody else's hand loses it: also one that the operator does not know.
func TestALabelFromElsewhereIsTakenOff(t *testing.T) {
	w := newAppWorld(t)
	app := w.led()
	label := func(name string) {
		pod := &corev1.Pod{}
		w.read(name, pod)
		patch := client.MergeFrom(pod.DeepCopy())
		pod.Labels[naming.LabelLeaderOf] = app.Name
		w.must(w.api.Patch(t.Context(), pod, patch))
	}
	label(w.another(app))
	w.again(app)
	if len(strings.Fields(w.leaders(app))) != 1 {
		t.Errorf("%s lead", w.leaders(app))
	}
	stranger := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: w.namespace, Name: "stranger", Labels: map[string]string{naming.LabelLeaderOf: app.Name},
	},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "theirs"}}}}
	w.must(w.api.Create(t.Context(), stranger))
	app = w.fresh(app)
	w.setPod(app.Status.Leader, func(s *corev1.PodStatus) { s.Conditions = isReady(false) })
	app = w.again(app)
	if w.leaders(app) != app.Status.Leader {
		t.Errorf("%s lead, and it says %s", w.leaders(app), app.Status.Leader)
	}
}

// With no Pod that is ready nobody leads, and the first that is ready again does.
func TestWithoutAReadyPodNobodyLeads(t *testing.T) {
	w := newAppWorld(t)
	app := w.led()
	for _, pod := range w.pods(naming.AppSelector(app.Name)) {
		w.setPod(pod.Name, func(s *corev1.PodStatus) { s.Conditions = isReady(false) })
	}
	other := w.another(app)
	app = w.again(app)
	if w.leaders(app) != "" || app.Status.Leader != "" {
		t.Errorf("%s leads", w.leaders(app))
	}
	w.setPod(other, func(s *corev1.PodStatus) { s.Conditions = isReady(true) })
	app = w.again(app)
	if w.leaders(app) != other || app.Status.Leader != other {
		t.Errorf("%s leads, want %s", w.leaders(app), other)
	}
}

// Of Pods that can lead while they are replaced, one leads that stays.
func TestTheNextLeaderIsOneThatStays(t *testing.T) {
	w := newAppWorld(t)
	app := w.led()
	was := app.Status.Leader
	app = w.change(app, image("nginx:1.26"))
	if app.Status.Leader != was {
		t.Errorf("it has moved to %s although %s serves", app.Status.Leader, was)
	}
	time.Sleep(1100 * time.Millisecond) // dates are in whole seconds: the new Pod is the youngest
	w.runAppPod(w.deployment(app), "sample-app-new")
	w.setPod(was, func(s *corev1.PodStatus) { s.Conditions = isReady(false) })
	app = w.again(app)
	if app.Status.Leader != "sample-app-new" {
		t.Errorf("%s leads, which is about to be replaced", app.Status.Leader)
	}
}
