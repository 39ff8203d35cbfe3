package databaserestore

import (
	"cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/operator/order"
	"toban.dev/internal/operator/pods"
)

// Fill takes what the Pod says, or has left.
func (s *scope) Fill(changed *v1.DatabaseRestore, _ order.Decision) {
	out := &changed.Status
	out.Attempts = max(out.Attempts, int32(len(s.Run.Pods))) //nolint:gosec // so many Pods there never are
	if p := s.seen.progress; p != nil {
		out.Backup = cmp.Or(p.Backup, out.Backup)
		out.Progress = &v1.BackupProgress{Bytes: p.Done, Total: p.Total, Rate: p.Rate, Percent: pods.Percent(*p)}
	}
	if r := s.seen.restored; r != nil {
		out.Backup, out.LSN = cmp.Or(r.Backup, out.Backup), cmp.Or(r.LSN, out.LSN)
		if !r.Commit.IsZero() {
			commit := metav1.NewTime(r.Commit).Rfc3339Copy()
			out.LastTransactionAt = &commit
		}
	}
	r := s.seen.result
	if r == nil {
		return
	}
	out.Progress, out.Objects = nil, nil
	for _, o := range r.Objects {
		out.Objects = append(out.Objects, v1.RestoredObject{
			Name: o.Name, As: o.As, Kept: o.Kept, Rows: o.Rows, Present: o.Present, Compared: o.Compared,
			OnlyRestored: o.OnlyRestored, OnlyPresent: o.OnlyPresent, Different: o.Different, Message: o.Says,
		})
	}
}
