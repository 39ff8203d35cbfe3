// Package index finds objects by indexes that the cache keeps, so that one look at an object costs the same whatever
// else there is: the Pods, Jobs and PersistentVolumeClaims of a SampleDB, a PostgreSQL or a MyApp among all those of
// its namespace, and those of a component among all that there are; the DatabaseBackups and FaultDrills of a SampleDB;
// the DatabaseBackups that wait for their turn; the restores that read a backup; and any object by its name. It decides
// nothing about them.
package index

import (
	"context"
	"errors"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"toban.dev/internal/naming"
)

// owners are the labels that say what an object is a part of. There is an index of each.
var owners = []string{naming.LabelSampleDB, naming.LabelPostgreSQL, naming.LabelMyApp}

// indexed are all labels that have an index.
var indexed = append([]string{naming.LabelComponent}, owners...)

// Field is the name of the index of a label. The API server knows no such field.
func Field(label string) string { return "metadata.labels." + label }

// Add has the cache keep the indexes. It must be called before the cache starts.
func Add(ctx context.Context, indexer client.FieldIndexer) error {
	return errors.Join(addLabels(ctx, indexer), addOrders(ctx, indexer))
}

func addLabels(ctx context.Context, indexer client.FieldIndexer) error {
	for _, kind := range []client.Object{&corev1.Pod{}, &batchv1.Job{}, &corev1.PersistentVolumeClaim{}} {
		for _, label := range indexed {
			if err := indexer.IndexField(ctx, kind, Field(label), valueOf(label)); err != nil {
				return fmt.Errorf("index %T by the label %s: %w", kind, label, err)
			}
		}
	}
	return nil
}

func valueOf(label string) client.IndexerFunc {
	return func(object client.Object) []string {
		if value := object.GetLabels()[label]; value != "" {
			return []string{value}
		}
		return nil
	}
}

// Pods are those of a namespace with these labels, one of which says what they are parts of. The reader must be one of
// the cache, here and below.
func Pods(
	ctx context.Context, cached client.Reader, namespace string, labels map[string]string,
) ([]corev1.Pod, error) {
	var all corev1.PodList
	err := list(ctx, cached, &all, namespace, labels)
	return all.Items, err
}

// Jobs are those of a namespace with these labels.
func Jobs(
	ctx context.Context, cached client.Reader, namespace string, labels map[string]string,
) ([]batchv1.Job, error) {
	var all batchv1.JobList
	err := list(ctx, cached, &all, namespace, labels)
	return all.Items, err
}

// Claims are the PersistentVolumeClaims of a namespace with these labels.
func Claims(
	ctx context.Context, cached client.Reader, namespace string, labels map[string]string,
) ([]corev1.PersistentVolumeClaim, error) {
	var all corev1.PersistentVolumeClaimList
	err := list(ctx, cached, &all, namespace, labels)
	return all.Items, err
}

// list lists by the index of the owner's label, and selects among what that has by all labels.
func list(
	ctx context.Context, cached client.Reader, into client.ObjectList, namespace string, labels map[string]string,
) error {
	for _, label := range owners {
		owner, ok := labels[label]
		if !ok {
			continue
		}
		err := cached.List(ctx, into, client.InNamespace(namespace), client.MatchingFields{Field(label): owner},
			client.MatchingLabels(labels))
		if err != nil {
			return fmt.Errorf("list what belongs to %s (%T): %w", owner, into, err)
		}
		return nil
	}
	return fmt.Errorf("list %T by %v: no label says what they are parts of", into, labels)
}

// OfComponent lists into what all namespaces have of a component. What it lists is the cache's own: it must not be
// changed.
func OfComponent(ctx context.Context, cached client.Reader, into client.ObjectList, component string) error {
	err := cached.List(ctx, into, client.MatchingFields{Field(naming.LabelComponent): component},
		client.MatchingLabels{naming.LabelComponent: component}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return fmt.Errorf("list what there is of the component %s (%T): %w", component, into, err)
	}
	return nil
}

// Find reads an object by its name, nil where there is none.
func Find[T client.Object](ctx context.Context, c client.Reader, namespace, name string, into T) (T, error) {
	var none T
	err := c.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, into)
	if apierrors.IsNotFound(err) {
		return none, nil
	}
	if err != nil {
		return none, fmt.Errorf("read %T %s: %w", into, name, err)
	}
	return into, nil
}
