package fleet

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/desired"
	"toban.dev/internal/operator/sampledb/world"
)

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
