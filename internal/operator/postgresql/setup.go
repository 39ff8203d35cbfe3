package postgresql

import (
	"context"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	ctrlevent "sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	pgv1 "toban.dev/api/postgresql/v1"
	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
)

// workers is how many PostgreSQLs are reconciled at once. Most of a reconcile is waiting for agents.
const workers = 10

// Setup adds the controller to a manager.
func (r *Reconciler) Setup(manager ctrl.Manager) error {
	if err := Index(context.Background(), manager.GetFieldIndexer()); err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(manager).
		Named("postgresql").
		For(&pgv1.PostgreSQL{},
			builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, reloadChanged()))).
		Owns(&batchv1.Job{}).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(byPod)).
		Watches(&v1.SampleDB{}, handler.EnqueueRequestsFromMapFunc(r.byServer),
			builder.WithPredicates(serverChanged())).
		WatchesRawSource(source.Channel(r.Secrets.Changed(), &handler.EnqueueRequestForObject{})).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers}).
		Complete(r)
}

// reloadChanged lets the wish for another look at the passwords through, which is an annotation
// and so no new generation.
func reloadChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e ctrlevent.UpdateEvent) bool {
		return e.ObjectOld.GetAnnotations()[naming.AnnotationReload] !=
			e.ObjectNew.GetAnnotations()[naming.AnnotationReload]
	}}
}

// serverChanged lets a SampleDB through when it comes or goes, or when what matters here is different: who is primary,
// whether it takes writes, and whom it takes.
func serverChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e ctrlevent.UpdateEvent) bool {
		was, wasOne := e.ObjectOld.(*v1.SampleDB)
		is, isOne := e.ObjectNew.(*v1.SampleDB)
		return wasOne && isOne && (was.Status.Primary != is.Status.Primary || available(was) != available(is) ||
			was.Generation != is.Generation || (was.DeletionTimestamp == nil) != (is.DeletionTimestamp == nil) ||
			was.Annotations[naming.AnnotationDatabasesFrom] != is.Annotations[naming.AnnotationDatabasesFrom])
	}}
}

func available(db *v1.SampleDB) bool {
	return meta.IsStatusConditionTrue(db.Status.Conditions, v1.ConditionAvailable)
}

// byPod is the PostgreSQL that a Pod reads passwords for, or that has the server of which it is an
// instance, which bears its name.
func byPod(_ context.Context, object client.Object) []reconcile.Request {
	name := object.GetLabels()[naming.LabelPostgreSQL]
	if name == "" && object.GetLabels()[naming.LabelShortName] == object.GetLabels()[naming.LabelSampleDB] {
		name = object.GetLabels()[naming.LabelShortName]
	}
	if name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: object.GetNamespace(), Name: name}}}
}

// fieldServer is the index of PostgreSQLs by their SampleDBs. The API server knows no such field.
const fieldServer = "spec.server"

// Index has the cache keep the index. It must be called before the cache starts.
func Index(ctx context.Context, indexer client.FieldIndexer) error {
	err := indexer.IndexField(ctx, &pgv1.PostgreSQL{}, fieldServer, func(object client.Object) []string {
		pg, ok := object.(*pgv1.PostgreSQL)
		if !ok {
			return nil
		}
		return []string{serverKey(pg).String()}
	})
	if err != nil {
		return fmt.Errorf("index PostgreSQLs by their SampleDBs: %w", err)
	}
	return nil
}

// OnServer are the PostgreSQLs on a SampleDB, in whatever namespace.
func OnServer(ctx context.Context, cached client.Reader, server types.NamespacedName) ([]types.NamespacedName, error) {
	var all pgv1.PostgreSQLList
	err := cached.List(ctx, &all, client.MatchingFields{fieldServer: server.String()}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("list the PostgreSQLs on %s: %w", server, err)
	}
	var keys []types.NamespacedName
	for i := range all.Items {
		keys = append(keys, client.ObjectKeyFromObject(&all.Items[i]))
	}
	return keys, nil
}

// byServer are the PostgreSQLs on a SampleDB.
func (r *Reconciler) byServer(ctx context.Context, object client.Object) []reconcile.Request {
	keys, err := OnServer(ctx, r.Client, client.ObjectKeyFromObject(object))
	if err != nil {
		log.FromContext(ctx).Error(err,
			"the PostgreSQLs on a SampleDB could not be listed; they are looked at within 5 minutes anyway")
		return nil
	}
	var out []reconcile.Request
	for _, key := range keys {
		out = append(out, reconcile.Request{NamespacedName: key})
	}
	return out
}
