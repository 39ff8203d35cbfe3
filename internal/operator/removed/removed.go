// Package removed notes on DatabaseBackups that retention has removed their data. Whoever ran it tells.
package removed

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/operator/desired"
	"toban.dev/internal/operator/freshness"
	"toban.dev/internal/protocol"
)

// Phase is that of a DatabaseBackup whose data is gone.
const Phase = "Removed"

// By is a run of retention.
type By struct {
	// Archive is the path of the one that it was of, in a Store, IDs are what it has removed there.
	Archive string
	Store   v1.StoreSpec
	IDs     []string
	// All says that nothing is left of it.
	All bool
	// When says in words when that was.
	When string
}

// Note writes it into the status of those that it is true of.
func Note(ctx context.Context, c client.Client, by By, backups []v1.DatabaseBackup) error {
	for i := range backups {
		b := &backups[i]
		if b.Status.Phase == Phase || !by.isIn(b) || !slices.Contains(by.IDs, b.Status.ID) && !by.all(b) {
			continue
		}
		changed := b.DeepCopy()
		changed.Status.Phase = Phase
		meta.SetStatusCondition(&changed.Status.Conditions, metav1.Condition{
			Type: v1.ConditionComplete, Status: metav1.ConditionFalse, Reason: v1.ReasonRemoved,
			Message: "spec.backup.retention did not keep it " + by.When, ObservedGeneration: b.Generation,
		})
		if _, err := freshness.Shared(ctx, c, b, changed); err != nil {
			return fmt.Errorf("note that %s was removed: %w", b.Name, err)
		}
	}
	return nil
}

// isIn says that it is in that archive. One in another store may be as it was.
func (by By) isIn(b *v1.DatabaseBackup) bool {
	is, place := b.Status.Archive, func(store v1.StoreSpec) string {
		return desired.StorePlace(v1.ArchiveReference{Store: store})
	}
	return is != nil && is.Path == by.Archive && place(is.Store) == place(by.Store)
}

// all says that nothing is left of its archive.
func (by By) all(b *v1.DatabaseBackup) bool {
	return by.All && b.Status.CompletedAt != nil &&
		meta.IsStatusConditionTrue(b.Status.Conditions, v1.ConditionComplete)
}

// NoteAll notes what a Pod has removed, also from the archives of former major versions.
func NoteAll(
	ctx context.Context, c client.Client, said protocol.BackupResult, by By, backups []v1.DatabaseBackup,
) error {
	by.IDs = said.Removed
	if err := Note(ctx, c, by, backups); err != nil {
		return err
	}
	for _, f := range said.Former {
		of := By{Archive: f.Path, IDs: f.Removed, All: f.Empty, Store: by.Store, When: by.When}
		if err := Note(ctx, c, of, backups); err != nil {
			return err
		}
	}
	return nil
}
