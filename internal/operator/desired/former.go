package desired

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
)

// FormerAt is the former archive that has a moment: that of the major version that ran then. It is nil where that is
// the present one, or is not known.
func FormerAt(b *v1.BackupStatus, at time.Time) *v1.FormerArchive {
	if b == nil {
		return nil
	}
	var found *v1.FormerArchive
	for i := range b.Former { // the newest first
		if until := leftAt(&b.Former[i]); until != nil && !at.After(until.Time) {
			found = &b.Former[i]
		}
	}
	return found
}

// FormerOf is the former archive of a major version, nil where there is none.
func FormerOf(b *v1.BackupStatus, major int) *v1.FormerArchive {
	for i := range b.Former {
		if int(b.Former[i].Version) == major {
			return &b.Former[i]
		}
	}
	return nil
}

// leftAt is until when an archive was the present one, as far as that is known.
func leftAt(f *v1.FormerArchive) *metav1.Time {
	if f.Until != nil {
		return f.Until
	}
	var last *metav1.Time
	for _, w := range f.Windows {
		if last == nil || last.Before(w.Latest) {
			last = w.Latest
		}
	}
	return last
}

// TargetTime is the moment of a target, false where it is none.
func TargetTime(t *v1.RestoreTarget) (time.Time, bool) {
	if t == nil || t.Time == "" {
		return time.Time{}, false
	}
	at, err := time.Parse(time.RFC3339, t.Time)
	return at, err == nil
}
