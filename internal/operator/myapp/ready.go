package myapp

import (
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/myapp/v1"
	"toban.dev/internal/operator/apply"
	"toban.dev/internal/operator/pods"
)

// verdict is what a condition says.
type verdict struct {
	status  metav1.ConditionStatus
	reason  string
	message string
}

func yes(reason, message string) verdict { return verdict{metav1.ConditionTrue, reason, message} }
func no(reason, message string) verdict  { return verdict{metav1.ConditionFalse, reason, message} }

// ready is true when all wanted Pods serve and are as the spec wants them. The first check that fails is the reason.
func (s *scope) ready() verdict {
	for _, check := range []func(*scope) *verdict{
		notDeleting, notFailing, notBlocked, notHeld, isApplied, mayMakePods, noTrouble, allReplaced, allServe,
	} {
		if failed := check(s); failed != nil {
			return *failed
		}
	}
	wanted := s.replicas()
	if wanted == 0 {
		return yes(v1.ReasonStopped, "no Pod runs, because spec.replicas is 0")
	}
	return yes(v1.ReasonReady, fmt.Sprintf("%s serves with %s", s.running(), count(wanted)))
}

func count(replicas int32) string {
	if replicas == 1 {
		return "1 Pod"
	}
	return fmt.Sprintf("%d Pods", replicas)
}

func failed(reason, message string) *verdict {
	v := no(reason, message)
	return &v
}

func notDeleting(s *scope) *verdict {
	if s.app.DeletionTimestamp == nil {
		return nil
	}
	return failed(v1.ReasonDeleting, "the MyApp is being deleted, and its objects with it")
}

func notFailing(s *scope) *verdict {
	if s.failure == nil {
		return nil
	}
	return failed(v1.ReasonRetrying, "it is tried again: "+s.failure.Error())
}

func notBlocked(s *scope) *verdict {
	if s.problem == nil {
		return nil
	}
	switch s.problem.Cause {
	case apply.Taken:
		return failed(v1.ReasonNameTaken, s.problem.Message)
	case apply.Refused:
		return failed(v1.ReasonInvalidSpec, s.problem.Message)
	case apply.Waiting:
	}
	switch {
	case s.decision.Action != ActionRoll:
		return nil // it is a matter of a moment, and there is more to say
	case s.serving() == 0:
		return failed(v1.ReasonStarting, s.problem.Message)
	}
	return failed(v1.ReasonUpdating, s.problem.Message)
}

// notHeld fails while an update is held back, and tells what serves meanwhile.
func notHeld(s *scope) *verdict {
	if s.decision.Action == ActionRoll {
		return nil
	}
	return failed(s.decision.Reason, s.decision.Message+s.meanwhile())
}

// meanwhile says what serves although something is not as it should be.
func (s *scope) meanwhile() string {
	of := ""
	if images := s.images(); len(images) > 0 {
		of = " of " + strings.Join(images, " and ")
	}
	switch n := s.serving(); n {
	case 0:
		return ""
	case 1:
		return fmt.Sprintf("; meanwhile 1 Pod%s serves", of)
	default:
		return fmt.Sprintf("; meanwhile %d Pods%s serve", n, of)
	}
}

// images are those of the Pods that serve.
func (s *scope) images() []string {
	var out []string
	for i := range s.seen.pods {
		if pod := &s.seen.pods[i]; ready(pod) && !slices.Contains(out, pod.Spec.Containers[0].Image) {
			out = append(out, pod.Spec.Containers[0].Image)
		}
	}
	slices.Sort(out)
	return out
}

func (s *scope) serving() int32 {
	if s.seen.deployment == nil {
		return 0
	}
	return s.seen.deployment.Status.ReadyReplicas
}

// isApplied fails until what was seen is what was written.
func isApplied(s *scope) *verdict {
	switch {
	case s.current():
		return nil
	case s.serving() == 0:
		return failed(v1.ReasonStarting, "the Pods are being started")
	}
	return failed(v1.ReasonUpdating, "the Deployment is being changed"+s.meanwhile())
}

// mayMakePods fails where the cluster lets the Deployment make no Pods.
func mayMakePods(s *scope) *verdict {
	if c := s.progress(appsv1.DeploymentReplicaFailure); c != nil && c.Status == corev1.ConditionTrue {
		return failed(v1.ReasonInvalidSpec, "the cluster refuses the Pods: "+c.Message+s.meanwhile())
	}
	if s.seen.deployment.Spec.Paused {
		return failed(v1.ReasonUpdating,
			fmt.Sprintf("somebody has paused the Deployment: kubectl rollout resume deployment/%s%s",
				s.seen.deployment.Name, s.meanwhile()))
	}
	return nil
}

func (s *scope) progress(kind appsv1.DeploymentConditionType) *appsv1.DeploymentCondition {
	for i := range s.seen.deployment.Status.Conditions {
		if c := &s.seen.deployment.Status.Conditions[i]; c.Type == kind {
			return c
		}
	}
	return nil
}

// noTrouble fails where something keeps a Pod from running.
func noTrouble(s *scope) *verdict {
	reasons := map[pods.Cause]string{
		pods.Unschedulable: v1.ReasonUnschedulable, pods.Image: v1.ReasonImageUnusable,
		pods.Config: v1.ReasonConfigNotFound, pods.Crashing: v1.ReasonCrashing,
	}
	for _, pod := range s.unready() {
		if t := pods.TroubleOf(pod); t != nil {
			return failed(reasons[t.Cause], t.Message+s.meanwhile())
		}
	}
	return nil
}

// unready are the Pods that do not serve and are not about to go, in the order of their names.
func (s *scope) unready() []*corev1.Pod {
	var out []*corev1.Pod
	for i := range s.seen.pods {
		if pod := &s.seen.pods[i]; pod.DeletionTimestamp == nil && !ready(pod) {
			out = append(out, pod)
		}
	}
	slices.SortFunc(out, func(a, b *corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// allReplaced fails while there are Pods that are not as the spec wants them, or too many.
func allReplaced(s *scope) *verdict {
	d, wanted := s.seen.deployment.Status, s.replicas()
	switch {
	case d.UpdatedReplicas >= wanted && d.Replicas <= wanted:
		return nil
	case d.UpdatedReplicas == d.Replicas && d.Replicas > wanted:
		return failed(v1.ReasonScaling,
			fmt.Sprintf("Pods are being removed: %d are there, %d wanted", d.Replicas, wanted))
	case s.serving() == 0:
		return failed(v1.ReasonStarting, fmt.Sprintf("the Pods are being started: %d of %d are there",
			d.UpdatedReplicas, wanted))
	case d.UpdatedReplicas == d.Replicas:
		return failed(v1.ReasonScaling, fmt.Sprintf("Pods are being added: %d of %d are there", d.Replicas, wanted))
	}
	return failed(v1.ReasonUpdating, fmt.Sprintf("Pods are being replaced: %d of %d are new%s",
		d.UpdatedReplicas, wanted, s.meanwhile()))
}

// allServe fails while fewer Pods serve than are wanted.
func allServe(s *scope) *verdict {
	wanted := s.replicas()
	if s.serving() >= wanted {
		return nil
	}
	unready := s.unready()
	begun := slices.ContainsFunc(unready, begun)
	sentence := fmt.Sprintf("%d of %d Pods serve", s.serving(), wanted)
	switch {
	case !begun && s.serving() == 0:
		return failed(v1.ReasonStarting, "the Pods are being started")
	case !begun:
		return failed(v1.ReasonScaling, sentence+"; the others are being started")
	}
	for _, pod := range unready {
		sentence += fmt.Sprintf("; %s runs, but is not ready", pod.Name)
	}
	if s.serving() == 0 && !s.completed() {
		return failed(v1.ReasonStarting, sentence)
	}
	return failed(v1.ReasonPodsUnready, sentence)
}

// begun says that a Pod's container runs: what it waits for is itself.
func begun(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.ContainerStatuses,
		func(c corev1.ContainerStatus) bool { return c.State.Running != nil })
}

// completed says that the Deployment has once had all of its present Pods, or has given up waiting for them.
func (s *scope) completed() bool {
	c := s.progress(appsv1.DeploymentProgressing)
	return c != nil && (c.Reason == "NewReplicaSetAvailable" || c.Status == corev1.ConditionFalse)
}
