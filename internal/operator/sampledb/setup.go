package sampledb

import (
	"context"
	"reflect"
	"slices"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	ctrlevent "sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/cached"
	"toban.dev/internal/operator/index"
	"toban.dev/internal/operator/sampledb/world"
)

// workers is how many SampleDBs are reconciled at once. Most of a reconcile is waiting for agents: a quarter of a
// second for those of a node that was just lost.
const workers = 40

// watched are the kinds of objects that belong to SampleDBs.
func watched() []client.Object {
	return []client.Object{
		&corev1.Pod{}, &corev1.ConfigMap{}, &corev1.Service{}, &corev1.ServiceAccount{},
		&corev1.PersistentVolumeClaim{}, &appsv1.StatefulSet{}, &appsv1.Deployment{}, &batchv1.Job{},
		&policyv1.PodDisruptionBudget{}, &networkingv1.NetworkPolicy{}, &rbacv1.Role{}, &rbacv1.RoleBinding{},
		&autoscalingv2.HorizontalPodAutoscaler{},
	}
}

// CacheOptions keep only our own objects in memory, also of the kinds that other controllers watch, and of them only
// what somebody reads there. A client of cached.NewClient reads from such a cache.
func CacheOptions(others ...client.Object) cache.Options {
	ours := labels.SelectorFromSet(labels.Set{naming.LabelManagedBy: naming.ManagedBy})
	byObject, kinds := map[client.Object]cache.ByObject{}, map[reflect.Type]bool{}
	for _, object := range append(watched(), others...) {
		if kind := reflect.TypeOf(object); !kinds[kind] { // a kind may be there once
			kinds[kind] = true
			byObject[object] = cache.ByObject{Label: ours}
		}
	}
	return cache.Options{ByObject: byObject, DefaultTransform: Transform, NewInformer: cached.InPages(Transform)}
}

// Setup adds the controller to a manager, and to its cache the indexes. The other controllers use them too.
func (r *Reconciler) Setup(manager ctrl.Manager) error {
	ctx, indexer := context.Background(), manager.GetFieldIndexer()
	err := index.Add(ctx, indexer)
	if err != nil {
		return err
	}
	b := ctrl.NewControllerManagedBy(manager).
		Named("sampledb").
		Watches(&v1.SampleDB{}, edited(),
			builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, requestChanged(), left()))).
		Watches(&v1.SampleDB{}, handler.EnqueueRequestsFromMapFunc(firstSide),
			builder.WithPredicates(sideChanged())).
		Watches(&v1.DatabaseBackup{}, handler.EnqueueRequestsFromMapFunc(bySpec),
			builder.WithPredicates(backupEnded())).
		Watches(&v1.FaultDrill{}, handler.EnqueueRequestsFromMapFunc(bySpec),
			builder.WithPredicates(drillEnded())).
		WatchesRawSource(source.Channel(r.Agents.Changed(), &handler.EnqueueRequestForObject{})).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers}).
		WithLogConstructor(logs(manager.GetLogger()))
	for _, object := range watched() {
		b = b.Watches(object, handler.EnqueueRequestsFromMapFunc(byLabel))
	}
	if !r.NoClasses {
		b = b.Watches(&storagev1.StorageClass{}, handler.EnqueueRequestsFromMapFunc(r.everyUnready))
	}
	return b.Complete(once(r))
}

// logs has each line of a reconcile name its SampleDB, as controller-runtime does for what a controller is For.
func logs(base logr.Logger) func(*reconcile.Request) logr.Logger {
	base = base.WithValues(
		"controller", "sampledb", "controllerGroup", v1.GroupVersion.Group, "controllerKind", "SampleDB")
	return func(request *reconcile.Request) logr.Logger {
		if request == nil {
			return base
		}
		return base.WithValues("SampleDB", request.NamespacedName, "namespace", request.Namespace, "name", request.Name)
	}
}

// requestChanged lets a request through, which is an annotation and so no new generation.
func requestChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e ctrlevent.UpdateEvent) bool {
		was, is := e.ObjectOld.GetAnnotations(), e.ObjectNew.GetAnnotations()
		changed := func(r world.Request) bool { return was[string(r)] != is[string(r)] }
		return slices.ContainsFunc(world.Requests, changed)
	}}
}

// firstSide is the SampleDB to whose upgrade a second side belongs.
func firstSide(_ context.Context, side client.Object) []reconcile.Request {
	owner := metav1.GetControllerOf(side)
	if owner == nil || owner.Kind != "SampleDB" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: side.GetNamespace(), Name: owner.Name}}}
}

// sideChanged lets through what a second side says of itself, and that it is gone.
func sideChanged() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(ctrlevent.CreateEvent) bool { return false },
		UpdateFunc: func(e ctrlevent.UpdateEvent) bool {
			was, ok := e.ObjectOld.(*v1.SampleDB)
			is, also := e.ObjectNew.(*v1.SampleDB)
			return ok && also && metav1.GetControllerOf(is) != nil &&
				!equality.Semantic.DeepEqual(was.Status.Conditions, is.Status.Conditions)
		},
	}
}

// left lets a SampleDB through that Kubernetes has left what belongs to it, in a deletion with --cascade=orphan.
func left() predicate.Predicate {
	orphans := func(object client.Object) bool {
		return slices.Contains(object.GetFinalizers(), metav1.FinalizerOrphanDependents)
	}
	return predicate.Funcs{UpdateFunc: func(e ctrlevent.UpdateEvent) bool {
		return orphans(e.ObjectOld) && !orphans(e.ObjectNew)
	}}
}

// backupEnded lets a DatabaseBackup through when it comes, goes, ends, is pinned or was verified, or begins or ceases
// to wait for what is at work in the archive, and not each time it gets on.
func backupEnded() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e ctrlevent.UpdateEvent) bool {
		was, wasOne := e.ObjectOld.(*v1.DatabaseBackup)
		is, isOne := e.ObjectNew.(*v1.DatabaseBackup)
		return wasOne && isOne && (world.Ended(was) != world.Ended(is) || was.Spec.Keep != is.Spec.Keep ||
			world.AwaitsOther(was) != world.AwaitsOther(is) ||
			!equality.Semantic.DeepEqual(was.Status.Verification, is.Status.Verification))
	}}
}

// drillEnded lets a FaultDrill through when it comes, goes or ends.
func drillEnded() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e ctrlevent.UpdateEvent) bool {
		was, wasOne := e.ObjectOld.(*v1.FaultDrill)
		is, isOne := e.ObjectNew.(*v1.FaultDrill)
		return wasOne && isOne && (was.Status.CompletedAt == nil) != (is.Status.CompletedAt == nil)
	}}
}

// byLabel is the SampleDB that an object says it belongs to.
func byLabel(_ context.Context, object client.Object) []reconcile.Request {
	name := object.GetLabels()[naming.LabelSampleDB]
	if name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: object.GetNamespace(), Name: name}}}
}

// bySpec is the SampleDB that a DatabaseBackup or a FaultDrill is of.
func bySpec(_ context.Context, object client.Object) []reconcile.Request {
	name := ""
	switch o := object.(type) {
	case *v1.DatabaseBackup:
		name = o.Spec.SampleDB
	case *v1.FaultDrill:
		name = o.Spec.SampleDB
	default:
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: object.GetNamespace(), Name: name}}}
}

// everyUnready are the SampleDBs whose storage a StorageClass may unblock.
func (r *Reconciler) everyUnready(ctx context.Context, _ client.Object) []reconcile.Request {
	var all v1.SampleDBList
	if err := r.Client.List(ctx, &all); err != nil {
		log.FromContext(ctx).Error(err,
			"SampleDBs that wait for a StorageClass could not be listed; they are looked at within 30 s anyway")
		return nil
	}
	var out []reconcile.Request
	for i := range all.Items {
		if all.Items[i].Status.Phase != phaseReady {
			out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&all.Items[i])})
		}
	}
	return out
}
