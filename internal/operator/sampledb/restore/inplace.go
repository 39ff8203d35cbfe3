package restore

import (
	"cmp"
	"context"
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/desired"
	"toban.dev/internal/operator/sampledb/world"
)

// hasBegunAgain says that the last restore was one that the operator has begun by itself.
func (s *restoreTopic) hasBegunAgain() bool {
	r := s.RestoreStatus()
	return r != nil && r.Cause != ""
}

// Least is how many members the instances are told of at least. After a stop they are those that were stopped: they
// have the votes. After a restore they are those up to the one with the data of a restore in place,
// until one that the spec wants leads. The others have forgotten what they had promised then, and one that is the only
// member would lead with its old data.
func (s *restoreTopic) Least() int {
	if stop := s.DB.Status.Stop; stop != nil {
		return max(s.leastRestored(), int(stop.Instances))
	}
	return s.leastRestored()
}

// leastRestored is that number after a restore in place.
func (s *restoreTopic) leastRestored() int {
	r, status := s.DB.Status.Restore, s.DB.Status
	if r == nil || r.ID == "" ||
		r.CompletedAt != nil && world.Stays(cmp.Or(status.Primary, status.LastPrimary), desired.Instances(s.DB)) {
		return 0
	}
	if ordinal, known := naming.Ordinal(r.Instance); known {
		return ordinal + 1
	}
	return 0
}

// holdsRestore says that a restore in place that is wanted does not begin before a blue/green upgrade has ended.
func (s *restoreTopic) holdsRestore(wanted *v1.InPlaceRestore) bool {
	return wanted == nil && !s.InPlace() && s.RestoreHeld()
}

// applyInPlace brings the state that spec.restore wants back (docs/restore.md, "In place"). The data is made beside
// that of the primary, which serves meanwhile; then all instances stop, and start with it. What goes wrong before that
// leaves the database as it is.
func (s *restoreTopic) applyInPlace(ctx context.Context) error {
	if s.Loss.Reason == world.LossRestores && (s.Restore == nil || s.IsRestored(s.Restore.ID)) {
		s.All.beginAgain()
	}
	wanted := s.InPlaceWanted()
	if s.holdsRestore(wanted) {
		s.Restored = world.No(v1.ReasonRestoring, world.SidesHold)
		return nil
	}
	taken := s.Restore != nil && s.Restore.ID != "" && s.Restore.ID == s.Config.Restored
	switch {
	case wanted != nil && (s.Restore == nil || s.Restore.ID != wanted.ID):
		s.Restore, taken = &v1.RestoreStatus{ID: wanted.ID}, false
	case wanted == nil && s.Restore == nil && s.DB.Spec.Restore != nil:
		return nil // it was done before the status was lost
	case wanted == nil && !taken:
		_, err := s.KeepJob(ctx, naming.ComponentRestore, "")
		s.Restore = nil
		return err
	}
	return s.continueInPlace(ctx, wanted, taken)
}

// continueInPlace does the next step of the restore of the status: taken says that the instances were told to start
// with its data. If they were not, it is the wanted one.
func (s *restoreTopic) continueInPlace(ctx context.Context, wanted *v1.InPlaceRestore, taken bool) error {
	switch {
	case s.Restore.CompletedAt != nil:
		s.Restored = restoredTo(s.Restore)
	case taken:
		s.addTakenOverEvent()
	case s.Restore.PreparedAt != nil:
		return s.takeOver(ctx)
	case !s.Config.Prepares:
		s.Restored = world.No(v1.ReasonRestoring, "it begins when the instances are told")
	case wanted.Survivor:
		s.All.promoteSurvivor()
	default:
		return s.prepare(ctx, *wanted)
	}
	return nil
}

// tooMany says that an instance is to go, or that one leads which is.
func (s *restoreTopic) tooMany() bool {
	want, primary := desired.Instances(s.DB), s.Primary()
	return s.Created() > want || primary != "" && !world.Stays(primary, want)
}

// prepare has the data made on the volume of the primary; where there is none and none can be elected, on that of the
// instance with the most data.
func (s *restoreTopic) prepare(ctx context.Context, wanted v1.InPlaceRestore) error {
	if s.Restore.Instance == "" && s.tooMany() {
		s.Restored = world.No(v1.ReasonRestoring,
			"waits until the surplus instances are removed: the data is restored onto a volume that stays")
		return nil
	}
	if s.Restore.Instance == "" {
		s.Restore.Instance = cmp.Or(s.Primary(), s.Loss.Onto)
	}
	if s.Restore.Instance == "" {
		s.Restored = world.No(v1.ReasonRestoring, "waits for a primary, because the data is restored onto its volume; "+
			"or, where none can be elected because volumes are lost, for every instance to answer")
		return nil
	}
	ordinal, _ := naming.Ordinal(s.Restore.Instance)
	err := s.keepRestoring(ctx, desired.InPlace(wanted, ordinal))
	var stop *world.Problem
	if errors.As(err, &stop) {
		s.Restored = world.No(stop.Reason, stop.Message)
		if stop.Reason == v1.ReasonRestoreFailed {
			s.Restored.Message += s.All.hint()
		}
		return nil
	}
	return err
}

// takeOver stops all instances, and has them start with the restored data when none runs any more.
func (s *restoreTopic) takeOver(ctx context.Context) error {
	s.Restored = world.No(v1.ReasonRestoring, "the instances stop, and start with "+s.newData())
	if len(s.Seen.Pods) > 0 {
		s.Stopped = &world.Problem{Reason: v1.ReasonRestoring, Message: s.Restored.Message, Wait: world.WaitGone}
		return nil
	}
	known, err := s.Others.Known()
	if err != nil {
		return err
	}
	known.Restored, known.RestoredBefore, known.Survivor = s.Restore.ID, "", ""
	if s.Restore.Cause == v1.CauseSurvivor {
		known.Survivor = s.Restore.Instance
	}
	if s.Restore.Cause == v1.CauseDataLost && s.DB.Spec.Restore != nil {
		known.RestoredBefore = s.DB.Spec.Restore.ID
	}
	s.Config = desired.Config(s.DB, known)
	s.AddEvent(world.EventRestoring, "the instances start with "+s.newData())
	return s.Others.ApplyConfig(ctx)
}

// newData names the data that the instances are to start with.
func (s *restoreTopic) newData() string {
	if s.Restore.Cause == v1.CauseSurvivor {
		return "the data that " + s.Restore.Instance + " has"
	}
	return "the data that " + s.Restore.ID + " has restored"
}

// addTakenOverEvent notes that the instance with the restored data leads.
func (s *restoreTopic) addTakenOverEvent() {
	if s.Primary() == "" {
		s.Restored = world.No(v1.ReasonRestoring, s.Restore.Instance+" starts with "+s.newData())
		return
	}
	at := metav1.NewTime(s.Now).Rfc3339Copy()
	s.Restore.CompletedAt = &at
	s.Restored = restoredTo(s.Restore)
}
