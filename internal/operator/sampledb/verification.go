package sampledb

import (
	"context"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
)

// applyVerification asks for the verification of the last complete backup when the schedule says so: an
// annotation with the time it was due, which an operator that is started anew would write the same.
func (s *backupsTopic) applyVerification(ctx context.Context) error {
	spec := s.backup
	schedule, err := parseSchedule("spec.backup.verification.schedule", spec.Verification.Schedule, spec.TimeZone)
	if err != nil {
		s.scheduled = no(v1.ReasonScheduleInvalid, err.Error())
		return nil
	}
	last := s.lastBackup()
	if schedule == nil || last == nil {
		return nil
	}
	table := timetable{schedule, spreadOf(s.db, ofVerifications)}
	s.verifiesNext = table.next(s.now)
	due := table.latest(s.verificationAsked(last), s.now)
	if due.IsZero() {
		return nil
	}
	changed := last.DeepCopy()
	if changed.Annotations == nil {
		changed.Annotations = map[string]string{}
	}
	changed.Annotations[naming.AnnotationVerify] = due.UTC().Format(time.RFC3339)
	err = s.Client.Patch(ctx, changed, client.MergeFrom(last), client.FieldOwner(naming.FieldOwner))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("ask for the verification of %s: %w", last.Name, err)
	}
	return nil
}

// lastBackup is the last complete one in the archive, nil where there is none.
func (s *archiveFacts) lastBackup() *v1.DatabaseBackup {
	var last *v1.DatabaseBackup
	for i := range s.seen.backups {
		b := &s.seen.backups[i]
		if s.inArchive(b) && (last == nil || last.Status.CompletedAt.Before(b.Status.CompletedAt)) {
			last = b
		}
	}
	return last
}

// verificationAsked is when a verification was last due, or when the first backup to verify was complete.
func (s *backupsTopic) verificationAsked(last *v1.DatabaseBackup) time.Time {
	asked := last.Status.CompletedAt.Time
	for i := range s.seen.backups {
		at, err := time.Parse(time.RFC3339, s.seen.backups[i].Annotations[naming.AnnotationVerify])
		if err == nil && at.After(asked) {
			asked = at
		}
	}
	return asked
}
