package databasebackup

import (
	"cmp"
	"fmt"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/operator/desired"
	"toban.dev/internal/operator/freshness"
	"toban.dev/internal/operator/order"
	"toban.dev/internal/operator/pods"
	"toban.dev/internal/protocol"
)

// Fill puts into the status what is known of the backup alone.
func (s *scope) Fill(changed *v1.DatabaseBackup, d order.Decision) {
	out := &changed.Status
	out.Attempts = s.attempts()
	if s.Begins(d) && out.Archive == nil && s.seen.db != nil && desired.Backup(s.seen.db) != nil {
		archive := desired.ArchiveReference(s.seen.db) // as it is now: the spec may say something else later
		out.Archive, out.Manifest = &archive, s.manifest()
	}
	if p := s.seen.progress; p != nil {
		s.setProgress(out, *p)
	}
	s.setSnapshot(out)
	switch {
	case d.Over && d.Reason == v1.ReasonCompleted:
		out.Done = "100%"
		s.setStore(out)
		setResult(out, s.seen.result)
	case d.Over:
		out.Snapshot = nil // it was deleted
	}
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

// manifest is what would bring the SampleDB back, with the password that it has now.
func (s *scope) manifest() *runtime.RawExtension {
	db := s.seen.db
	return desired.Manifest(db, s.Credentials.Credentials(db, s.Credentials.Epoch(db)))
}
