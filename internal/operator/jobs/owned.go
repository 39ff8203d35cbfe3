package jobs

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"toban.dev/internal/operator/index"
)

// Kept is for how long the Job of what is over stays, for its log. Its scratch volume stays with it.
const Kept = 10 * time.Minute

// Look finds an owner's Job of a name with its Pods, which have these labels, and says whether the Job is somebody
// else's. Without a Job the Run is empty.
func (r Runner) Look(
	ctx context.Context, owner client.Object, name string, labels map[string]string,
) (run Run, foreign bool, err error) {
	job, err := r.Find(ctx, types.NamespacedName{Namespace: owner.GetNamespace(), Name: name})
	if job == nil || err != nil {
		return Run{}, false, err
	}
	all, err := index.Pods(ctx, r.Client, owner.GetNamespace(), labels)
	if err != nil {
		return Run{}, false, err
	}
	return Of(job, all), !metav1.IsControlledBy(job, owner), nil
}

// Tidy removes an owner's Job of a name a while after the owner was over, and returns how long that is still. By itself
// the Job does not go: while nobody has seen how it has ended, another one would be made.
func (r Runner) Tidy(
	ctx context.Context, owner client.Object, name string, over, now time.Time,
) (left time.Duration, err error) {
	if left := over.Add(Kept).Sub(now); left > 0 {
		return left, nil
	}
	job, err := r.Find(ctx, types.NamespacedName{Namespace: owner.GetNamespace(), Name: name})
	if job == nil || err != nil || !metav1.IsControlledBy(job, owner) {
		return 0, err
	}
	return 0, r.Remove(ctx, job)
}

// Owners finds the object that a Pod of a component works for, by the name of its Job.
func Owners(component string, ownerOf func(job string) (name string, ok bool)) handler.MapFunc {
	return func(_ context.Context, pod client.Object) []reconcile.Request {
		job, ok := OfPod(pod, component)
		if !ok {
			return nil
		}
		name, ok := ownerOf(job)
		if !ok {
			return nil
		}
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: pod.GetNamespace(), Name: name}}}
	}
}
