package sampledb

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/desired"
	"toban.dev/internal/naming"
)

// inPlace says that a restore in place is under way.
func (s *scope) inPlace() bool {
	return s.restore != nil && s.restore.ID != "" && s.restore.CompletedAt == nil
}

// applyInPlace brings the state that spec.restore wants back (docs/backup.md, "In place"). The data is made beside that of the
// primary, which serves meanwhile; then all instances stop, and start with it. What goes wrong before that leaves the database as it is.
func (r *Reconciler) applyInPlace(ctx context.Context, s *scope) error {
	spec := s.db.Spec.Restore
	taken := s.restore != nil && s.restore.ID != "" && s.restore.ID == s.config.Restored
	switch {
	case spec == nil && !taken:
		_, err := r.sortJobs(ctx, s, naming.ComponentRestore, "")
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
		s.noteTakenOver()
	case s.restore.PreparedAt != nil:
		return r.takeOver(ctx, s)
	default:
		return r.prepare(ctx, s)
	}
	return nil
}

// prepare has the data made on the volume of the primary.
func (r *Reconciler) prepare(ctx context.Context, s *scope) error {
	if s.restore.Instance == "" {
		s.restore.Instance = s.primary()
	}
	if s.restore.Instance == "" {
		s.restored = no(v1.ReasonRestoring, "waits for a primary, on whose volume the data is made")
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
		s.stopped = true
		return nil
	}
	known, err := r.known(s)
	if err != nil {
		return err
	}
	known.Restored = s.restore.ID
	s.config = desired.Config(s.db, known)
	s.note(eventRestoring, fmt.Sprintf("the instances start with what %s has restored", s.restore.ID))
	return r.applyConfig(ctx, s)
}

// noteTakenOver notes that the instance with the restored data leads.
func (s *scope) noteTakenOver() {
	if s.primary() == "" {
		s.restored = no(v1.ReasonRestoring, s.restore.Instance+" starts with the restored data")
		return
	}
	at := metav1.NewTime(s.now).Rfc3339Copy()
	s.restore.CompletedAt = &at
	s.restored = restoredTo(s.restore)
}
