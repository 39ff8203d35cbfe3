package myapp

import (
	"context"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
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

	v1 "toban.dev/api/myapp/v1"
	pgv1 "toban.dev/api/postgresql/v1"
	toban "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/cached"
)

// workers is how many MyApps are reconciled at once.
const workers = 4

// After an error it is tried again after the first pause, and each time after twice the pause, up to the longest: what
// is in the way may go without anybody telling.
const (
	firstRetry = 100 * time.Millisecond
	lastRetry  = time.Minute
)

// Watched are the kinds of objects that belong to MyApps. The manager's cache should have only ours of them.
func Watched() []client.Object {
	return []client.Object{
		&corev1.Pod{}, &corev1.Service{}, &appsv1.Deployment{}, &batchv1.Job{}, &policyv1.PodDisruptionBudget{},
		&autoscalingv2.HorizontalPodAutoscaler{}, &networkingv1.Ingress{}, &networkingv1.NetworkPolicy{},
	}
}

// Setup adds the controller to a manager.
func (r *Reconciler) Setup(manager ctrl.Manager) error {
	configMaps, err := r.metadataCache(manager)
	if err != nil {
		return err
	}
	b := ctrl.NewControllerManagedBy(manager).
		Named("myapp").
		For(&v1.MyApp{}, builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{},
			predicate.AnnotationChangedPredicate{}))).
		Watches(&toban.DatabaseBackup{}, handler.EnqueueRequestsFromMapFunc(byLabel),
			builder.WithPredicates(statusChanged())).
		Watches(&toban.SampleDB{}, handler.EnqueueRequestsFromMapFunc(r.byDatabase),
			builder.WithPredicates(statusChanged())).
		Watches(&pgv1.PostgreSQL{}, handler.EnqueueRequestsFromMapFunc(r.byDatabase),
			builder.WithPredicates(statusChanged())).
		WatchesRawSource(source.Kind(configMaps, configMap(), handler.TypedEnqueueRequestsFromMapFunc(r.byConfigMap))).
		WatchesRawSource(source.Channel(r.Secrets.Changed(), &handler.EnqueueRequestForObject{})).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: workers,
			RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry,
				lastRetry),
		})
	for _, object := range Watched() {
		b = b.Watches(object, handler.EnqueueRequestsFromMapFunc(byLabel))
	}
	return b.Complete(r)
}

// metadataCache is a second cache beside the manager's, which has ours only: users' ConfigMaps, by their names and
// versions. What is in them is read when it is needed.
func (r *Reconciler) metadataCache(manager ctrl.Manager) (cache.Cache, error) {
	c, err := cache.New(manager.GetConfig(), cache.Options{
		HTTPClient: manager.GetHTTPClient(), Scheme: manager.GetScheme(),
		Mapper: manager.GetRESTMapper(), DefaultTransform: bare, NewInformer: cached.InPages(bare),
		DefaultNamespaces: r.Namespaces.ForCache(),
	})
	if err != nil {
		return nil, fmt.Errorf("make a cache for the names of ConfigMaps: %w", err)
	}
	if err := manager.Add(c); err != nil {
		return nil, fmt.Errorf("add the cache for the names of ConfigMaps: %w", err)
	}
	return c, nil
}

func configMap() *metav1.PartialObjectMetadata {
	out := &metav1.PartialObjectMetadata{}
	out.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	return out
}

// bare leaves of an object what a watch needs.
func bare(object any) (any, error) {
	if o, ok := object.(metav1.Object); ok {
		o.SetManagedFields(nil)
		o.SetAnnotations(nil)
		o.SetLabels(nil)
		o.SetFinalizers(nil)
		o.SetOwnerReferences(nil)
	}
	return object, nil
}

// byLabel is the MyApp that an object says it belongs to.
func byLabel(_ context.Context, object client.Object) []reconcile.Request {
	name := object.GetLabels()[naming.LabelMyApp]
	if name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: object.GetNamespace(), Name: name}}}
}

// statusChanged lets an object through whose conditions have changed, and not each time it gets on.
func statusChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e ctrlevent.UpdateEvent) bool {
		return e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() ||
			!equality.Semantic.DeepEqual(shown(e.ObjectOld), shown(e.ObjectNew))
	}}
}

// shown is the part of an object's status that matters to a MyApp.
func shown(object client.Object) any {
	switch o := object.(type) {
	case *toban.SampleDB:
		return o.Status.Conditions
	case *toban.DatabaseBackup:
		return o.Status.Conditions
	case *pgv1.PostgreSQL:
		return []any{o.Status.Conditions, o.Status.SecretRevision, o.Status.ConnectionRevision, o.Status.Server}
	}
	return object
}

// byDatabase are the MyApps that a database may matter to: those that name it, and those whose backups are taken of it.
func (r *Reconciler) byDatabase(ctx context.Context, object client.Object) []reconcile.Request {
	_, server := object.(*toban.SampleDB)
	return r.those(ctx, object.GetNamespace(), func(app *v1.MyApp) bool {
		d := app.Spec.Database
		switch {
		case d == nil:
			return false
		case d.Name == object.GetName():
			return true
		}
		return server && d.Kind != v1.DatabaseSampleDB && app.Spec.Migration != nil && app.Spec.Migration.Backup
	})
}

// byConfigMap are the MyApps that have their environment from a ConfigMap.
func (r *Reconciler) byConfigMap(ctx context.Context, object *metav1.PartialObjectMetadata) []reconcile.Request {
	return r.those(ctx, object.Namespace, func(app *v1.MyApp) bool {
		names := app.Spec.Config.ConfigMaps
		if d := app.Status.Deployed; d != nil {
			names = append(names[:len(names):len(names)], d.Spec.Config.ConfigMaps...)
		}
		return slices.Contains(names, v1.ObjectName(object.Name))
	})
}

// those are the MyApps of a namespace that something matters to.
func (r *Reconciler) those(ctx context.Context, namespace string, matters func(*v1.MyApp) bool) []reconcile.Request {
	var all v1.MyAppList
	if err := r.Client.List(ctx, &all, client.InNamespace(namespace)); err != nil {
		log.FromContext(ctx).Error(err, "MyApps that a change may matter to could not be listed")
		return nil
	}
	var out []reconcile.Request
	for i := range all.Items {
		if matters(&all.Items[i]) {
			out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&all.Items[i])})
		}
	}
	return out
}
