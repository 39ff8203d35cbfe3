package index

import (
	"context"
	"errors"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "toban.dev/api/v1"
)

// Indexes that only the cache has: of DatabaseBackups by the types of the conditions that say Queued, and of SampleDBs
// by whether a backup is being restored there.
const (
	fieldQueued  = "status.conditions.queued"
	fieldRestore = "status.restore.underWay"
)

const yes = "yes"

func addOrders(ctx context.Context, indexer client.FieldIndexer) error {
	if err := indexer.IndexField(ctx, &v1.DatabaseBackup{}, fieldQueued, queuedBy); err != nil {
		return fmt.Errorf("index DatabaseBackups by what they wait for: %w", err)
	}
	if err := indexer.IndexField(ctx, &v1.SampleDB{}, fieldRestore, restoreUnderWay); err != nil {
		return fmt.Errorf("index SampleDBs by their restores: %w", err)
	}
	return errors.Join(
		bySampleDB(ctx, indexer, "DatabaseBackups",
			func(b *v1.DatabaseBackup) string { return b.Spec.SampleDB }, &v1.DatabaseBackup{}),
		bySampleDB(ctx, indexer, "FaultDrills",
			func(d *v1.FaultDrill) string { return d.Spec.SampleDB }, &v1.FaultDrill{}))
}

// bySampleDB has the cache keep an index of a kind by the SampleDB that an object of it names.
func bySampleDB[O client.Object](
	ctx context.Context, indexer client.FieldIndexer, kinds string, of func(O) string, kind O,
) error {
	err := indexer.IndexField(ctx, kind, v1.FieldSampleDB, func(object client.Object) []string {
		if o, ok := object.(O); ok {
			return []string{of(o)}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("index %s by %s: %w", kinds, v1.FieldSampleDB, err)
	}
	return nil
}

// queuedBy are the conditions by which a DatabaseBackup says that it waits for its turn.
func queuedBy(object client.Object) (types []string) {
	backup, ok := object.(*v1.DatabaseBackup)
	if !ok {
		return nil
	}
	for _, c := range backup.Status.Conditions {
		if c.Reason == v1.ReasonQueued {
			types = append(types, c.Type)
		}
	}
	return types
}

// QueuedBackups are the DatabaseBackups of all namespaces that wait for their turn, as this condition of them says.
// They are the cache's own: they must not be changed.
func QueuedBackups(ctx context.Context, cached client.Reader, condition string) ([]v1.DatabaseBackup, error) {
	var list v1.DatabaseBackupList
	err := cached.List(ctx, &list, client.MatchingFields{fieldQueued: condition}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("list the DatabaseBackups that wait: %w", err)
	}
	return list.Items, nil
}

// restoreUnderWay says of a SampleDB that its restore has not ended.
func restoreUnderWay(object client.Object) []string {
	if db, ok := object.(*v1.SampleDB); ok && db.Status.Restore != nil && db.Status.Restore.CompletedAt == nil {
		return []string{yes}
	}
	return nil
}

// Restores are those of a namespace that have not ended.
func Restores(ctx context.Context, cached client.Reader, namespace string) ([]v1.RestoreStatus, error) {
	var list v1.SampleDBList
	err := cached.List(ctx, &list, client.InNamespace(namespace), client.MatchingFields{fieldRestore: yes},
		client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("list the SampleDBs that restore a backup: %w", err)
	}
	var out []v1.RestoreStatus
	for i := range list.Items {
		if restore := list.Items[i].Status.Restore; restore != nil && restore.CompletedAt == nil {
			out = append(out, *restore.DeepCopy())
		}
	}
	return out, nil
}

// Backups are the DatabaseBackups that name a SampleDB, whoever made them. A reader past the cache has the API server
// select them (selectableFields of the CRD; Kubernetes 1.32 documentation, "Custom resources").
func Backups(ctx context.Context, reader client.Reader, namespace, sampleDB string) ([]v1.DatabaseBackup, error) {
	var list v1.DatabaseBackupList
	err := reader.List(ctx, &list, client.InNamespace(namespace), client.MatchingFields{v1.FieldSampleDB: sampleDB})
	if err != nil {
		return nil, fmt.Errorf("list the DatabaseBackups of %s: %w", sampleDB, err)
	}
	return list.Items, nil
}

// Drills are the FaultDrills that name a SampleDB, whoever made them. A reader past the cache has the API server select
// them.
func Drills(ctx context.Context, reader client.Reader, namespace, sampleDB string) ([]v1.FaultDrill, error) {
	var list v1.FaultDrillList
	err := reader.List(ctx, &list, client.InNamespace(namespace), client.MatchingFields{v1.FieldSampleDB: sampleDB})
	if err != nil {
		return nil, fmt.Errorf("list the FaultDrills of %s: %w", sampleDB, err)
	}
	return list.Items, nil
}
