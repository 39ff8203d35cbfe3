package api

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/protocol"
)

func quantity(s string) resource.Quantity { return resource.MustParse(s) }

func notReady(s *protocol.Status) { s.Ready, s.Streaming = false, false }

func TestReadyIsMoreThanARunningPod(t *testing.T) {
	w := newWorld(t)
	db := w.started("x", instances(2))
	w.agents.change("10.1.0.2", func(s *protocol.Status) { s.Streaming = false })
	db = w.reconcile(db)
	w.expect(db, v1.ConditionReady, metav1.ConditionFalse, v1.ReasonInstancesUnready)
	w.expect(db, v1.ConditionAvailable, metav1.ConditionTrue, v1.ReasonPrimaryReady)
	if db.Status.Ready != "1/2" || db.Status.Phase != "Degraded" {
		t.Errorf("ready %s, phase %s", db.Status.Ready, db.Status.Phase)
	}
	w.agents.change("10.1.0.1", notReady)
	db = w.reconcile(db)
	w.expect(db, v1.ConditionAvailable, metav1.ConditionFalse, v1.ReasonNoPrimary)
	if db.Status.Phase != "Unavailable" {
		t.Errorf("phase %s", db.Status.Phase)
	}
}

// A network that is cut between operator and agents says nothing about the database.
func TestAgentsThatDoNotAnswerAreUnknownAndNotDown(t *testing.T) {
	w := newWorld(t)
	db := w.started("x", instances(2))
	answers := w.agents.answers
	w.agents.answers = map[string]protocol.Status{}
	db = w.reconcile(db)
	w.expect(db, v1.ConditionAvailable, metav1.ConditionUnknown, v1.ReasonUnknown)
	w.expect(db, v1.ConditionReady, metav1.ConditionUnknown, v1.ReasonUnknown)
	if db.Status.Primary != "x-0" || db.Status.SystemIdentifier != identifier {
		t.Errorf("it forgot the primary (%q) or the identifier (%q)", db.Status.Primary, db.Status.SystemIdentifier)
	}
	// Nothing restarts meanwhile, whatever the spec says.
	w.writes.take()
	w.edit(db, func(db *v1.SampleDB) {
		db.Spec.Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: quantity("1Gi")}
	})
	w.playCluster(db)
	db = w.reconcile(db)
	for _, write := range w.writes.take() {
		if strings.HasPrefix(write, "DELETE ") {
			t.Errorf("it did %s", write)
		}
	}
	w.agents.answers = answers
	w.agents.change("10.1.0.1", func(*protocol.Status) {})
	db = w.reconcile(db)
	w.expect(db, v1.ConditionAvailable, metav1.ConditionTrue, v1.ReasonPrimaryReady)
}

func TestChangedResourcesReplacePodsOneByOne(t *testing.T) {
	w := newWorld(t)
	db := w.started("x", instances(3))
	db = w.edit(db, func(db *v1.SampleDB) {
		db.Spec.Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: quantity("1Gi")}
	})
	for _, next := range []string{"x-2", "x-1", "x-0"} {
		w.observe("x")
		db = w.reconcile(db)
		if w.find(next, &corev1.Pod{}) {
			t.Fatalf("%s was not replaced in its turn: %s", next, db.Status.Conditions[0].Message)
		}
		// While it is away no other one goes.
		ordinal, _ := naming.Ordinal(next)
		w.agents.change("10.1.0."+string(rune('1'+ordinal)), notReady)
		w.must(w.observePods(db, 2))
		db = w.reconcile(db)
		w.must(w.observePods(db, 2))
		w.playCluster(db)
	}
	db = w.reconcile(db)
	w.expect(db, v1.ConditionReady, metav1.ConditionTrue, v1.ReasonReady)
}

// More of a processor reaches the Pods while they run, one after the other; a request that a Pod can't get so, or that
// goes, replaces them.
func TestProcessorsReachPodsThatRun(t *testing.T) {
	w := newWorld(t)
	requests := func(list corev1.ResourceList) func(*v1.SampleDB) {
		return func(db *v1.SampleDB) { db.Spec.Resources.Requests = list }
	}
	cpu := func(text string) corev1.ResourceList { return corev1.ResourceList{corev1.ResourceCPU: quantity(text)} }
	db := w.started("x", instances(3), requests(cpu("100m")))
	before := map[string]types.UID{}
	for _, name := range []string{"x-0", "x-1", "x-2"} {
		var pod corev1.Pod
		if !w.find(name, &pod) {
			t.Fatalf("%s is gone", name)
		}
		before[name] = pod.UID
	}
	db = w.edit(db, requests(cpu("200m")))
	w.observe("x")
	for range 4 {
		db = w.reconcile(db)
	}
	for name, uid := range before {
		var pod corev1.Pod
		if !w.find(name, &pod) {
			t.Fatalf("%s is gone", name)
		}
		if has := pod.Spec.Containers[0].Resources.Requests.Cpu().String(); has != "200m" || pod.UID != uid {
			t.Errorf("%s has %s of a processor, and is the same Pod: %v", name, has, pod.UID == uid)
		}
	}
	w.expect(db, v1.ConditionReady, metav1.ConditionTrue, v1.ReasonReady)
	if events := w.drainEvents(); strings.Count(events, "PodResized") != 3 {
		t.Errorf("events: %s", events)
	}
	db = w.edit(db, requests(nil))
	w.observe("x")
	db = w.reconcile(db)
	if w.find("x-2", &corev1.Pod{}) {
		t.Errorf("x-2 was not replaced: %s", db.Status.Conditions[0].Message)
	}
}

func TestAParameterThatNeedsARestartRestartsServersInOrder(t *testing.T) {
	w := newWorld(t)
	db := w.started("x", instances(3))
	db = w.edit(db, func(db *v1.SampleDB) {
		db.Spec.PostgreSQL.Parameters = map[string]v1.ParameterValue{"max_connections": "7"}
	})
	for i := range 3 {
		w.agents.change("10.1.0."+string(rune('1'+i)),
			func(s *protocol.Status) { s.PendingRestart = []string{"max_connections"} })
	}
	for range 4 {
		db = w.reconcile(db)
	}
	if got := strings.Join(w.agents.restarts, " "); got != "x-2 x-1 x-0" {
		t.Errorf("restarted %s", got)
	}
	w.expect(db, v1.ConditionConfigurationApplied, metav1.ConditionTrue, v1.ReasonApplied)
	if events := w.drainEvents(); strings.Count(events, "Restarting") != 3 {
		t.Errorf("events: %s", events)
	}
}

func TestARejectedParameterIsToldInPostgreSQLsWords(t *testing.T) {
	w := newWorld(t)
	db := w.started("x")
	w.agents.reject = `invalid value for parameter "work_mem": "banana"`
	db = w.edit(db, func(db *v1.SampleDB) {
		db.Spec.PostgreSQL.Parameters = map[string]v1.ParameterValue{"work_mem": "banana"}
	})
	if m := w.expect(db, v1.ConditionConfigurationApplied, metav1.ConditionFalse,
		v1.ReasonParameterRejected); !strings.Contains(m, w.agents.reject) {
		t.Errorf("the condition says: %s", m)
	}
	w.expect(db, v1.ConditionAvailable, metav1.ConditionTrue, v1.ReasonPrimaryReady)
	w.expect(db, v1.ConditionReady, metav1.ConditionFalse, v1.ReasonParameterRejected)
	w.agents.reject = ""
	db = w.edit(db, func(db *v1.SampleDB) { db.Spec.PostgreSQL.Parameters = nil })
	w.expect(db, v1.ConditionReady, metav1.ConditionTrue, v1.ReasonReady)
}

func TestScalingDownKeepsOrDeletesVolumesAsTheSpecSays(t *testing.T) {
	for policy, kept := range map[v1.ScalePolicy]bool{v1.ScaleRetain: true, v1.ScaleDelete: false} {
		t.Run(string(policy), func(t *testing.T) {
			w := newWorld(t)
			db := w.started("x", instances(3), func(db *v1.SampleDB) { db.Spec.Storage.WhenScaled = policy })
			db = w.edit(db, instances(1))
			w.observe("x") // the Pods are still there
			db = w.reconcile(db)
			if !w.find("data-x-2", &corev1.PersistentVolumeClaim{}) || w.deleting("data-x-2") {
				t.Fatal("the volume went before its Pod")
			}
			w.playCluster(db)
			db = w.reconcile(db)
			for _, name := range []string{"data-x-1", "data-x-2"} {
				if there := w.find(name, &corev1.PersistentVolumeClaim{}) && !w.deleting(name); there != kept {
					t.Errorf("%s is kept: %v, want %v", name, there, kept)
				}
			}
			if w.deleting("data-x-0") {
				t.Error("the volume of the remaining instance is being deleted")
			}
			w.expect(db, v1.ConditionReady, metav1.ConditionTrue, v1.ReasonReady)
		})
	}
}

func TestDeletionWaitsForPodsAndDeletesVolumes(t *testing.T) {
	w := newWorld(t)
	db := w.started("x", instances(2), deletes)
	w.agents.answers = nil // nobody can be asked
	w.must(w.api.Delete(t.Context(), db))
	db = w.reconcile(db)
	if w.find("x", &appsv1.StatefulSet{}) {
		t.Error("the StatefulSet is still there")
	}
	if m := w.expect(db, v1.ConditionReady, metav1.ConditionFalse, v1.ReasonDeleting); !strings.Contains(m, "Pod x-0") {
		t.Errorf("it does not say what it waits for: %s", m)
	}
	if w.deleting("data-x-0") {
		t.Fatal("a volume goes while its Pod is there")
	}
	w.must(w.api.DeleteAllOf(t.Context(), &corev1.Pod{}, client.InNamespace(w.namespace)))
	db = w.reconcile(db)
	if db == nil {
		t.Fatal("the SampleDB went before its volumes")
	}
	for _, name := range []string{"data-x-0", "data-x-1"} {
		w.protectionOff(name)
	}
	if db = w.reconcile(db); db != nil {
		t.Errorf("it is still there: %+v", db.Status)
	}
}

func TestDeletionWithRetainKeepsVolumesForTheNextOfTheName(t *testing.T) {
	w := newWorld(t)
	db := w.started("x", func(db *v1.SampleDB) { db.Spec.DeletionPolicy = v1.DeletionRetain })
	claim := &corev1.PersistentVolumeClaim{}
	w.read("data-x-0", claim)
	if len(claim.OwnerReferences) != 0 {
		t.Error("the volume would go with the SampleDB")
	}
	w.must(w.api.Delete(t.Context(), db))
	w.reconcile(db)
	w.must(w.api.DeleteAllOf(t.Context(), &corev1.Pod{}, client.InNamespace(w.namespace)))
	if w.reconcile(db) != nil {
		t.Fatal("the SampleDB is still there")
	}
	if w.deleting("data-x-0") {
		t.Fatal("the volume is being deleted")
	}
	w.collectGarbage(db)
	w.started("x", deletes)
	w.read("data-x-0", claim)
	if len(claim.OwnerReferences) != 1 {
		t.Error("the next SampleDB, with deletionPolicy Delete, does not own the volume")
	}
}

func TestDeletionPolicyCanBeSwitched(t *testing.T) {
	w := newWorld(t)
	db := w.started("x")
	claim := &corev1.PersistentVolumeClaim{}
	for _, policy := range []v1.DeletionPolicy{v1.DeletionRetain, v1.DeletionDelete, v1.DeletionRetain} {
		db = w.edit(db, func(db *v1.SampleDB) { db.Spec.DeletionPolicy = policy })
		w.read("data-x-0", claim)
		if owned := metav1.IsControlledBy(claim, db); owned != (policy == v1.DeletionDelete) {
			t.Errorf("with %s the volume is owned: %v", policy, owned)
		}
	}
}

func TestAFailedInitSaysWhyAndCanBeMended(t *testing.T) {
	w := newWorld(t)
	db := w.create("x", func(db *v1.SampleDB) { db.Spec.Init = &v1.InitSpec{Extensions: []string{"nonsense"}} })
	first := w.jobs(db)[0]
	w.initPod(first,
		`{"done":false,"step":"extension nonsense","message":"ERROR: extension \"nonsense\" is not available"}`)
	db = w.reconcile(db)
	if m := w.expect(db, v1.ConditionInitialized, metav1.ConditionFalse, v1.ReasonInitFailed); !strings.Contains(m,
		`extension "nonsense" is not available`) {
		t.Errorf("it says: %s", m)
	}
	db = w.edit(db, func(db *v1.SampleDB) { db.Spec.Init.Extensions = nil })
	w.must(client.IgnoreNotFound(w.api.Delete(t.Context(), &first)))
	db = w.reconcile(db)
	jobs := w.jobs(db)
	if len(jobs) != 1 || jobs[0].Name == first.Name {
		t.Fatalf("no new Job was made: %d, %s", len(jobs), jobs[0].Name)
	}
	w.finishJobs(db)
	db = w.reconcile(db)
	w.expect(db, v1.ConditionInitialized, metav1.ConditionTrue, v1.ReasonInitialized)
	for _, job := range w.jobs(db) {
		w.must(w.api.Delete(t.Context(), &job, client.PropagationPolicy(metav1.DeletePropagationBackground)))
	}
	db = w.reconcile(db)
	if len(w.jobs(db)) != 0 {
		t.Error("the Job runs again")
	}
}

func TestAMissingConfigMapIsNamed(t *testing.T) {
	w := newWorld(t)
	db := w.create("x", func(db *v1.SampleDB) {
		db.Spec.Init = &v1.InitSpec{
			SQL: []v1.SQLSource{{ConfigMap: &v1.KeySelector{Name: "schema", Key: "tables.sql"}}},
		}
	})
	if m := w.expect(db, v1.ConditionInitialized, metav1.ConditionFalse,
		v1.ReasonConfigMapNotFound); !strings.Contains(m, "ConfigMap schema") {
		t.Errorf("it says: %s", m)
	}
	w.read("x", &appsv1.StatefulSet{}) // the instances start all the same
	schema := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "schema"}}
	w.must(w.api.Create(t.Context(), schema))
	db = w.reconcile(db)
	if m := w.expect(db, v1.ConditionInitialized, metav1.ConditionFalse,
		v1.ReasonConfigMapNotFound); !strings.Contains(m, "key tables.sql") {
		t.Errorf("it says: %s", m)
	}
	schema.Data = map[string]string{"tables.sql": "SELECT 1"}
	w.must(w.api.Update(t.Context(), schema))
	db = w.reconcile(db)
	w.expect(db, v1.ConditionInitialized, metav1.ConditionFalse, v1.ReasonInitRunning)
	// A Job that has given up is made anew as soon as the SQL changes.
	w.failJob(db)
	db = w.reconcile(db)
	before := w.jobs(db)[0].UID
	schema.Data = map[string]string{"tables.sql": "SELECT 2"}
	w.must(w.api.Update(t.Context(), schema))
	w.reconcile(db)
	w.reconcile(db)
	if jobs := w.jobs(db); len(jobs) != 1 || jobs[0].UID == before {
		t.Error("the Job was not tried again with the mended SQL")
	}
}

func TestAMissingSecretIsNamed(t *testing.T) {
	w := newWorld(t)
	db := w.create("x", func(db *v1.SampleDB) {
		db.Spec.Init = &v1.InitSpec{SQL: []v1.SQLSource{{Secret: &v1.KeySelector{Name: "rows", Key: "rows.sql"}}}}
	})
	w.initPod(w.jobs(db)[0], `{"done":false,"step":"Secret rows, key rows.sql",`+
		`"message":"read the SQL: open /etc/toban/sql/00/rows.sql: no such file or directory","secretMissing":true}`)
	db = w.reconcile(db)
	if m := w.expect(db, v1.ConditionInitialized, metav1.ConditionFalse, v1.ReasonSecretNotFound); !strings.Contains(m,
		"Secret rows, key rows.sql") {
		t.Errorf("it says: %s", m)
	}
}

// initPod makes a failed Pod of a Job with a termination message.
func (w *world) initPod(job batchv1.Job, message string) {
	w.Helper()
	pod := &corev1.Pod{ObjectMeta: *job.Spec.Template.ObjectMeta.DeepCopy(), Spec: job.Spec.Template.Spec}
	pod.Namespace, pod.GenerateName = w.namespace, job.Name+"-"
	pod.OwnerReferences = []metav1.OwnerReference{
		*metav1.NewControllerRef(&job, batchv1.SchemeGroupVersion.WithKind("Job")),
	}
	w.must(w.api.Create(w.Context(), pod))
	pod.Status.Phase = corev1.PodFailed
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name:  naming.ContainerInit,
		State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, Message: message}},
	}}
	w.must(w.api.Status().Update(w.Context(), pod))
}

// failJob lets the Job use up its attempts.
func (w *world) failJob(db *v1.SampleDB) {
	w.Helper()
	job := w.jobs(db)[0]
	now := metav1.NewTime(w.now)
	job.Status.StartTime, job.Status.Failed = &now, 7
	job.Status.Conditions = []batchv1.JobCondition{
		{Type: batchv1.JobFailureTarget, Status: corev1.ConditionTrue, LastTransitionTime: now},
		{Type: batchv1.JobFailed, Status: corev1.ConditionTrue, LastTransitionTime: now},
	}
	w.must(w.api.Status().Update(w.Context(), &job))
}
