package freshness

import (
	"math"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/protocol"
)

// Moment is a time in a status, nil for none.
func Moment(t time.Time) *metav1.Time {
	if t.IsZero() {
		return nil
	}
	at := metav1.NewTime(t).Rfc3339Copy()
	return &at
}

// Windows are what a Pod has said can be restored.
func Windows(said []protocol.Window) (out []v1.RestoreWindow) {
	for _, w := range said {
		out = append(out, v1.RestoreWindow{
			Branch: int64(min(w.Branch, math.MaxInt64)), Earliest: Moment(w.Earliest), EarliestLSN: w.EarliestLSN,
			Latest: Moment(w.Latest), LatestLSN: w.LatestLSN,
		})
	}
	return out
}

// Former are the archives of former major versions as a Pod has found them.
func Former(said []protocol.FormerResult) (out []v1.FormerArchive) {
	for _, f := range said {
		out = append(out, v1.FormerArchive{
			Path: f.Path, Version: bounded(f.Major), Windows: Windows(f.Windows), Retention: f.Held, Empty: f.Empty,
		})
	}
	return out
}

// bounded is a number as a status can have it.
func bounded(n int) int32 { return int32(max(0, min(n, math.MaxInt32))) }

// Keys are the keys of an archive as a Pod has seen them.
func Keys(said []protocol.ArchiveKey) (out []v1.ArchiveKey) {
	for _, k := range said {
		out = append(out, v1.ArchiveKey{
			Recipient: k.Recipient, Backups: bounded(k.Backups), WAL: bounded(k.WAL), Held: k.Held,
		})
	}
	return out
}
