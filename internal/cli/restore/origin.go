package restore

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/cli/show"
	"toban.dev/internal/operator/desired"
)

// origin is what a restore begins from: a SampleDB, nil if it is gone, and the backup that was named, nil for none.
type origin struct {
	name   string
	db     *v1.SampleDB
	backup *v1.DatabaseBackup
	// now is what time it is by the API server.
	now time.Time
}

func (o *restoreToOptions) origin(ctx context.Context, api client.Client, name string) (origin, error) {
	from := origin{name: name}
	db, err := o.Read(ctx, api, name)
	from.now = o.Now()
	switch {
	case err == nil:
		from.db = db
	case !apierrors.IsNotFound(err):
		return from, err
	case o.backup == "":
		return from, o.gone(ctx, api, name)
	}
	if o.backup == "" {
		return from, nil
	}
	b := &v1.DatabaseBackup{}
	if err := api.Get(ctx, types.NamespacedName{Namespace: o.Namespace, Name: o.backup}, b); err != nil {
		return from, fmt.Errorf("read the DatabaseBackup %s in namespace %s: %w", o.backup, o.Namespace, err)
	}
	if err := o.ofUse(b, name); err != nil {
		return from, err
	}
	from.backup = b
	return from, nil
}

// ofUse is an error where a backup can't be restored in the way that is asked for.
func (o *restoreToOptions) ofUse(b *v1.DatabaseBackup, name string) error {
	switch {
	case b.Status.Snapshot == nil || b.Spec.SampleDB != name ||
		!meta.IsStatusConditionTrue(b.Status.Conditions, v1.ConditionComplete):
		return ofUse(b, name)
	case o.into == "" || o.parts.some():
		return fmt.Errorf("the DatabaseBackup %s is a snapshot of a volume, of which only a new SampleDB can be made: "+
			"name that with --into", b.Name)
	}
	return nil
}

// ofUse is an error where a backup can't be restored as one of a SampleDB.
func ofUse(b *v1.DatabaseBackup, name string) error {
	c := meta.FindStatusCondition(b.Status.Conditions, v1.ConditionComplete)
	switch {
	case b.Spec.SampleDB != name:
		return fmt.Errorf("the DatabaseBackup %s is of the SampleDB %s, not of %s", b.Name, b.Spec.SampleDB, name)
	case c == nil:
		return fmt.Errorf("the DatabaseBackup %s has not begun yet", b.Name)
	case c.Status != metav1.ConditionTrue || b.Status.Archive == nil || b.Status.ID == "":
		return fmt.Errorf("the DatabaseBackup %s can't be restored: %s: %s", b.Name, c.Reason, c.Message)
	}
	return nil
}

// gone says that there is no SampleDB, and what is left of it.
func (o *restoreToOptions) gone(ctx context.Context, api client.Reader, name string) error {
	var all v1.DatabaseBackupList
	if err := api.List(ctx, &all, client.InNamespace(o.Namespace)); err != nil {
		return fmt.Errorf("look for backups of %s: %w", name, err)
	}
	var left []string
	for i := range all.Items {
		if ofUse(&all.Items[i], name) == nil {
			left = append(left, all.Items[i].Name)
		}
	}
	if len(left) == 0 {
		return fmt.Errorf("there is no SampleDB %s in namespace %s, and no backup of one", name, o.Namespace)
	}
	slices.Sort(left)
	return fmt.Errorf("there is no SampleDB %s in namespace %s any more, but backups of it: name one with --backup: %s",
		name, o.Namespace, strings.Join(left, ", "))
}

// window says what can be restored, as far as the operator has seen it.
func (f origin) window() string {
	if f.db == nil {
		return fmt.Sprintf("the backup %s ended at %s", f.backup.Name, show.At(f.backup.Status.CompletedAt))
	}
	b := f.db.Status.Backup
	switch {
	case b == nil || b.Earliest == nil:
		return "no backup is complete yet: there may be nothing to restore"
	case len(b.Windows) < 2 && len(b.Former) == 0:
		return fmt.Sprintf("every moment from %s to %s can be restored", show.At(b.Earliest), show.At(b.Latest))
	}
	words := "every moment can be restored"
	for _, w := range b.Windows {
		words += "\n  " + windowLine(w, b)
	}
	for _, f := range b.Former {
		for _, w := range f.Windows {
			words += fmt.Sprintf("\n  with PostgreSQL %d, only --into: %s", f.Version, windowLine(w, b))
		}
	}
	return words
}

// windowLine says from where to where a window goes. The one that goes on goes to where the archive is.
func windowLine(w v1.RestoreWindow, b *v1.BackupStatus) string {
	latest, lsn, left := w.Latest, w.LatestLSN, ""
	if latest == nil {
		latest, lsn, left = b.Latest, b.ArchivedLSN, ", and on"
	}
	return fmt.Sprintf("of branch %d from %s (%s) to %s (%s)%s",
		w.Branch, show.At(w.Earliest), w.EarliestLSN, show.At(latest), lsn, left)
}

// mayReach is an error where a moment is known to be in no window of the archive that is restored, a former one or nil
// for the present one: nothing would ever come of it. What can't be known for certain from a status, such as how far
// the archive has come since, the Pod of the restore finds out.
func (r restoreTo) mayReach(former *v1.FormerArchive) error {
	at, isTime := desired.TargetTime(r.target)
	if !isTime || r.from.mayHave(at, r.from.now, former) {
		return nil
	}
	return fmt.Errorf("restore %s to %s: outside of what can be restored: %s",
		r.from.name, r.moment(), r.from.window())
}

// clockSkew is how far the API server's clock may be behind that of the instances.
const clockSkew = time.Minute

// mayHave is false where a moment is known not to be in an archive, a former one or nil for the present one: it has not
// come yet, or lies in no window. Times in a status are rounded to a second.
func (f origin) mayHave(at, now time.Time, former *v1.FormerArchive) bool {
	if former == nil && at.After(f.latest(now).Add(clockSkew)) {
		return false
	}
	if b := f.backup; b != nil {
		return b.Status.StartedAt == nil || !at.Before(b.Status.StartedAt.Time)
	}
	windows := f.windows(former)
	for i, w := range windows {
		begun := w.Earliest == nil || at.After(w.Earliest.Add(-time.Second))
		over := w.Latest != nil && at.After(w.Latest.Add(time.Second))
		if begun && (!over || i == 0) { // after the newest one there may be what the status does not have yet
			return true
		}
	}
	return len(windows) == 0
}

// latest is now, or what the archive has already where that is later: then the API server's clock is wrong.
func (f origin) latest(now time.Time) time.Time {
	if f.db == nil || f.db.Status.Backup == nil || f.db.Status.Backup.Latest == nil ||
		now.After(f.db.Status.Backup.Latest.Time) {
		return now
	}
	return f.db.Status.Backup.Latest.Time
}

// allListed is how many windows a status has at least, where there are so many: the newest ones.
const allListed = 4

// windows are those of an archive, the newest first, none where they are not all known.
func (f origin) windows(former *v1.FormerArchive) []v1.RestoreWindow {
	b := f.db.Status.Backup
	switch {
	case b == nil, former != nil, len(b.Windows) >= allListed:
		return nil
	case len(b.Windows) == 0:
		return []v1.RestoreWindow{{Earliest: b.Earliest}}
	}
	return b.Windows
}
