package world

import (
	"context"
	"errors"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/apply"
	"toban.dev/internal/operator/jobs"
)

// Waits after problems. Most end earlier, by a change that is watched.
const (
	WaitUser = 30 * time.Second
	WaitGone = time.Second
)

// Apply is the one way to write an object of a SampleDB.
func (h *Effects) Apply(ctx context.Context, db *v1.SampleDB, want client.Object) error {
	return asProblem(h.Writer().Apply(ctx, owner(db), want))
}

// Create makes an object that nobody changes afterwards.
func (h *Effects) Create(ctx context.Context, db *v1.SampleDB, want client.Object) error {
	return asProblem(h.Writer().Create(ctx, owner(db), want))
}

// Writer writes objects of SampleDBs.
func (h *Effects) Writer() apply.Writer { return apply.Writer{Client: h.Client, Reader: h.Reader} }

// owner is the SampleDB as the owner of its objects. A volume claim may outlive it,
// and then belongs to the next one of the name.
func owner(db *v1.SampleDB) apply.Owner {
	return apply.Owner{Object: db, Kind: "SampleDB", Adopts: func(object metav1.Object) bool {
		labels := object.GetLabels()
		return isClaim(object) && metav1.GetControllerOf(object) == nil &&
			labels[naming.LabelManagedBy] == naming.ManagedBy && labels[naming.LabelSampleDB] == db.Name
	}}
}

func isClaim(object metav1.Object) bool {
	switch o := object.(type) {
	case *corev1.PersistentVolumeClaim:
		return true
	case *metav1.PartialObjectMetadata:
		return o.Kind == "PersistentVolumeClaim"
	}
	return false
}

// Ours says that an object belongs to the SampleDB.
func Ours(object metav1.Object, db *v1.SampleDB) bool { return owner(db).Has(object) }

// MayWrite is nil when the object is the SampleDB's and lives.
func MayWrite(have metav1.Object, db *v1.SampleDB, kind string) error {
	return asProblem(apply.MayWrite(have, owner(db), kind))
}

// Refused tells a new object that the API server will never take from one that it could not take now.
func Refused(err error, kind, name string) error {
	return asProblem(apply.RefusedBy(err, "create", kind, name))
}

// asProblem makes an object that could not be written the reason of the condition Ready.
func asProblem(err error) error {
	var p *apply.Problem
	if !errors.As(err, &p) {
		return err
	}
	switch p.Cause {
	case apply.Taken:
		return &Problem{v1.ReasonNameTaken, p.Message, WaitUser}
	case apply.Refused:
		return &Problem{v1.ReasonInvalidSpec, p.Message, WaitUser}
	case apply.Waiting:
	}
	return &Problem{v1.ReasonCreating, p.Message, WaitGone}
}

// Jobs keeps Jobs of SampleDBs.
func (h *Effects) Jobs() jobs.Runner { return jobs.Runner{Client: h.Client, Reader: h.Reader} }

// KeepJob is the component's Job of this name that lives, nil where there is none. Its others are removed: those of a
// former spec.
func (s *Act) KeepJob(ctx context.Context, component, name string) (*batchv1.Job, error) {
	var all []batchv1.Job
	for _, job := range s.Seen.Jobs {
		if job.Labels[naming.LabelComponent] == component {
			all = append(all, job)
		}
	}
	current, _, err := s.Jobs().Keep(ctx, all, s.DB, name)
	return current, err
}

// RemoveJobs removes those of the SampleDB's Jobs that are to go.
func (s *Act) RemoveJobs(ctx context.Context, goes func(*batchv1.Job) bool) error {
	for i := range s.Seen.Jobs {
		job := &s.Seen.Jobs[i]
		if !metav1.IsControlledBy(job, s.DB) || !goes(job) {
			continue
		}
		if err := s.Jobs().Remove(ctx, job); err != nil {
			return err
		}
	}
	return nil
}

// Replace deletes a Pod, so that the StatefulSet makes it anew, and says why.
func (s *Act) Replace(ctx context.Context, pod *corev1.Pod, why string) error {
	err := s.Client.Delete(ctx, pod, client.Preconditions{UID: &pod.UID})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // another Pod has its name by now
	}
	if err != nil {
		return fmt.Errorf("delete Pod %s to replace it: %w", pod.Name, err)
	}
	s.AddEvent(eventReplacing, fmt.Sprintf("Pod %s: %s", pod.Name, why))
	return nil
}

// RestartServer asks the agent in a Pod to restart its server, and says why.
func (s *Act) RestartServer(ctx context.Context, pod *corev1.Pod, why string) error {
	ctx, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	if err := s.Agents.Restart(ctx, s.DB.UID, pod.Status.PodIP, s.Config, why); err != nil {
		return fmt.Errorf("ask %s to restart its server: %w", pod.Name, err)
	}
	s.AddEvent(eventRestarting, fmt.Sprintf("server of %s: %s", pod.Name, why))
	return nil
}

// DeleteObject deletes an object, and in the background what belongs to it.
func (h *Effects) DeleteObject(ctx context.Context, object client.Object) error {
	uid := object.GetUID()
	err := h.Client.Delete(ctx, object, client.PropagationPolicy(metav1.DeletePropagationBackground),
		client.Preconditions{UID: &uid})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("delete %T %s: %w", object, object.GetName(), err)
	}
	return nil
}
