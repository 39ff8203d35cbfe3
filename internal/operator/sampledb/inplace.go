package sampledb

import (
	"cmp"
	"context"
	"errors"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/desired"
	"toban.dev/internal/operator/jobs"
)

// inPlace says that a restore in place is under way.
func (s *restoreFacts) inPlace() bool {
	r := s.restoreStatus()
	return r != nil && r.ID != "" && r.CompletedAt == nil
}

// hasBegunAgain says that the last restore was one that the operator has begun by itself.
func (s *restoreTopic) hasBegunAgain() bool {
	r := s.restoreStatus()
	return r != nil && r.Cause != ""
}

// restoreStatus is the status of a restore: as it was, until the phase of restores has looked.
func (s *restoreFacts) restoreStatus() *v1.RestoreStatus {
	if s.restoreSeen {
		return s.restore
	}
	return s.db.Status.Restore
}

// restoringInstance is the one on whose volume a restore in place that has not ended makes its data, "" for none.
func (s *restoreFacts) restoringInstance() string {
	if !s.inPlace() {
		return ""
	}
	return s.restoreStatus().Instance
}

// restoreWanted says that the data is to be replaced or made by a restore, or is being.
func (s *restoreFacts) restoreWanted() bool {
	first := s.db.Spec.RestoreFrom != nil && s.config.SystemIdentifier == ""
	again := s.inPlaceWanted() != nil
	return first || again || s.inPlace() || s.restoreBegun()
}

// isRestored says that a restore in place is done.
func (s *restoreFacts) isRestored(id string) bool {
	return id == s.config.Restored || id == s.config.RestoredBefore
}

// inPlaceWanted is the restore in place that is wanted and not done, nil for none: that of spec.restore, or one that
// was begun because the data is lost.
func (s *restoreFacts) inPlaceWanted() *v1.InPlaceRestore {
	if spec := s.db.Spec.Restore; spec != nil && !s.isRestored(spec.ID) && !s.restoreHeld() {
		return spec
	}
	if r := s.restoreStatus(); r != nil && r.Cause == v1.CauseDataLost && !s.isRestored(r.ID) && s.loss.goesOn() {
		return desired.LatestRestore(s.db, r.ID)
	}
	return nil
}

// restoreBegun says that a restore has chosen its instance and has not ended, or that something of one still runs.
func (s *restoreFacts) restoreBegun() bool {
	return s.restoringInstance() != "" ||
		s.restoring() != nil || slices.ContainsFunc(s.seen.jobs, func(job batchv1.Job) bool {
		return job.Labels[naming.LabelComponent] == naming.ComponentRestore && !jobs.Of(&job, nil).Ended()
	})
}

// least is how many members the instances are told of at least. After a stop they are those that were stopped: they
// have the votes. After a restore they are those up to the one with the data of a restore in place,
// until one that the spec wants leads. The others have forgotten what they had promised then, and one that is the only
// member would lead with its old data.
func (s *restoreTopic) least() int {
	if stop := s.db.Status.Stop; stop != nil {
		return max(s.leastRestored(), int(stop.Instances))
	}
	return s.leastRestored()
}

// leastRestored is that number after a restore in place.
func (s *restoreTopic) leastRestored() int {
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

// holdsRestore says that a restore in place that is wanted does not begin before a blue/green upgrade has ended.
func (s *restoreTopic) holdsRestore(wanted *v1.InPlaceRestore) bool {
	return wanted == nil && !s.inPlace() && s.restoreHeld()
}

// applyInPlace brings the state that spec.restore wants back (docs/restore.md, "In place"). The data is made beside
// that of the primary, which serves meanwhile; then all instances stop, and start with it. What goes wrong before that
// leaves the database as it is.
func (s *restoreTopic) applyInPlace(ctx context.Context) error {
	if s.loss.reason == lossRestores && (s.restore == nil || s.isRestored(s.restore.ID)) {
		s.all.beginAgain()
	}
	wanted := s.inPlaceWanted()
	if s.holdsRestore(wanted) {
		s.restored = no(v1.ReasonRestoring, sidesHold)
		return nil
	}
	taken := s.restore != nil && s.restore.ID != "" && s.restore.ID == s.config.Restored
	switch {
	case wanted != nil && (s.restore == nil || s.restore.ID != wanted.ID):
		s.restore, taken = &v1.RestoreStatus{ID: wanted.ID}, false
	case wanted == nil && s.restore == nil && s.db.Spec.Restore != nil:
		return nil // it was done before the status was lost
	case wanted == nil && !taken:
		_, err := s.keepJob(ctx, naming.ComponentRestore, "")
		s.restore = nil
		return err
	}
	return s.continueInPlace(ctx, wanted, taken)
}

// continueInPlace does the next step of the restore of the status: taken says that the instances were told to start
// with its data. If they were not, it is the wanted one.
func (s *restoreTopic) continueInPlace(ctx context.Context, wanted *v1.InPlaceRestore, taken bool) error {
	switch {
	case s.restore.CompletedAt != nil:
		s.restored = restoredTo(s.restore)
	case taken:
		s.addTakenOverEvent()
	case s.restore.PreparedAt != nil:
		return s.takeOver(ctx)
	case !s.config.Prepares:
		s.restored = no(v1.ReasonRestoring, "it begins when the instances are told")
	case wanted.Survivor:
		s.all.promoteSurvivor()
	default:
		return s.prepare(ctx, *wanted)
	}
	return nil
}

// tooMany says that an instance is to go, or that one leads which is.
func (s *restoreTopic) tooMany() bool {
	want, primary := desired.Instances(s.db), s.primary()
	return s.created() > want || primary != "" && !stays(primary, want)
}

// prepare has the data made on the volume of the primary; where there is none and none can be elected, on that of the
// instance with the most data.
func (s *restoreTopic) prepare(ctx context.Context, wanted v1.InPlaceRestore) error {
	if s.restore.Instance == "" && s.tooMany() {
		s.restored = no(v1.ReasonRestoring,
			"waits until the surplus instances are removed: the data is restored onto a volume that stays")
		return nil
	}
	if s.restore.Instance == "" {
		s.restore.Instance = cmp.Or(s.primary(), s.loss.onto)
	}
	if s.restore.Instance == "" {
		s.restored = no(v1.ReasonRestoring, "waits for a primary, because the data is restored onto its volume; "+
			"or, where none can be elected because volumes are lost, for every instance to answer")
		return nil
	}
	ordinal, _ := naming.Ordinal(s.restore.Instance)
	err := s.keepRestoring(ctx, desired.InPlace(wanted, ordinal))
	var stop *problem
	if errors.As(err, &stop) {
		s.restored = no(stop.reason, stop.message)
		if stop.reason == v1.ReasonRestoreFailed {
			s.restored.message += s.all.hint()
		}
		return nil
	}
	return err
}

// takeOver stops all instances, and has them start with the restored data when none runs any more.
func (s *restoreTopic) takeOver(ctx context.Context) error {
	s.restored = no(v1.ReasonRestoring, "the instances stop, and start with "+s.newData())
	if len(s.seen.pods) > 0 {
		s.stopped = &problem{v1.ReasonRestoring, s.restored.message, waitGone}
		return nil
	}
	known, err := s.others.known()
	if err != nil {
		return err
	}
	known.Restored, known.RestoredBefore, known.Survivor = s.restore.ID, "", ""
	if s.restore.Cause == v1.CauseSurvivor {
		known.Survivor = s.restore.Instance
	}
	if s.restore.Cause == v1.CauseDataLost && s.db.Spec.Restore != nil {
		known.RestoredBefore = s.db.Spec.Restore.ID
	}
	s.config = desired.Config(s.db, known)
	s.addEvent(eventRestoring, "the instances start with "+s.newData())
	return s.others.applyConfig(ctx)
}

// newData names the data that the instances are to start with.
func (s *restoreTopic) newData() string {
	if s.restore.Cause == v1.CauseSurvivor {
		return "the data that " + s.restore.Instance + " has"
	}
	return "the data that " + s.restore.ID + " has restored"
}

// addTakenOverEvent notes that the instance with the restored data leads.
func (s *restoreTopic) addTakenOverEvent() {
	if s.primary() == "" {
		s.restored = no(v1.ReasonRestoring, s.restore.Instance+" starts with "+s.newData())
		return
	}
	at := metav1.NewTime(s.now).Rfc3339Copy()
	s.restore.CompletedAt = &at
	s.restored = restoredTo(s.restore)
}
