package myapp

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"toban.dev/internal/naming"
	"toban.dev/internal/operator/desired/myapp"
	"toban.dev/internal/operator/pods"
)

// candidate is a Pod that may lead.
type candidate struct {
	name string
	// ready says that it serves and is not about to go, leads that it bears the label, current that it is
	// not about to be replaced.
	ready, leads, current bool
	created               time.Time
}

// lead chooses who leads, "" where nobody can. It is pure. Who leads stays as long as it is ready: each change costs
// the application something. Of the others it is one that will not be replaced soon, and of these the oldest.
func lead(candidates []candidate) string {
	ready := slices.DeleteFunc(slices.Clone(candidates), func(c candidate) bool { return !c.ready })
	if len(ready) == 0 {
		return ""
	}
	first := slices.MinFunc(ready, func(a, b candidate) int {
		return cmp.Or(later(a.leads, b.leads), later(a.current, b.current), a.created.Compare(b.created),
			strings.Compare(a.name, b.name))
	})
	return first.name
}

// later orders what is true before what is not.
func later(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

// applyLeader lets one Pod bear the label. It is given only after it was taken from all others: the Service may lead to
// nobody for a moment, and never to two.
func (r *Reconciler) applyLeader(ctx context.Context, s *scope) error {
	service := myapp.LeaderService(s.app)
	chosen := ""
	if s.app.Spec.Leader {
		if err := r.writer().Apply(ctx, s.owner(), service); err != nil {
			return err
		}
		chosen = lead(s.candidates())
	} else if err := r.writer().Remove(ctx, s.owner(), service); err != nil {
		return err
	}
	var next *corev1.Pod
	for i := range s.seen.pods {
		switch pod := &s.seen.pods[i]; {
		case pod.Name == chosen:
			next = pod
		case leads(pod):
			if err := r.label(ctx, pod, nil); err != nil {
				return err
			}
		}
	}
	if next != nil && !leads(next) {
		if err := r.handOver(ctx, s, next); err != nil {
			return err
		}
	}
	s.leader = chosen
	return nil
}

// handOver gives a Pod the label, after it has looked past the cache whether another one bears it.
func (r *Reconciler) handOver(ctx context.Context, s *scope, next *corev1.Pod) error {
	var bearers corev1.PodList
	if err := r.Reader.List(ctx, &bearers, client.InNamespace(s.app.Namespace),
		client.MatchingLabels(naming.LeaderSelector(s.app.Name))); err != nil {
		return fmt.Errorf("list who leads: %w", err)
	}
	for i := range bearers.Items {
		if pod := &bearers.Items[i]; pod.Name != next.Name {
			if err := r.label(ctx, pod, nil); err != nil {
				return err
			}
		}
	}
	return r.label(ctx, next, &s.app.Name)
}

// label sets the label of a Pod, or with nil takes it off, and changes nothing else. That the Pod is still the same is
// part of it; that it is gone is as good as being without.
func (r *Reconciler) label(ctx context.Context, pod *corev1.Pod, value *string) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": pod.UID, "labels": map[string]*string{naming.LabelLeaderOf: value},
	}})
	if err != nil {
		return fmt.Errorf("encode the label of %s: %w", pod.Name, err)
	}
	err = r.Client.Patch(ctx, pod.DeepCopy(), client.RawPatch(types.MergePatchType, patch),
		client.FieldOwner(naming.FieldOwner))
	if value == nil {
		err = client.IgnoreNotFound(err)
	}
	if err != nil {
		return fmt.Errorf("label Pod %s: %w", pod.Name, err)
	}
	return nil
}

func leads(pod *corev1.Pod) bool { _, is := pod.Labels[naming.LabelLeaderOf]; return is }

func (s *scope) candidates() []candidate {
	current := s.annotated(naming.AnnotationTemplate)
	var out []candidate
	for i := range s.seen.pods {
		pod := &s.seen.pods[i]
		out = append(out, candidate{
			name: pod.Name, ready: ready(pod), leads: leads(pod), created: pod.CreationTimestamp.Time,
			current: current == "" || pod.Annotations[naming.AnnotationTemplate] == current,
		})
	}
	return out
}

// ready says that a Pod serves and is not about to go.
func ready(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && pods.Ready(pod)
}
