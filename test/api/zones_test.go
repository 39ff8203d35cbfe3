package api

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/protocol"
)

// place has the Pods of instances put on nodes of a zone each, by ordinal; one of "" is in no zone. It gives the Pods
// the label of their node, as the API server does where there are nodes.
func (w *world) place(db *v1.SampleDB, zones ...string) *v1.SampleDB {
	w.Helper()
	for ordinal, zone := range zones {
		pod := &corev1.Pod{}
		w.read(naming.Instance(db.Name, ordinal), pod)
		binding := &corev1.Binding{
			ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name},
			Target:     corev1.ObjectReference{Kind: "Node", Name: fmt.Sprintf("node-%d", ordinal)},
		}
		w.must(w.api.SubResource("binding").Create(w.Context(), pod, binding))
		w.read(pod.Name, pod)
		if zone != "" {
			pod.Labels[corev1.LabelTopologyZone] = zone
			w.must(w.api.Update(w.Context(), pod))
		}
	}
	return w.reconcile(db)
}

// inZones prefers zones for the primary, and avoids instances. There is no archive, whose Jobs would be waited for.
func inZones(zones []string, avoid ...int32) func(*v1.SampleDB) {
	return func(db *v1.SampleDB) {
		db.Spec.Primary = &v1.PrimarySpec{Zones: zones, Avoid: avoid}
		db.Spec.Backup = &v1.BackupSpec{None: true}
	}
}

// runningJob is a Job of a SampleDB that has not ended, as a backup has one.
func (w *world) runningJob(db *v1.SampleDB, name string) *batchv1.Job {
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name, Labels: naming.Common(db.Name)},
		Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever,
			Containers:    []corev1.Container{{Name: "x", Image: "x"}},
		}}},
	}
}

func TestInstancesAreSpreadOverZones(t *testing.T) {
	w := newWorld(t)
	set := func() []corev1.TopologySpreadConstraint {
		s := &appsv1.StatefulSet{}
		w.read("x", s)
		return s.Spec.Template.Spec.TopologySpreadConstraints
	}
	db := w.started("x", instances(3))
	if got := set(); len(got) != 1 || got[0].WhenUnsatisfiable != corev1.ScheduleAnyway ||
		got[0].TopologyKey != corev1.LabelTopologyZone {
		t.Errorf("by default the constraints are %+v", got)
	}
	db = w.edit(db, func(db *v1.SampleDB) { db.Spec.ZoneSpread = v1.ZoneSpreadRequired })
	if got := set(); len(got) != 1 || got[0].WhenUnsatisfiable != corev1.DoNotSchedule {
		t.Errorf("where it is required they are %+v", got)
	}
	w.observe("x")
	w.writes.take()
	db = w.reconcile(db)
	deletes := func(write string) bool { return strings.HasPrefix(write, "DELETE") }
	if writes := w.writes.take(); slices.ContainsFunc(writes, deletes) {
		t.Errorf("Pods are replaced for it: %v", writes)
	}
	w.expect(db, v1.ConditionReady, metav1.ConditionTrue, v1.ReasonReady)
}

func TestWhetherAZoneMayBeLostIsSaid(t *testing.T) {
	for name, c := range map[string]struct {
		zones  []string
		status metav1.ConditionStatus
		reason string
		event  string
	}{
		"each in a zone": {[]string{"a", "b", "c"}, metav1.ConditionTrue, v1.ReasonZonesSpread, ""},
		"one zone":       {[]string{"a", "a", "a"}, metav1.ConditionFalse, v1.ReasonOneZone, "Warning ZoneAtRisk"},
		"two in one zone": {
			[]string{"a", "b", "b"}, metav1.ConditionFalse, v1.ReasonZoneHoldsMajority, "Warning ZoneAtRisk",
		},
		"one is unknown": {[]string{"a", "b", ""}, metav1.ConditionUnknown, v1.ReasonZonesUnknown, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			db := w.started("x", instances(3))
			if meta.FindStatusCondition(db.Status.Conditions, v1.ConditionSurvivesZoneLoss) != nil {
				t.Error("there is a condition where no zone is known")
			}
			db = w.place(db, c.zones...)
			w.expect(db, v1.ConditionSurvivesZoneLoss, c.status, c.reason)
			w.expect(db, v1.ConditionReady, metav1.ConditionTrue, v1.ReasonReady)
			for i, instance := range db.Status.InstanceStatuses {
				if instance.Zone != c.zones[i] {
					t.Errorf("%s is said to be in zone %q, want %q", instance.Name, instance.Zone, c.zones[i])
				}
			}
			if events := w.drainEvents(); !strings.Contains(events, c.event) {
				t.Errorf("events: %s", events)
			}
			w.writes.take()
			db = w.reconcile(db)
			if writes := w.writes.take(); len(writes) > 0 {
				t.Errorf("at rest it writes %v", writes)
			}
			w.must(w.api.Delete(w.Context(), &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "x-2"}}, client.GracePeriodSeconds(0)))
			if db = w.reconcile(db); db.Status.InstanceStatuses[2].Zone != c.zones[2] {
				t.Errorf("without its Pod x-2 is said to be in %q", db.Status.InstanceStatuses[2].Zone)
			}
		})
	}
}

// settle lets a SampleDB be well for so long that its primary may hand over; all instances have the same WAL.
func (w *world) settle(db *v1.SampleDB) *v1.SampleDB {
	w.Helper()
	for host := range w.agents.answers {
		w.agents.change(host, func(s *protocol.Status) { s.LSN = "0/5000000" })
	}
	w.now = w.now.Add(time.Minute)
	return w.reconcile(w.reconcile(db))
}

func TestThePrimaryHandsOverToThePreferredZone(t *testing.T) {
	w := newWorld(t)
	db := w.place(w.started("x", instances(3), inZones([]string{"b", "c"})), "a", "b", "c")
	w.expect(db, v1.ConditionPrimaryPreferred, metav1.ConditionFalse, v1.ReasonHandOverWaits)
	if len(w.agents.switchovers) > 0 {
		t.Errorf("before all has been well for long it asks %v", w.agents.switchovers)
	}
	if got := w.agents.configs[len(w.agents.configs)-1].Preferred; !slices.Equal(got, []string{"x-1", "x-2", "x-0"}) {
		t.Errorf("the agents are told to prefer %v", got)
	}
	db = w.settle(db)
	if !slices.Equal(w.agents.switchovers, []string{"x-0 to x-1"}) {
		t.Fatalf("it asks %v", w.agents.switchovers)
	}
	w.expect(db, v1.ConditionPrimaryPreferred, metav1.ConditionFalse, v1.ReasonHandingOver)
	w.lead("x-1", 2)
	db = w.reconcile(w.reconcile(db))
	w.expect(db, v1.ConditionPrimaryPreferred, metav1.ConditionTrue, v1.ReasonPreferred)
	events := w.drainEvents()
	for _, want := range []string{
		"PreferredPrimary x-1 (zone b) is preferred to x-0 (zone a), which hands over now",
		"Switchover from x-0 to x-1",
	} {
		if !strings.Contains(events, want) {
			t.Errorf("no event %q in %s", want, events)
		}
	}

	// Zone b is lost and comes back: within the hour the lead stays where it is, and goes back after that.
	w.lead("x-2", 3)
	db = w.settle(db)
	message := w.expect(db, v1.ConditionPrimaryPreferred, metav1.ConditionFalse, v1.ReasonHandOverWaits)
	if !strings.Contains(message, "less than an hour ago") || len(w.agents.switchovers) != 1 {
		t.Errorf("it says %q and asks %v", message, w.agents.switchovers)
	}
	w.now = w.now.Add(time.Hour)
	w.settle(db)
	if !slices.Equal(w.agents.switchovers, []string{"x-0 to x-1", "x-2 to x-1"}) {
		t.Errorf("after the hour it asks %v", w.agents.switchovers)
	}
}

func TestWhatKeepsThePrimaryFromHandingOver(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*world, *v1.SampleDB)
		reason string
		says   string
	}{
		"the preferred instance is not ready": {func(w *world, _ *v1.SampleDB) {
			w.change("x-1", false)
		}, v1.ReasonPreferredUnready,
			"x-1 (zone b) is preferred to x-0 (zone a), and can't take over: it is not ready"},
		"another instance is not ready": {func(w *world, _ *v1.SampleDB) {
			w.change("x-2", false)
		}, v1.ReasonHandOverWaits, "when all is well again: InstancesUnready"},
		"a backup": {func(w *world, db *v1.SampleDB) {
			w.must(w.api.Create(w.Context(), w.runningJob(db, "x-now")))
		}, v1.ReasonHandOverWaits, "after Job x-now"},
		"a stop": {func(w *world, db *v1.SampleDB) {
			db.Spec.Stopped = true
			w.must(w.api.Update(w.Context(), db))
		}, v1.ReasonHandOverWaits, ""},
		"nothing but a request": {func(w *world, db *v1.SampleDB) {
			db.Spec.Primary.HandOver = v1.HandOverOnRequest
			w.must(w.api.Update(w.Context(), db))
		}, v1.ReasonHandOverOnRequest, "hands over when that is asked for"},
		"a window that is not open": {func(w *world, db *v1.SampleDB) {
			db.Spec.Primary.HandOver = v1.HandOverInWindow
			later := w.now.Add(6 * time.Hour).UTC().Format("15:04")
			db.Spec.Update = &v1.UpdateSpec{
				Mode:   v1.UpdateOnRequest,
				Window: &v1.Window{Start: later, Duration: metav1.Duration{Duration: time.Hour}},
			}
			w.must(w.api.Update(w.Context(), db))
		}, v1.ReasonHandOverWaits, "update.window opens then"},
		"a zone that is not known": {func(w *world, db *v1.SampleDB) {
			db.Spec.Primary.Zones = []string{"a"}
			w.must(w.api.Update(w.Context(), db))
			pod := &corev1.Pod{}
			w.read("x-0", pod)
			delete(pod.Labels, corev1.LabelTopologyZone)
			w.must(w.api.Update(w.Context(), pod))
		}, v1.ReasonPreferredUnknown, "the zone of x-0"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			db := w.place(w.started("x", instances(3), inZones([]string{"b"})), "a", "b", "c")
			c.change(w, db)
			db = w.settle(db)
			message := w.expect(db, v1.ConditionPrimaryPreferred,
				map[bool]metav1.ConditionStatus{true: metav1.ConditionUnknown, false: metav1.ConditionFalse}[c.reason ==
					v1.ReasonPreferredUnknown], c.reason)
			if !strings.Contains(message, c.says) || len(w.agents.switchovers) > 0 {
				t.Errorf("it says %q and asks %v", message, w.agents.switchovers)
			}
		})
	}
}

// change says whether the agent of an instance of x says that it is ready.
func (w *world) change(name string, ready bool) {
	for host, answer := range w.agents.answers {
		if answer.Name == name {
			answer.Ready = ready
			w.agents.answers[host] = answer
		}
	}
}

func TestAnInstanceThatIsToBeAvoidedLeadsOnlyWhereNoOtherCan(t *testing.T) {
	w := newWorld(t)
	db := w.started("x", instances(2), inZones(nil, 0))
	if w.settle(db); !slices.Equal(w.agents.switchovers, []string{"x-0 to x-1"}) {
		t.Errorf("it asks %v", w.agents.switchovers)
	}
}

// What a user has asked for is not undone at once.
func TestASwitchoverAwayFromThePreferredZoneHolds(t *testing.T) {
	w := newWorld(t)
	db := w.place(w.started("x", instances(3), inZones([]string{"a"})), "a", "b", "c")
	db = w.ask(db, "x-2")
	w.lead("x-2", 2)
	db = w.settle(w.reconcile(db))
	message := w.expect(db, v1.ConditionPrimaryPreferred, metav1.ConditionFalse, v1.ReasonHandOverWaits)
	if !strings.Contains(message, "less than an hour ago") || len(w.agents.switchovers) != 1 {
		t.Errorf("it says %q and asks %v", message, w.agents.switchovers)
	}
}

// A primary whose instance is to be removed hands over to the preferred one of those that stay.
func TestAPrimaryThatIsToGoHandsOverToThePreferredInstance(t *testing.T) {
	w := newWorld(t)
	db := w.place(w.started("x", instances(4), inZones([]string{"c"})), "a", "b", "c", "d")
	w.lead("x-3", 2)
	w.reconcile(w.edit(w.reconcile(db), func(db *v1.SampleDB) { db.Spec.Instances = 3 }))
	if len(w.agents.switchovers) == 0 || w.agents.switchovers[0] != "x-3 to x-2" {
		t.Errorf("it asks %v", w.agents.switchovers)
	}
}
