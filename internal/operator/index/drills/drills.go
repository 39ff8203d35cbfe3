// Package drills finds the FaultDrills of a SampleDB among all those of its namespace, as the package backups finds its
// DatabaseBackups: by an index that the cache keeps. It decides nothing about them.
package drills

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "toban.dev/api/v1"
)

// Index has the cache keep the index. It must be called before the cache starts.
func Index(ctx context.Context, indexer client.FieldIndexer) error {
	err := indexer.IndexField(ctx, &v1.FaultDrill{}, v1.FieldSampleDB, func(object client.Object) []string {
		drill, ok := object.(*v1.FaultDrill)
		if !ok {
			return nil
		}
		return []string{drill.Spec.SampleDB}
	})
	if err != nil {
		return fmt.Errorf("index FaultDrills by %s: %w", v1.FieldSampleDB, err)
	}
	return nil
}

// Of are the FaultDrills that name a SampleDB, whoever made them. A reader past the cache has the API server select
// them.
func Of(ctx context.Context, reader client.Reader, namespace, sampleDB string) ([]v1.FaultDrill, error) {
	var list v1.FaultDrillList
	err := reader.List(ctx, &list, client.InNamespace(namespace), client.MatchingFields{v1.FieldSampleDB: sampleDB})
	if err != nil {
		return nil, fmt.Errorf("list the FaultDrills of %s: %w", sampleDB, err)
	}
	return list.Items, nil
}
