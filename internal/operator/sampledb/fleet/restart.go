package fleet

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/desired"
	"toban.dev/internal/operator/sampledb/world"
)

// restartRequest is what a decision about a restart that a user asks for is made of.
type restartRequest struct {
	// asked is naming.RestartAll, or the instance whose server is to restart; "" when nobody asks.
	asked string
	// noted is what is on record of it, nil for nothing.
	noted *v1.RestartStatus
	// members are the wanted instances.
	members []string
	// runs is the run that each server is in, of the instances whose agents have answered; "" where the agent does not
	// say so. ready are those that do what their role asks.
	runs  map[string]string
	ready map[string]bool
}

// next is what is to be on record of the request: before a server is asked to restart, in which run it is, so that it
// is restarted once, also if the operator ends in between. A server whose agent does not answer is not known to have
// restarted.
func (q restartRequest) next() *v1.RestartStatus {
	switch {
	case q.asked == "" && !q.noted.Ended():
		return nil // nobody asks, or not any more
	case q.asked == "":
		return q.noted
	case q.asked != naming.RestartAll && !slices.Contains(q.members, q.asked):
		return q.refuse(fmt.Sprintf("there is no instance %s: there are %s", q.asked, strings.Join(q.members, ", ")))
	case q.noted == nil || q.noted.Asked != q.asked || q.noted.Step != v1.RestartRestarting:
		return q.note()
	}
	return q.goOn()
}

func (q restartRequest) refuse(sentence string) *v1.RestartStatus {
	return &v1.RestartStatus{Step: v1.RestartRefused, Asked: q.asked, Message: sentence}
}

// note puts the runs on record that are to end.
func (q restartRequest) note() *v1.RestartStatus {
	out := &v1.RestartStatus{Step: v1.RestartRestarting, Asked: q.asked}
	for _, name := range q.members {
		if q.asked != naming.RestartAll && q.asked != name {
			continue
		}
		run := q.runs[name]
		switch {
		case run == "" && q.ready[name]:
			return q.refuse(fmt.Sprintf("the agent of %s is of an earlier release, which does not say when its server "+
				"was started: replace the agents first (annotation %s)", name, world.RequestReplaceAgents))
		case run == "":
			return &v1.RestartStatus{Step: v1.RestartWaiting, Asked: q.asked,
				Message: "waits until the server of " + name + " answers"}
		}
		out.Left = append(out.Left, v1.ServerRun{Instance: name, Run: run})
	}
	out.Message = "to restart: " + restartNames(out.Left)
	return out
}

// goOn takes those off the record that have restarted, or that are no instances any more.
func (q restartRequest) goOn() *v1.RestartStatus {
	out := q.noted.DeepCopy()
	out.Left = slices.DeleteFunc(out.Left, func(l v1.ServerRun) bool {
		now, known := q.runs[l.Instance]
		return !slices.Contains(q.members, l.Instance) || known && now != "" && now != l.Run
	})
	out.Message = "to restart: " + restartNames(out.Left)
	if len(out.Left) == 0 {
		out.Step, out.Left, out.Message = v1.RestartRestarted, nil, "every server was restarted"
		if q.asked != naming.RestartAll {
			out.Message = "the server of " + q.asked + " was restarted"
		}
	}
	return out
}

func restartNames(left []v1.ServerRun) string {
	var names []string
	for _, l := range left {
		names = append(names, l.Instance)
	}
	return strings.Join(names, ", ")
}

// restartRequest is what the annotation, the status and the agents say of it.
func (s *fleetTopic) restartRequest() restartRequest {
	q := restartRequest{
		asked: s.Asked(world.RequestRestart), noted: s.DB.Status.Restart,
		runs: map[string]string{}, ready: map[string]bool{},
	}
	for _, m := range s.Config.Members {
		q.members = append(q.members, m.Name)
		if answer, known := s.Seen.Answers[m.Name]; known {
			q.runs[m.Name], q.ready[m.Name] = answer.Started, answer.Ready
		}
	}
	return q
}

// ApplyRestart keeps the record of a restart that a user asks for. Which server restarts when is decided with all other
// restarts.
func (s *fleetTopic) ApplyRestart(ctx context.Context) error {
	before := s.DB.Status.Restart
	s.Restart = s.restartRequest().next()
	if s.Restart == nil || before == s.Restart {
		return nil
	}
	at := metav1.NewTime(s.Now).Rfc3339Copy()
	s.Restart.StartedAt = &at
	if before != nil && before.Asked == s.Restart.Asked && !before.Ended() {
		s.Restart.StartedAt = before.StartedAt
	}
	if !s.Restart.Ended() {
		return nil
	}
	s.Restart.CompletedAt = &at
	if err := s.Settle(ctx, world.RequestRestart); err != nil {
		s.Restart = before // a record that has ended beside a request that is there would begin it anew
		return err
	}
	kind, reason := corev1.EventTypeNormal, world.EventRestarted
	if s.Restart.Step == v1.RestartRefused {
		kind, reason = corev1.EventTypeWarning, world.EventRestartRefused
	}
	s.QueuedEvents = append(s.QueuedEvents, world.Event{Kind: kind, Reason: reason, Message: s.Restart.Message})
	return nil
}

// ApplyRestarts decides which instance restarts now, and does it.
func (s *fleetTopic) ApplyRestarts(ctx context.Context) error {
	if s.Stop.Closed() {
		return nil // all of them are about to stop
	}
	s.Decision = decide(s.Fleet())
	s.Metrics.Decided(string(s.Decision.Action), s.Decision.Reason)
	ordinal, _ := naming.Ordinal(s.Decision.Target)
	pod := s.Seen.Pods[ordinal]
	if pod == nil {
		return nil
	}
	switch s.Decision.Action {
	case world.ActionReplace:
		return s.Replace(ctx, pod, s.Decision.Message)
	case world.ActionRestart:
		return s.RestartServer(ctx, pod, s.Decision.Message)
	case world.ActionResize:
		return s.resize(ctx, pod, s.Decision.Message)
	case world.ActionNone, world.ActionWait:
	}
	return nil
}

// resize gives a Pod its resources while it runs. Where the API server can't do that, the Pod is replaced.
func (s *fleetTopic) resize(ctx context.Context, pod *corev1.Pod, why string) error {
	resources, _ := desired.ResizesInPlace(s.DB, pod, []string{desired.FacetResources})
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"containers": []any{
		map[string]any{"name": naming.ContainerPostgreSQL, "resources": resources},
	}}})
	if err != nil {
		return fmt.Errorf("write the resources of Pod %s: %w", pod.Name, err)
	}
	err = s.Client.SubResource("resize").Patch(ctx, pod.DeepCopy(),
		client.RawPatch(types.StrategicMergePatchType, patch))
	switch {
	case apierrors.IsNotFound(err), apierrors.IsMethodNotSupported(err), apierrors.IsInvalid(err):
		return s.Replace(ctx, pod, why) // before Kubernetes 1.33, or a Pod that this does not suit
	case apierrors.IsForbidden(err): // its node is too small, or a quota has no more
		return &world.Problem{Reason: v1.ReasonPodRefused,
			Message: fmt.Sprintf("Pod %s goes on with the resources that it has, for it can't "+
				"get others: %v. If another node has them, delete the Pod: it starts there", pod.Name, err),
			Wait: world.WaitUser}
	case err != nil:
		return fmt.Errorf("resize Pod %s: %w", pod.Name, err)
	}
	marked := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`,
		naming.AnnotationFacets, desired.FacetsResized(s.DB, pod))
	if err := s.Client.Patch(ctx, pod.DeepCopy(), client.RawPatch(types.MergePatchType, marked)); err != nil {
		return fmt.Errorf("annotate Pod %s: %w", pod.Name, err)
	}
	s.AddEvent(world.EventPodResized, fmt.Sprintf("Pod %s, while it runs: %s", pod.Name, why))
	return nil
}
