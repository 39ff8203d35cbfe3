package sampledb

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/controller/jobs"
	"toban.dev/internal/desired"
	"toban.dev/internal/naming"
)

// inPlace says that a restore in place is under way.
func (s *scope) inPlace() bool {
	r := s.restoreStatus()
	return r != nil && r.ID != "" && r.CompletedAt == nil
}

// restoreStatus is the status of a restore: as it was, until the phase of restores has looked.
func (s *scope) restoreStatus() *v1.RestoreStatus {
	if s.restoreSeen {
		return s.restore
	}
	return s.db.Status.Restore
}

// restoringInstance is the one on whose volume a restore in place that has not ended makes its data, "" for none.
func (s *scope) restoringInstance() string {
	if !s.inPlace() {
		return ""
	}
	return s.restoreStatus().Instance
}

// restoreWanted says that the data is to be replaced or made by a restore, or is being.
func (s *scope) restoreWanted() bool {
	first := s.db.Spec.RestoreFrom != nil && s.config.SystemIdentifier == ""
	again := s.db.Spec.Restore != nil && s.db.Spec.Restore.ID != s.config.Restored
	return first || again || s.inPlace() || s.restoreBegun()
}

// restoreBegun says that a restore has chosen its instance and has not ended, or that something of one still runs.
func (s *scope) restoreBegun() bool {
	return s.restoringInstance() != "" ||
		s.restoring() != nil || slices.ContainsFunc(s.seen.jobs, func(job batchv1.Job) bool {
		return job.Labels[naming.LabelComponent] == naming.ComponentRestore && !jobs.Of(&job, nil).Ended()
	})
}

// least is how many members the instances are told of at least: up to the one with the data of a restore in place,
// until one that the spec wants leads. The others have forgotten what they had promised then, and one that is the only
// member would lead with its old data.
func (s *scope) least() int {
	r, status := s.db.Status.Restore, s.db.Status
	if r == nil || r.ID == "" ||
		r.CompletedAt != nil && stays(cmp.Or(status.Primary, status.LastPrimary), desired.Instances(s.db)) {
		return 0
	}
	if ordinal, known := naming.Ordinal(r.Instance); known {
		return ordinal + 1
	}
	return 0
}

// applyInPlace brings the state that spec.restore wants back (docs/backup.md, "In place"). The data is made beside that
// of the primary, which serves meanwhile; then all instances stop, and start with it. What goes wrong before that
// leaves the database as it is.
func (r *Reconciler) applyInPlace(ctx context.Context, s *scope) error {
	spec := s.db.Spec.Restore
	taken := s.restore != nil && s.restore.ID != "" && s.restore.ID == s.config.Restored
	switch {
	case spec == nil && !taken:
		_, err := r.keepJob(ctx, s, naming.ComponentRestore, "")
		s.restore = nil
		return err
	case spec != nil && spec.ID == s.config.Restored && s.restore == nil:
		return nil // it was done before the status was lost
	case spec != nil && spec.ID != s.config.Restored && (s.restore == nil || s.restore.ID != spec.ID):
		s.restore, taken = &v1.RestoreStatus{ID: spec.ID}, false
	}
	switch {
	case s.restore.CompletedAt != nil:
		s.restored = restoredTo(s.restore)
	case taken:
		s.addTakenOverEvent()
	case s.restore.PreparedAt != nil:
		return r.takeOver(ctx, s)
	default:
		return r.prepare(ctx, s)
	}
	return nil
}

// tooMany says that an instance is to go, or that one leads which is.
func (s *scope) tooMany() bool {
	want, primary := desired.Instances(s.db), s.primary()
	return s.created() > want || primary != "" && !stays(primary, want)
}

// prepare has the data made on the volume of the primary.
func (r *Reconciler) prepare(ctx context.Context, s *scope) error {
	if s.restore.Instance == "" && s.tooMany() {
		s.restored = no(v1.ReasonRestoring,
			"waits until the surplus instances are removed: the data is restored onto a volume that stays")
		return nil
	}
	if s.restore.Instance == "" {
		s.restore.Instance = s.primary()
	}
	if s.restore.Instance == "" {
		s.restored = no(v1.ReasonRestoring, "waits for a primary, because the data is restored onto its volume")
		return nil
	}
	ordinal, _ := naming.Ordinal(s.restore.Instance)
	err := r.restore(ctx, s, desired.InPlaceRestore(s.db, ordinal))
	var stop *problem
	if errors.As(err, &stop) {
		s.restored = no(stop.reason, stop.message)
		return nil
	}
	return err
}

// takeOver stops all instances, and has them start with the restored data when none runs any more.
func (r *Reconciler) takeOver(ctx context.Context, s *scope) error {
	s.restored = no(v1.ReasonRestoring, "the instances stop, and start with the restored data")
	if len(s.seen.pods) > 0 {
		s.stopped = &problem{v1.ReasonRestoring, s.restored.message, waitGone}
		return nil
	}
	known, err := r.known(s)
	if err != nil {
		return err
	}
	known.Restored = s.restore.ID
	s.config = desired.Config(s.db, known)
	s.addEvent(eventRestoring, fmt.Sprintf("the instances start with what %s has restored", s.restore.ID))
	return r.applyConfig(ctx, s)
}

// addTakenOverEvent notes that the instance with the restored data leads.
func (s *scope) addTakenOverEvent() {
	if s.primary() == "" {
		s.restored = no(v1.ReasonRestoring, s.restore.Instance+" starts with the restored data")
		return
	}
	at := metav1.NewTime(s.now).Rfc3339Copy()
	s.restore.CompletedAt = &at
	s.restored = restoredTo(s.restore)
}
