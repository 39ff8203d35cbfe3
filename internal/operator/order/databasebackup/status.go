package databasebackup

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/log"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/operator/desired"
	"toban.dev/internal/operator/freshness"
	"toban.dev/internal/operator/order"
	"toban.dev/internal/operator/pods"
	"toban.dev/internal/protocol"
)

// status is what the backup's status should be after a decision.
func (s *scope) status(d Decision) v1.DatabaseBackupStatus {
	out := *s.backup.Status.DeepCopy()
	out.ObservedGeneration = s.backup.Generation
	out.Conditions = slices.Clone(out.Conditions)
	out.Phase = order.Phase(d.Reason, d.Over)
	out.Attempts = s.attempts()
	now := metav1.NewTime(s.now).Rfc3339Copy()
	if d.Action == ActionCreate || s.seen.run.Job != nil && !s.seen.foreign {
		if out.StartedAt == nil {
			out.StartedAt = &now
		}
		if out.Archive == nil && s.seen.db != nil && desired.Backup(s.seen.db) != nil {
			archive := desired.ArchiveReference(s.seen.db) // as it is now: the spec may say something else later
			out.Archive, out.Manifest = &archive, s.manifest()
		}
	}
	if p := s.seen.progress; p != nil {
		s.setProgress(&out, *p)
	}
	s.setSnapshot(&out)
	complete := metav1.ConditionFalse
	if d.Over {
		out.CompletedAt = &now
		if d.Reason == v1.ReasonCompleted {
			complete = metav1.ConditionTrue
			out.Done = "100%"
			s.setStore(&out)
			setResult(&out, s.seen.result)
		} else {
			out.Snapshot = nil // it was deleted
		}
	}
	meta.SetStatusCondition(&out.Conditions, metav1.Condition{
		Type: v1.ConditionComplete, Status: complete, Reason: d.Reason, Message: freshness.Message(d.Message),
		ObservedGeneration: s.backup.Generation, LastTransitionTime: now,
	})
	return out
}

func (s *scope) setProgress(out *v1.DatabaseBackupStatus, p protocol.BackupProgress) {
	out.Instance = cmp.Or(p.Instance, out.Instance)
	out.Progress = &v1.BackupProgress{Bytes: p.Done, Total: p.Total, Rate: p.Rate}
	if p.Total > 0 {
		// The total is an estimate: what is more than that is not more than all.
		out.Progress.Percent = pods.Percent(p)
		out.Done = fmt.Sprintf("%d%%", out.Progress.Percent)
	}
}

// setStore puts into the status in which store its Pod has found itself: the spec may have named another one between
// the Job and its Pod.
func (s *scope) setStore(out *v1.DatabaseBackupStatus) {
	r, db := s.seen.result, s.seen.db
	if r == nil || db == nil || out.Archive == nil || !desired.OpensStore(db, r.Store) {
		return
	}
	archive := desired.ArchiveReference(db)
	archive.Path = out.Archive.Path
	out.Archive = &archive
}

func setResult(out *v1.DatabaseBackupStatus, r *protocol.BackupResult) {
	if r == nil || r.Snapshot != nil {
		return
	}
	out.Instance = cmp.Or(r.Instance, out.Instance)
	out.ID, out.StartLSN, out.StopLSN = r.ID, r.StartLSN, r.StopLSN
	out.Type, out.Parent = v1.BackupFull, r.Parent
	if r.Parent != "" {
		out.Type = v1.BackupIncremental
	}
	out.ServerVersion, out.SystemIdentifier = r.ServerVersion, r.SystemIdentifier
	out.Size, out.StoredSize = size(r.Bytes), size(r.Stored)
	out.Progress = &v1.BackupProgress{Bytes: r.Bytes, Total: r.Bytes, Percent: 100}
	out.Earliest, out.Windows = freshness.Moment(r.Earliest), freshness.Windows(r.Windows)
	out.Retention, out.DeletionRefused = r.Held, r.Refused
	out.Keys, out.Former = freshness.Keys(r.Keys), freshness.Former(r.Former)
	if a := out.Archive; a != nil && r.Archive != "" {
		a.Path = r.Archive // a major upgrade may have begun another one before its Pod did
	}
	if a := out.Archive; a != nil && a.Encryption != nil && r.Recipient != "" {
		a.Encryption.Recipient = r.Recipient // the spec may have changed before its Pod began
	}
}

// size writes bytes for people, in whole MiB from there on.
func size(bytes int64) string {
	const mib = 1 << 20
	if bytes >= mib {
		bytes = bytes / mib * mib
	}
	return resource.NewQuantity(bytes, resource.BinarySI).String()
}

// report writes the status where it has changed, and then the events.
func (r *Reconciler) report(ctx context.Context, s *scope, d Decision) error {
	status := s.status(d)
	if equality.Semantic.DeepEqual(s.backup.Status, status) {
		return nil
	}
	changed := s.backup.DeepCopy()
	changed.Status = status
	if there, err := freshness.Shared(ctx, r.Client, s.backup, changed); err != nil || !there {
		return err
	}
	for _, e := range order.Changes(state(s.backup.Status), state(status)) {
		log.FromContext(ctx).Info("the state changed", "reason", e.Reason, "message", e.Message)
		r.Events.Eventf(s.backup, nil, e.Kind, e.Reason, order.ActionReported, "%s", e.Message)
	}
	return nil
}

// manifest is what would bring the SampleDB back, with the password that it has now.
func (s *scope) manifest() *runtime.RawExtension {
	db := s.seen.db
	return desired.Manifest(db, s.store.Credentials(db, s.store.Epoch(db)))
}
