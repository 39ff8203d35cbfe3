package faultdrill

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/desired"
	"toban.dev/internal/operator/index"
	"toban.dev/internal/operator/jobs"
	"toban.dev/internal/operator/order"
)

// takeBack ends what lasts of a drill that was deleted while its clients wrote. Its status is gone, and with it what it
// has broken: so all instances of the SampleDB are asked, whose other drills wait. That it was under way is known by
// its Job, which goes with it a moment later. Where that is gone already, what lasts ends by itself.
func (r *Reconciler) takeBack(ctx context.Context, key types.NamespacedName) error {
	s, err := r.orphaned(ctx, key)
	if s == nil || err != nil {
		return err
	}
	if next, err := s.another(ctx); next || err != nil {
		return err
	}
	selector := map[string]string{
		naming.LabelSampleDB: s.Object.Spec.SampleDB, naming.LabelComponent: naming.ComponentInstance,
	}
	all, err := index.Pods(ctx, r.Client, key.Namespace, selector)
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(all, func(p corev1.Pod) bool { return p.Status.PodIP == "" })
	if err := s.undoAt(ctx, all); err != nil {
		return fmt.Errorf("take back what FaultDrill %s has broken, which was deleted: %w", key.Name, err)
	}
	return nil
}

// orphaned is what is known of a drill that was deleted while its clients wrote, nil where there is nothing to do.
func (r *Reconciler) orphaned(ctx context.Context, key types.NamespacedName) (*scope, error) {
	name := types.NamespacedName{Namespace: key.Namespace, Name: naming.DrillJob(key.Name)}
	job, err := r.Jobs().FindCached(ctx, name)
	if job == nil || err != nil {
		return nil, err
	}
	owner, db := metav1.GetControllerOf(job), job.Labels[naming.LabelSampleDB]
	if owner == nil || owner.Kind != "FaultDrill" || owner.Name != key.Name || jobs.Of(job, nil).Ended() ||
		!r.Shard.Has(key.Namespace, db) {
		return nil, nil //nolint:nilnil // there is nothing to do, and that is no error
	}
	kind := r.kind()
	s := &scope{Reconciler: r, Task: order.TaskOf(&kind, r.Base, &v1.FaultDrill{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, UID: owner.UID},
		Spec:       v1.FaultDrillSpec{SampleDB: db},
	})}
	s.seen.db = &v1.SampleDB{}
	if err := r.Client.Get(ctx, types.NamespacedName{Namespace: key.Namespace, Name: db}, s.seen.db); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	there, err := s.observeConfig(ctx)
	if err != nil || !there {
		return nil, err
	}
	return s, nil
}

// another says that another drill of the SampleDB breaks something now. Agents let it only when this one is over.
func (s *scope) another(ctx context.Context) (bool, error) {
	all, err := index.Drills(ctx, s.Client, s.Object.Namespace, s.Object.Spec.SampleDB)
	return slices.ContainsFunc(all, func(d v1.FaultDrill) bool {
		return d.UID != s.Object.UID && d.Status.OrderedAt != nil && d.Status.CompletedAt == nil
	}), err
}

// observeConfig finds what agents have to be asked with, and says whether it is there.
func (s *scope) observeConfig(ctx context.Context) (there bool, err error) {
	config := &corev1.ConfigMap{}
	if there, err = s.Find(ctx, naming.ConfigMap(s.seen.db.Name), config); err != nil || !there {
		return false, err
	}
	s.seen.config, err = desired.ParseConfig(config)
	return true, err
}
