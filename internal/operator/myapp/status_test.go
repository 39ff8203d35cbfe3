package myapp

import (
	"errors"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	v1 "toban.dev/api/myapp/v1"
	"toban.dev/internal/operator/apply"
	"toban.dev/internal/operator/desired/myapp"
	"toban.dev/internal/operator/jobs"
)

// running is a reconcile of an application whose three Pods serve, changed by the modifiers.
func running(modify ...func(*scope)) *scope {
	app := &v1.MyApp{
		ObjectMeta: metav1.ObjectMeta{Name: "x", Namespace: "shop", UID: "0b5c", Generation: 2}, Spec: v1.MyAppSpec{
			Replicas: ptr.To[int32](3), Image: "nginx:1.25", Port: 80,
		},
	}
	s := &scope{app: app, now: time.Unix(1e9, 0), decision: decide(view{image: app.Spec.Image})}
	s.deployed = &v1.Deployed{Revision: 1, Spec: myapp.PodPart(app.Spec)}
	s.wanted = myapp.Deployment(app, myapp.Release{Spec: app.Spec}, 3)
	s.seen.deployment = s.wanted.DeepCopy()
	s.seen.deployment.Generation = 1
	s.seen.deployment.Status = appsv1.DeploymentStatus{
		ObservedGeneration: 1, Replicas: 3, UpdatedReplicas: 3, ReadyReplicas: 3,
		Conditions: []appsv1.DeploymentCondition{
			{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: "NewReplicaSetAvailable"},
		},
	}
	for _, name := range []string{"ok-0", "ok-1", "ok-2"} {
		s.seen.pods = append(s.seen.pods, corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "nginx:1.25"}}},
			Status: corev1.PodStatus{
				Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
			},
		})
	}
	for _, m := range modify {
		m(s)
	}
	return s
}

// counts sets how many Pods there are, of the new kind, and ready.
func counts(replicas, updated, ready int32) func(*scope) {
	return func(s *scope) {
		d := &s.seen.deployment.Status
		d.Replicas, d.UpdatedReplicas, d.ReadyReplicas = replicas, updated, ready
	}
}

// pod adds one that is not ready, with its container in a state.
func pod(name string, state corev1.ContainerState) func(*scope) {
	return func(s *scope) {
		s.seen.pods = append(s.seen.pods,
			corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.PodStatus{
				ContainerStatuses: []corev1.ContainerStatus{{Name: "app", Image: "nginx:1.25", State: state}},
			}})
	}
}

func waiting(reason, message string) corev1.ContainerState {
	return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
}

func TestReadyAndPhase(t *testing.T) {
	runs := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	held := func(reason string) func(*scope) { return func(s *scope) { s.decision = hold(reason, "because") } }
	progressing := func(s *scope) { s.seen.deployment.Status.Conditions[0].Reason = "ReplicaSetUpdated" }
	blocked := func(cause apply.Cause) func(*scope) {
		return func(s *scope) { s.problem = &apply.Problem{Cause: cause, Message: "Service x"} }
	}
	none := func(s *scope) {
		s.app.Spec.Replicas, s.wanted.Spec.Replicas, s.seen.deployment.Spec.Replicas = ptr.To[int32](0),
			ptr.To[int32](0), ptr.To[int32](0)
	}
	for name, c := range map[string]struct {
		scope  *scope
		reason string
		phase  string
		words  string
	}{
		"all is well":    {running(), v1.ReasonReady, phaseRunning, "nginx:1.25 serves with 3 Pods"},
		"none is wanted": {running(none, counts(0, 0, 0)), v1.ReasonStopped, phaseStopped, "replicas is 0"},
		"none is wanted, but some are there": {
			running(none, counts(2, 2, 2)), v1.ReasonScaling, phaseUpdating, "removed",
		},
		"no Deployment yet": {running(func(s *scope) { s.seen.deployment = nil }), v1.ReasonStarting, phasePending, ""},
		"the Deployment was just changed": {
			running(func(s *scope) { s.seen.deployment.Annotations = nil }), v1.ReasonUpdating, phaseUpdating, "3 Pods",
		},
		"its controller has not seen that": {
			running(func(s *scope) { s.seen.deployment.Generation = 2 }), v1.ReasonUpdating, phaseUpdating, "",
		},
		"the first Pods are being started": {
			running(counts(3, 3, 0), pod("x-0", waiting("ContainerCreating", "")), progressing),
			v1.ReasonStarting, phasePending, "",
		},
		"the first Pods get ready": {
			running(counts(3, 3, 0), pod("x-0", runs), progressing), v1.ReasonStarting, phasePending, "x-0 runs",
		},
		"Pods are replaced": {
			running(counts(4, 1, 3), progressing), v1.ReasonUpdating, phaseUpdating, "1 of 3 are new; meanwhile 3 Pods",
		},
		"the new image is another one than serves": {
			running(counts(4, 1, 3), pod("x-9", waiting("ErrImagePull", "not found")),
				func(s *scope) { s.deployed.Spec.Image = "nginx:9.99" }), v1.ReasonImageUnusable, phaseDegraded,
			"meanwhile 3 Pods of nginx:1.25 serve",
		},
		"Pods are added": {
			running(counts(3, 3, 2), pod("x-2", waiting("ContainerCreating", ""))), v1.ReasonScaling,
			phaseUpdating, "2 of 3",
		},
		"too many": {running(counts(5, 5, 5)), v1.ReasonScaling, phaseUpdating, "5 are there"},
		"too few":  {running(counts(2, 2, 2)), v1.ReasonScaling, phaseUpdating, "2 of 3"},
		"one is not ready any more": {
			running(counts(3, 3, 2), pod("x-2", runs)), v1.ReasonPodsUnready, phaseDegraded,
			"x-2 runs, but is not ready",
		},
		"none is ready any more": {
			running(counts(3, 3, 0), pod("x-2", runs)), v1.ReasonPodsUnready, phaseFailed, "0 of 3",
		},
		"the new image can't be pulled": {
			running(counts(4, 1, 3), pod("x-9", waiting("ImagePullBackOff", "not found"))),
			v1.ReasonImageUnusable, phaseDegraded, "not found; meanwhile 3 Pods of nginx:1.25 serve",
		},
		"no image can be pulled": {
			running(counts(3, 3, 0), pod("x-9", waiting("ErrImagePull", "not found"))),
			v1.ReasonImageUnusable, phaseFailed, "not found",
		},
		"a Secret is missing": {
			running(counts(3, 3, 0), pod("x-9", waiting("CreateContainerConfigError", `secret "a" not found`))),
			v1.ReasonConfigNotFound, phasePending, `secret "a"`,
		},
		"the cluster refuses Pods": {
			running(counts(0, 0, 0), quota), v1.ReasonInvalidSpec, phaseFailed, "exceeded quota",
		},
		"somebody has paused it": {
			running(func(s *scope) { s.seen.deployment.Spec.Paused = true }), v1.ReasonUpdating, phaseUpdating,
			"kubectl rollout resume deployment/x",
		},
		"a name is taken": {running(blocked(apply.Taken)), v1.ReasonNameTaken, phaseDegraded, "Service x"},
		"the cluster refuses an object": {
			running(blocked(apply.Refused), counts(0, 0, 0)), v1.ReasonInvalidSpec, phaseFailed, "Service x",
		},
		"an object is about to go": {
			running(blocked(apply.Waiting), counts(0, 0, 0)), v1.ReasonStarting, phasePending, "Service x",
		},
		"a Job was just made": {
			running(blocked(apply.Waiting), held(v1.ReasonMigrating)), v1.ReasonMigrating, phaseMigrating, "because",
		},
		"the cluster can't be written to": {
			running(func(s *scope) { s.failure = errors.New("no answer") }), v1.ReasonRetrying,
			phaseDegraded, "no answer",
		},
		"a migration runs": {
			running(held(v1.ReasonMigrating)), v1.ReasonMigrating, phaseMigrating,
			"because; meanwhile 3 Pods of nginx:1.25 serve",
		},
		"the first migration waits for a database": {
			running(held(v1.ReasonDatabaseNotReady), counts(0, 0, 0)),
			v1.ReasonDatabaseNotReady, phasePending, "because",
		},
		"a migration waits for its database": {
			running(held(v1.ReasonDatabaseNotReady)), v1.ReasonDatabaseNotReady, phaseMigrating, "",
		},
		"a migration has failed": {
			running(held(v1.ReasonMigrationFailed)),
			v1.ReasonMigrationFailed, phaseDegraded, "because; meanwhile 3 Pods",
		},
		"the first migration has failed": {
			running(held(v1.ReasonMigrationFailed), counts(0, 0, 0)), v1.ReasonMigrationFailed, phaseFailed, "because",
		},
		"its configuration has gone": {
			running(held(v1.ReasonConfigNotFound)), v1.ReasonConfigNotFound, phaseDegraded, "meanwhile",
		},
		"it is being deleted": {
			running(func(s *scope) { s.app.DeletionTimestamp = &metav1.Time{} }), v1.ReasonDeleting, phaseDeleting, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			status := c.scope.status()
			ready := status.Conditions[len(status.Conditions)-1]
			if ready.Reason != c.reason || status.Phase != c.phase || !strings.Contains(ready.Message, c.words) {
				t.Errorf("%s, %s: %s; want %s, %s with %q",
					status.Phase, ready.Reason, ready.Message, c.phase, c.reason, c.words)
			}
			if want := c.reason == v1.ReasonReady ||
				c.reason == v1.ReasonStopped; (ready.Status == metav1.ConditionTrue) != want {
				t.Errorf("Ready is %s", ready.Status)
			}
		})
	}
}

func quota(s *scope) {
	s.seen.deployment.Status.Conditions = append(s.seen.deployment.Status.Conditions,
		appsv1.DeploymentCondition{
			Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Message: "exceeded quota",
		})
}

// What a reconcile could not see is not reported as gone.
func TestAReconcileThatSawNothingChangesNothingButWhy(t *testing.T) {
	s := running()
	s.app.Status = running().status()
	s.app.Status.Leader = "x-0"
	s.decision, s.seen, s.failure = Decision{}, observed{}, errors.New("the API server is away")
	status := s.status()
	if status.ReadyReplicas != 3 || status.Leader != "x-0" || status.Image != "nginx:1.25" || status.Deployed == nil {
		t.Errorf("it says %+v", status)
	}
	if status.Conditions[0].Reason != v1.ReasonRetrying {
		t.Errorf("it says %+v", status.Conditions)
	}
}

func TestHowAMigrationHasFailedIsToldWithItsLastWords(t *testing.T) {
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "x-migrate-0", UID: "j"}}
	with := func(modify func(*corev1.Pod)) *scope {
		pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{
			*metav1.NewControllerRef(job, batchv1.SchemeGroupVersion.WithKind("Job")),
		}}}
		modify(&pod)
		return &scope{seen: observed{migrationPods: []corev1.Pod{pod}}}
	}
	ended := func(code int32, reason, message string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{
				Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: reason, Message: message}}}}
		}
	}
	backoff := &batchv1.JobCondition{Reason: batchv1.JobReasonBackoffLimitExceeded, Message: "the limit"}
	for name, c := range map[string]struct {
		scope     *scope
		condition *batchv1.JobCondition
		want      string
	}{
		"it ended with an error": {
			with(ended(1, "Error", "line 1\nno table guests\n")), backoff,
			"Job x-migrate-0 has failed with exit code 1: line 1\nno table guests",
		},
		"it was killed": {
			with(ended(137, "OOMKilled", "")), backoff, "Job x-migrate-0 has failed with exit code 137 (OOMKilled)",
		},
		"its Pod is gone": {
			&scope{}, backoff, "the Pod of Job x-migrate-0 was removed before it had ended (the limit)",
		},
		"it hung": {
			with(func(p *corev1.Pod) {
				ended(143, "Error", "waits for a lock")(p)
				p.Status.Reason = "DeadlineExceeded"
			}), backoff,
			"Job x-migrate-0 took longer than migration.deadline and was stopped with exit code 143: waits for a lock",
		},
		"no node took it": {
			&scope{}, &batchv1.JobCondition{Reason: batchv1.JobReasonDeadlineExceeded},
			"Job x-migrate-0 took longer than migration.deadline and was stopped",
		},
		"it was evicted": {
			with(func(p *corev1.Pod) { p.Status.Message = "the node was low on memory" }), backoff,
			"Job x-migrate-0 has failed: the node was low on memory",
		},
		"it says nothing": {with(func(*corev1.Pod) {}), backoff, "Job x-migrate-0 has failed"},
	} {
		t.Run(name, func(t *testing.T) {
			failed := job.DeepCopy()
			c.condition.Type, c.condition.Status = batchv1.JobFailed, corev1.ConditionTrue
			failed.Status.Conditions = []batchv1.JobCondition{*c.condition}
			if got := whyFailed(jobs.Of(failed, c.scope.seen.migrationPods)); got != c.want {
				t.Errorf("it says %q\nwant    %q", got, c.want)
			}
		})
	}
	if got := end(strings.Repeat("a", 5000) + "the end"); len(got) > 1600 || !strings.HasSuffix(got, "the end") {
		t.Errorf("of a long text %d bytes are kept: %s", len(got), got[:20])
	}
}
