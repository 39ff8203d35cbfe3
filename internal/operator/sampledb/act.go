package sampledb

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/apply"
	"toban.dev/internal/operator/desired"
	"toban.dev/internal/operator/jobs"
)

// Waits after problems. Most end earlier, by a change that is watched.
const (
	waitUser = 30 * time.Second
	waitGone = time.Second
)

// apply is the one way to write an object of a SampleDB.
func (h *effects) apply(ctx context.Context, db *v1.SampleDB, want client.Object) error {
	return asProblem(h.writer().Apply(ctx, owner(db), want))
}

// create makes an object that nobody changes afterwards.
func (h *effects) create(ctx context.Context, db *v1.SampleDB, want client.Object) error {
	return asProblem(h.writer().Create(ctx, owner(db), want))
}

// writer writes objects of SampleDBs.
func (h *effects) writer() apply.Writer { return apply.Writer{Client: h.Client, Reader: h.Reader} }

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

// ours says that an object belongs to the SampleDB.
func ours(object metav1.Object, db *v1.SampleDB) bool { return owner(db).Has(object) }

// mayWrite is nil when the object is the SampleDB's and lives.
func mayWrite(have metav1.Object, db *v1.SampleDB, kind string) error {
	return asProblem(apply.MayWrite(have, owner(db), kind))
}

// refused tells a new object that the API server will never take from one that it could not take now.
func refused(err error, kind, name string) error {
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
		return &problem{v1.ReasonNameTaken, p.Message, waitUser}
	case apply.Refused:
		return &problem{v1.ReasonInvalidSpec, p.Message, waitUser}
	case apply.Waiting:
	}
	return &problem{v1.ReasonCreating, p.Message, waitGone}
}

// jobs keeps Jobs of SampleDBs.
func (h *effects) jobs() jobs.Runner { return jobs.Runner{Client: h.Client, Reader: h.Reader} }

// keepJob is the component's Job of this name that lives, nil where there is none. Its others are removed: those of a
// former spec.
func (s *act) keepJob(ctx context.Context, component, name string) (*batchv1.Job, error) {
	var all []batchv1.Job
	for _, job := range s.seen.jobs {
		if job.Labels[naming.LabelComponent] == component {
			all = append(all, job)
		}
	}
	current, _, err := s.jobs().Keep(ctx, all, s.db, name)
	return current, err
}

// applyRestarts decides which instance restarts now, and does it.
func (s *fleetTopic) applyRestarts(ctx context.Context) error {
	if s.stop.Closed() {
		return nil // all of them are about to stop
	}
	s.decision = decide(s.fleet())
	s.Metrics.Decided(string(s.decision.action), s.decision.reason)
	ordinal, _ := naming.Ordinal(s.decision.target)
	pod := s.seen.pods[ordinal]
	if pod == nil {
		return nil
	}
	switch s.decision.action {
	case actionReplace:
		return s.replace(ctx, pod, s.decision.message)
	case actionRestart:
		return s.restartServer(ctx, pod, s.decision.message)
	case actionResize:
		return s.resize(ctx, pod, s.decision.message)
	case actionNone, actionWait:
	}
	return nil
}

// resize gives a Pod its resources while it runs. Where the API server can't do that, the Pod is replaced.
func (s *fleetTopic) resize(ctx context.Context, pod *corev1.Pod, why string) error {
	resources, _ := desired.ResizesInPlace(s.db, pod, []string{desired.FacetResources})
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
		return s.replace(ctx, pod, why) // before Kubernetes 1.33, or a Pod that this does not suit
	case apierrors.IsForbidden(err): // its node is too small, or a quota has no more
		return &problem{v1.ReasonPodRefused, fmt.Sprintf("Pod %s goes on with the resources that it has, for it can't "+
			"get others: %v. If another node has them, delete the Pod: it starts there", pod.Name, err), waitUser}
	case err != nil:
		return fmt.Errorf("resize Pod %s: %w", pod.Name, err)
	}
	marked := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`,
		naming.AnnotationFacets, desired.FacetsResized(s.db, pod))
	if err := s.Client.Patch(ctx, pod.DeepCopy(), client.RawPatch(types.MergePatchType, marked)); err != nil {
		return fmt.Errorf("annotate Pod %s: %w", pod.Name, err)
	}
	s.addEvent(eventPodResized, fmt.Sprintf("Pod %s, while it runs: %s", pod.Name, why))
	return nil
}

// replace deletes a Pod, so that the StatefulSet makes it anew, and says why.
func (s *act) replace(ctx context.Context, pod *corev1.Pod, why string) error {
	err := s.Client.Delete(ctx, pod, client.Preconditions{UID: &pod.UID})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // another Pod has its name by now
	}
	if err != nil {
		return fmt.Errorf("delete Pod %s to replace it: %w", pod.Name, err)
	}
	s.addEvent(eventReplacing, fmt.Sprintf("Pod %s: %s", pod.Name, why))
	return nil
}

// restartServer asks the agent in a Pod to restart its server, and says why.
func (s *act) restartServer(ctx context.Context, pod *corev1.Pod, why string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := s.Agents.Restart(ctx, s.db.UID, pod.Status.PodIP, s.config, why); err != nil {
		return fmt.Errorf("ask %s to restart its server: %w", pod.Name, err)
	}
	s.addEvent(eventRestarting, fmt.Sprintf("server of %s: %s", pod.Name, why))
	return nil
}
