package archive

import (
	"context"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/sampledb/world"
)

// applyVerification asks for the verification of the last complete backup when the schedule says so: an
// annotation with the time it was due, which an operator that is started anew would write the same.
func (s *backupsTopic) applyVerification(ctx context.Context) error {
	spec := s.Backup
	schedule, err := world.ParseComing("spec.backup.verification.schedule", spec.Verification.Schedule, spec.TimeZone)
	if err != nil {
		s.Scheduled = world.No(v1.ReasonScheduleInvalid, err.Error())
		return nil
	}
	last := s.LastBackup()
	if schedule == nil || last == nil {
		return nil
	}
	table := timetable{schedule, spreadOf(s.DB, ofVerifications)}
	s.VerifiesNext = table.next(s.Now)
	due := table.latest(s.verificationAsked(last), s.Now)
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

// verificationAsked is when a verification was last due, or when the first backup to verify was complete.
func (s *backupsTopic) verificationAsked(last *v1.DatabaseBackup) time.Time {
	asked := last.Status.CompletedAt.Time
	for i := range s.Seen.Backups {
		at, err := time.Parse(time.RFC3339, s.Seen.Backups[i].Annotations[naming.AnnotationVerify])
		if err == nil && at.After(asked) {
			asked = at
		}
	}
	return asked
}
