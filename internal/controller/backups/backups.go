// Package backups finds the DatabaseBackups of a SampleDB among all those of its namespace: by an index that the cache
// keeps, so that one look at a SampleDB costs the same whatever else there is. It decides nothing about them.
package backups

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "toban.dev/api/v1"
)

// Index has the cache keep the index. It must be called before the cache starts.
func Index(ctx context.Context, indexer client.FieldIndexer) error {
	err := indexer.IndexField(ctx, &v1.DatabaseBackup{}, v1.FieldSampleDB, func(object client.Object) []string {
		backup, ok := object.(*v1.DatabaseBackup)
		if !ok {
			return nil
		}
		return []string{backup.Spec.SampleDB}
	})
	if err != nil {
		return fmt.Errorf("index DatabaseBackups by %s: %w", v1.FieldSampleDB, err)
	}
	return nil
}

// Of are the DatabaseBackups that name a SampleDB, whoever made them. A reader past the cache has the API server select
// them (selectableFields of the CRD; Kubernetes 1.32 documentation, "Custom resources").
func Of(ctx context.Context, reader client.Reader, namespace, sampleDB string) ([]v1.DatabaseBackup, error) {
	var list v1.DatabaseBackupList
	err := reader.List(ctx, &list, client.InNamespace(namespace), client.MatchingFields{v1.FieldSampleDB: sampleDB})
	if err != nil {
		return nil, fmt.Errorf("list the DatabaseBackups of %s: %w", sampleDB, err)
	}
	return list.Items, nil
}
