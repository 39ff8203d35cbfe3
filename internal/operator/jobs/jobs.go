// Package jobs is the one way in which the controllers run Jobs: it finds one, makes and removes it, says how it is,
// and what its Pods have left. It must not know what a Job is for.
package jobs

import (
	"context"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"toban.dev/internal/naming"
)

// Runner finds, makes and removes Jobs. Both fields must be set.
type Runner struct {
	// Client reads from the cache, which has our own objects only, and writes.
	Client client.Client
	// Reader reads past the cache.
	Reader client.Reader
}

// Find reads a Job past the cache, nil where there is none: one that was created a moment ago must be seen, and one of
// the name that is not ours is in no cache.
func (r Runner) Find(ctx context.Context, key types.NamespacedName) (*batchv1.Job, error) {
	job := &batchv1.Job{}
	err := r.Reader.Get(ctx, key, job)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // there is none, and that is no error
	}
	if err != nil {
		return nil, fmt.Errorf("read Job %s: %w", key.Name, err)
	}
	return job, nil
}

// FindCached is Find in the cache, for one that most likely does not exist yet: whoever waits asks nobody else.
func (r Runner) FindCached(ctx context.Context, key types.NamespacedName) (*batchv1.Job, error) {
	return Runner{Client: r.Client, Reader: r.Client}.Find(ctx, key)
}

// Create makes a Job. One of the name that is there already is seen the next time.
func (r Runner) Create(ctx context.Context, job *batchv1.Job) error {
	err := r.Client.Create(ctx, job, client.FieldOwner(naming.FieldOwner))
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create Job %s: %w", job.Name, err)
	}
	return nil
}

// Remove deletes this very Job with its Pods, where it is not being deleted already. It is gone before they are.
func (r Runner) Remove(ctx context.Context, job *batchv1.Job) error {
	return r.remove(ctx, job, metav1.DeletePropagationBackground)
}

// RemoveAfterPods deletes this very Job when its Pods are gone, for whom nothing may run beside them.
func (r Runner) RemoveAfterPods(ctx context.Context, job *batchv1.Job) error {
	return r.remove(ctx, job, metav1.DeletePropagationForeground)
}

func (r Runner) remove(ctx context.Context, job *batchv1.Job, policy metav1.DeletionPropagation) error {
	if job.DeletionTimestamp != nil {
		return nil
	}
	err := r.Client.Delete(ctx, job, client.PropagationPolicy(policy), client.Preconditions{UID: &job.UID})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete Job %s: %w", job.Name, err)
	}
	return nil
}

// Keep is the Job of a name among those of an owner, and whether one of that name is still being deleted. The owner's
// others are removed: they are of a former spec.
func (r Runner) Keep(
	ctx context.Context, all []batchv1.Job, owner metav1.Object, name string,
) (current *batchv1.Job, ending bool, err error) {
	for i := range all {
		job := &all[i]
		switch {
		case !metav1.IsControlledBy(job, owner):
		case job.Name == name && job.DeletionTimestamp != nil:
			ending = true
		case job.Name == name:
			current = job
		default:
			if err := r.Remove(ctx, job); err != nil {
				return nil, false, err
			}
		}
	}
	return current, ending, nil
}

// OfPod is the name of the Job that a Pod of a component works for.
func OfPod(pod client.Object, component string) (name string, ok bool) {
	owner := metav1.GetControllerOf(pod)
	if owner == nil || owner.Kind != "Job" || pod.GetLabels()[naming.LabelComponent] != component {
		return "", false
	}
	return owner.Name, true
}
