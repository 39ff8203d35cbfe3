package api

import (
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/protocol"
)

// witness is the last one that the agents were told.
func (w *world) witness() string { return w.agents.configs[len(w.agents.configs)-1].Witness }

func (w *world) lease(name string) *coordinationv1.Lease {
	w.Helper()
	lease := &coordinationv1.Lease{}
	w.read(name, lease)
	return lease
}

func (w *world) replicas(name string) int {
	w.Helper()
	set := &appsv1.StatefulSet{}
	w.read(name, set)
	return int(*set.Spec.Replicas)
}

// ask asks for a switchover as a user does.
func (w *world) ask(db *v1.SampleDB, to string) *v1.SampleDB {
	w.Helper()
	return w.edit(db,
		func(db *v1.SampleDB) { metav1.SetMetaDataAnnotation(&db.ObjectMeta, naming.AnnotationSwitchover, to) })
}

func TestTheWitnessIsMadeOnceAndNeverWritten(t *testing.T) {
	w := newWorld(t)
	db := w.create("x", instances(2))
	lease := w.lease("x")
	if !metav1.IsControlledBy(lease, db) || lease.Spec != (coordinationv1.LeaseSpec{}) {
		t.Errorf("the Lease is %+v", lease)
	}
	for range 4 {
		w.playCluster(db)
		db = w.reconcile(db)
	}
	if w.agents.configs[0].Witness != string(lease.UID) {
		t.Errorf("the first config has the witness %q, want %q", w.agents.configs[0].Witness, lease.UID)
	}
	holder := "x-0"
	lease.Spec.HolderIdentity = &holder
	w.must(w.api.Update(t.Context(), lease))
	version := lease.ResourceVersion
	w.edit(db, instances(3))
	if now := w.lease("x"); now.ResourceVersion != version {
		t.Error("the operator has written the Lease")
	}
}

// A new Lease knows nothing of an instance that goes on alone by the former one.
func TestANewWitnessCountsOnlyWhenTheInstancesAreTogether(t *testing.T) {
	w := newWorld(t)
	db := w.started("x", instances(2))
	former := w.witness()
	w.agents.voters = []string{"x-0"} // x-1 was away, and x-0 went on alone
	w.must(w.api.Delete(t.Context(), w.lease("x")))
	w.now = w.now.Add(5 * time.Minute) // for so long a Lease that the agents know is taken to be there
	for range 3 {
		db = w.reconcile(db)
	}
	lease := w.lease("x")
	if string(lease.UID) == former || w.witness() != former {
		t.Errorf("the witness is %s, the former was %s, the Lease is %s", w.witness(), former, lease.UID)
	}
	w.agents.voters = nil
	for range 3 {
		db = w.reconcile(db)
	}
	if w.witness() != string(lease.UID) {
		t.Errorf("the witness is still %s", w.witness())
	}
	w.expect(db, v1.ConditionReady, metav1.ConditionTrue, v1.ReasonReady)
}

func TestReadyAsksThatEveryInstanceCounts(t *testing.T) {
	w := newWorld(t)
	db := w.started("x", instances(3))
	w.expect(db, v1.ConditionDurable, metav1.ConditionTrue, v1.ReasonDurable)
	if slices.ContainsFunc(db.Status.InstanceStatuses, func(i v1.InstanceStatus) bool { return !i.Voter }) {
		t.Errorf("some instance does not count: %+v", db.Status.InstanceStatuses)
	}
	w.agents.voters = []string{"x-0", "x-1"}
	db = w.reconcile(db)
	w.expect(db, v1.ConditionDurable, metav1.ConditionTrue, v1.ReasonDurable)
	if m := w.expect(db, v1.ConditionReady, metav1.ConditionFalse, v1.ReasonNotVoting); !strings.Contains(m, "x-2") {
		t.Errorf("it does not name the instance: %s", m)
	}
	w.agents.voters = []string{"x-0"}
	db = w.reconcile(db)
	w.expect(db, v1.ConditionDurable, metav1.ConditionFalse, v1.ReasonWeakened)
	w.expect(db, v1.ConditionReady, metav1.ConditionFalse, v1.ReasonWeakened)
	w.agents.voters = []string{}
	w.expect(w.reconcile(db), v1.ConditionReady, metav1.ConditionUnknown, v1.ReasonUnknown)
}

func TestALoneInstanceIsReadyThoughNotDurable(t *testing.T) {
	w := newWorld(t)
	w.expect(w.started("x"), v1.ConditionDurable, metav1.ConditionFalse, v1.ReasonSingleInstance)
}

func TestDurabilityReachesTheAgentsAndRestartsNothing(t *testing.T) {
	w := newWorld(t)
	db := w.started("x", instances(2))
	db = w.edit(db, func(db *v1.SampleDB) { db.Spec.Durability = v1.DurabilityAsync })
	w.observe("x")
	db = w.reconcile(db)
	if last := w.agents.configs[len(w.agents.configs)-1]; last.Durability != protocol.DurabilityAsync {
		t.Errorf("the agents are told %q", last.Durability)
	}
	w.must(w.observePods(db, 2))
	if len(w.agents.restarts) > 0 {
		t.Errorf("restarted %v", w.agents.restarts)
	}
	w.expect(db, v1.ConditionDurable, metav1.ConditionFalse, v1.ReasonAsynchronous)
	w.expect(db, v1.ConditionReady, metav1.ConditionTrue, v1.ReasonReady)
}

func TestAnInstanceThatCountsIsNotScaledAway(t *testing.T) {
	w := newWorld(t)
	db := w.started("x", instances(3))
	w.agents.voters = []string{"x-0", "x-1", "x-2"}
	db = w.edit(db, instances(1))
	if last := w.agents.configs[len(w.agents.configs)-1]; len(last.Members) != 1 {
		t.Errorf("the agents are told of %d members", len(last.Members))
	}
	if w.replicas("x") != 3 {
		t.Fatal("instances that count were removed")
	}
	if m := w.expect(db, v1.ConditionReady, metav1.ConditionFalse, v1.ReasonScaling); !strings.Contains(m,
		"x-1, x-2 still counted") {
		t.Errorf("it does not say what it waits for: %s", m)
	}
	// Until they are gone they may say what they are.
	role := &rbacv1.Role{}
	w.read("x", role)
	if pods := role.Rules[0].ResourceNames; len(pods) != 3 {
		t.Errorf("the agents may label %v", pods)
	}
	w.agents.voters = []string{"x-0"}
	db = w.reconcile(db)
	if w.replicas("x") != 1 {
		t.Error("instances that count no more are still there")
	}
	w.playCluster(db)
	w.expect(w.reconcile(db), v1.ConditionReady, metav1.ConditionTrue, v1.ReasonReady)
}

func TestAPrimaryThatIsToGoHandsOverFirst(t *testing.T) {
	w := newWorld(t)
	db := w.started("x", instances(3))
	w.lead("x-2", 2)
	db = w.reconcile(db)
	w.agents.voters = []string{"x-0", "x-1", "x-2"}
	w.agents.change("10.1.0.1", notReady) // x-1 is the one that can
	db = w.edit(db, instances(2))
	w.agents.refuse = "x-1 lags behind"
	db = w.reconcile(db)
	if w.replicas("x") != 3 || !slices.Equal(w.agents.switchovers, []string{"x-2 to x-1", "x-2 to x-1"}) {
		t.Fatalf("%d replicas, asked %v", w.replicas("x"), w.agents.switchovers)
	}
	w.agents.refuse = ""
	w.agents.change("10.1.0.1", func(s *protocol.Status) { s.Ready = true })
	w.lead("x-0", 3)
	db = w.reconcile(db)
	if w.replicas("x") != 3 {
		t.Error("the former primary was removed while it counted")
	}
	w.agents.voters = nil
	w.reconcile(db)
	if w.replicas("x") != 2 {
		t.Error("the former primary was not removed")
	}
}

func TestASwitchoverIsAskedForUntilAnotherInstanceLeads(t *testing.T) {
	for to, asked := range map[string]string{"x-1": "x-0 to x-1", naming.SwitchoverAny: "x-0 to "} {
		t.Run(to, func(t *testing.T) {
			w := newWorld(t)
			db := w.started("x", instances(3))
			db = w.ask(db, to)
			if from := db.Annotations[naming.AnnotationSwitchoverFrom]; from != "x-0/1" {
				t.Errorf("it is noted that %q was asked", from)
			}
			db = w.reconcile(db)
			if !slices.Equal(w.agents.switchovers, []string{asked, asked}) {
				t.Errorf("asked %v", w.agents.switchovers)
			}
			w.lead("x-1", 2)
			db = w.reconcile(db)
			if len(db.Annotations) > 0 || db.Status.Primary != "x-1" || db.Status.Term != 2 {
				t.Errorf("annotations %v, primary %s of term %d", db.Annotations, db.Status.Primary, db.Status.Term)
			}
			if events := w.drainEvents(); !strings.Contains(events, "Switchover from x-0 to x-1") ||
				!strings.Contains(events, "PrimaryChanged from x-0 to x-1") {
				t.Errorf("events: %s", events)
			}
			w.writes.take()
			w.reconcile(db)
			if writes := w.writes.take(); len(writes) > 0 || len(w.agents.switchovers) != 2 {
				t.Errorf("afterwards it writes %v and has asked %v", writes, w.agents.switchovers)
			}
		})
	}
}

func TestASwitchoverThatCantBeIsRefusedWithItsSentence(t *testing.T) {
	for name, c := range map[string]struct {
		instances int32
		to        string
		refuse    string
		want      string
	}{
		"no such instance":      {2, "x-7", "", "there is no instance x-7: there are x-0, x-1"},
		"a lone instance":       {1, naming.SwitchoverAny, "", "there is only one instance"},
		"the agent can't do it": {2, "x-1", "x-1 does not stream", "x-1 does not stream"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			db := w.started("x", instances(c.instances))
			w.agents.refuse = c.refuse
			db = w.reconcile(w.ask(db, c.to)) // what an agent says first may be about an earlier request
			if refusal := db.Annotations[naming.AnnotationSwitchoverRefused]; !strings.Contains(refusal, c.want) ||
				len(db.Annotations) != 1 {
				t.Errorf("the annotations are %v", db.Annotations)
			}
			if events := w.drainEvents(); !strings.Contains(events, "Warning SwitchoverRefused "+c.want) {
				t.Errorf("events: %s", events)
			}
			w.expect(db, v1.ConditionReady, metav1.ConditionTrue, v1.ReasonReady)
		})
	}
}

// A switchover costs a moment without writes, so it is not tried for ever.
func TestASwitchoverThatAnotherHasWonIsOver(t *testing.T) {
	w := newWorld(t)
	db := w.ask(w.started("x", instances(3)), "x-1")
	w.lead("x-2", 2)
	db = w.reconcile(db)
	if refusal := db.Annotations[naming.AnnotationSwitchoverRefused]; !strings.Contains(refusal, "x-2 was elected") ||
		len(db.Annotations) != 1 {
		t.Errorf("the annotations are %v", db.Annotations)
	}
	if len(w.agents.switchovers) != 1 {
		t.Errorf("asked %v", w.agents.switchovers)
	}
	w.lead("x-0", 3)
	db = w.reconcile(w.ask(db, "x-1"))
	if db.Annotations[naming.AnnotationSwitchoverRefused] != "" {
		t.Error("the refusal is told of the next request")
	}
}

func TestARequestThatIsTakenBackIsForgotten(t *testing.T) {
	w := newWorld(t)
	db := w.ask(w.started("x", instances(2)), naming.SwitchoverAny)
	db = w.edit(db, func(db *v1.SampleDB) { delete(db.Annotations, naming.AnnotationSwitchover) })
	if len(db.Annotations) > 0 {
		t.Errorf("the annotations are %v", db.Annotations)
	}
}

func TestAChangeOfThePrimaryIsToldThoughNobodyLedMeanwhile(t *testing.T) {
	w := newWorld(t)
	db := w.started("x", instances(3))
	refuse := func(s *protocol.Status) { s.Ready, s.Refusal, s.Message = false, "NoMajority", "x-2 does not answer" }
	w.agents.change("10.1.0.1", refuse)
	w.agents.change("10.1.0.2", refuse)
	if db = w.reconcile(db); db.Status.Refusal != "" {
		t.Error("an election that has just begun is told as if it had failed")
	}
	if db = w.reconcile(db); db.Status.Refusal != "" {
		t.Error("x-2 could still be promoted")
	}
	w.agents.change("10.1.0.3", refuse)
	for range 2 {
		db = w.reconcile(db)
	}
	if s := db.Status; s.Primary != "" || s.LastPrimary != "x-0" || s.Refusal != "NoMajority" {
		t.Errorf("status is %+v", s)
	}
	if events := w.drainEvents(); strings.Count(events, "Warning NotPromoted NoMajority: ") != 1 {
		t.Errorf("events: %s", events)
	}
	w.lead("x-1", 2)
	w.agents.change("10.1.0.2", func(s *protocol.Status) { s.Ready = true })
	db = w.reconcile(db)
	if s := db.Status; s.Primary != "x-1" || s.LastPrimary != "" || s.Refusal != "" || s.Term != 2 {
		t.Errorf("status is %+v", s)
	}
	if events := w.drainEvents(); !strings.Contains(events, "Normal PrimaryChanged from x-0 to x-1") {
		t.Errorf("events: %s", events)
	}
}

// A primary that the Service does not lead to yet is not available: whoever waits for Ready can connect then.
func TestAPrimaryWhoseRoleIsNotPublishedIsNotAvailable(t *testing.T) {
	w := newWorld(t)
	w.unpublished = true
	db := w.create("x")
	for range 4 {
		w.playCluster(db)
		db = w.reconcile(db)
	}
	w.expect(db, v1.ConditionAvailable, metav1.ConditionFalse, v1.ReasonNotPublished)
	w.expect(db, v1.ConditionReady, metav1.ConditionFalse, v1.ReasonNotPublished)
	if db.Status.Primary != "x-0" {
		t.Errorf("the primary is %q", db.Status.Primary)
	}
	w.unpublished = false
	db = w.reconcile(db)
	w.expect(db, v1.ConditionAvailable, metav1.ConditionTrue, v1.ReasonPrimaryReady)
	w.expect(db, v1.ConditionReady, metav1.ConditionTrue, v1.ReasonReady)
}

// Whoever takes the label from the primary's Pod, or puts it on another, has the Service lead elsewhere: the primary's
// agent is asked to put that right, and nobody is while it is right.
func TestLabelsOfRolesArePutRight(t *testing.T) {
	w := newWorld(t)
	db := w.started("x", instances(2))
	w.agents.published, w.unpublished = nil, true // the agents write no label meanwhile
	asked := func(want ...string) {
		t.Helper()
		db = w.reconcile(db)
		if !slices.Equal(w.agents.published, want) {
			t.Errorf("asked to publish are %q, and not %q", w.agents.published, want)
		}
		w.agents.published = nil
	}
	label := func(name, role string) {
		t.Helper()
		pod := &corev1.Pod{}
		w.read(name, pod)
		pod.Labels[naming.LabelRole] = role
		w.must(w.api.Update(w.Context(), pod))
	}
	asked()
	label("x-1", "primary")
	asked("x-0")
	label("x-1", "standby")
	asked()
	label("x-0", "standby")
	asked("x-0")
	label("x-0", "primary")
	asked()
}

// A primary that another has followed, and that has not heard of it, is no primary.
func TestAFormerPrimaryIsNotShown(t *testing.T) {
	w := newWorld(t)
	db := w.started("x", instances(3))
	w.lead("x-1", 2)
	w.agents.change("10.1.0.1", func(s *protocol.Status) { s.Role, s.Term = protocol.RolePrimary, 1 })
	db = w.reconcile(db)
	if db.Status.Primary != "x-1" || db.Status.InstanceStatuses[0].Role != "" || db.Status.InstanceStatuses[0].Ready {
		t.Errorf("primary %s, x-0 is %+v", db.Status.Primary, db.Status.InstanceStatuses[0])
	}
	w.agents.change("10.1.0.2", notReady)
	if db = w.reconcile(db); db.Status.Primary != "" {
		t.Errorf("while the later one does not take writes yet, %s is shown", db.Status.Primary)
	}
}

// The primary hands over for a restart of its server, and comes back as a standby.
func TestARestartThatBecomesASwitchoverIsAskedForOnce(t *testing.T) {
	w := newWorld(t)
	db := w.started("x", instances(2))
	pending := func(s *protocol.Status) { s.PendingRestart = []string{"shared_buffers"} }
	w.agents.change("10.1.0.1", pending)
	db = w.reconcile(db)
	w.agents.change("10.1.0.1", func(s *protocol.Status) { pending(s); s.Ready = false }) // it is handing over
	for range 2 {
		db = w.reconcile(db)
	}
	w.lead("x-1", 2)
	w.agents.change("10.1.0.1", notReady) // a standby whose server starts
	db = w.reconcile(db)
	w.agents.change("10.1.0.1", func(s *protocol.Status) { s.PendingRestart, s.Ready, s.Streaming = nil, true, true })
	db = w.reconcile(db)
	if !slices.Equal(w.agents.restarts, []string{"x-0"}) {
		t.Errorf("restarted %v", w.agents.restarts)
	}
	w.expect(db, v1.ConditionReady, metav1.ConditionTrue, v1.ReasonReady)
}

func TestNothingRestartsWhileThePrimaryMoves(t *testing.T) {
	w := newWorld(t)
	db := w.ask(w.started("x", instances(2)), "x-1")
	db = w.edit(db, func(db *v1.SampleDB) {
		db.Spec.Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: quantity("1Gi")}
	})
	w.observe("x")
	db = w.reconcile(db)
	w.must(w.observePods(db, 2))
	w.lead("x-1", 2)
	db = w.reconcile(db)
	if w.find("x-0", &corev1.Pod{}) {
		t.Errorf("the former primary is not replaced: %s", db.Status.Conditions[0].Message)
	}
}

// Of two instances the primary goes on alone while the standby's Pod is replaced. It
// must not be replaced itself before the standby could take over.
func TestThePrimaryIsReplacedOnlyWhenAnotherCounts(t *testing.T) {
	w := newWorld(t)
	db := w.started("x", instances(2))
	w.agents.voters = []string{"x-0"}
	db = w.edit(db, func(db *v1.SampleDB) {
		db.Spec.Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: quantity("1Gi")}
	})
	w.observe("x")
	db = w.reconcile(db)
	w.playCluster(db)
	db = w.reconcile(db)
	w.must(w.observePods(db, 2))
	w.agents.voters = nil
	db = w.reconcile(db)
	if w.find("x-0", &corev1.Pod{}) {
		t.Errorf("the primary is not replaced: %s", db.Status.Conditions[0].Message)
	}
}
