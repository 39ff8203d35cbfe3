package world

import (
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/desired"
	"toban.dev/internal/operator/jobs"
	"toban.dev/internal/operator/pods"
)

// The reasons of decisions about data that is lost for good (docs/lostdata.md), in the order in which they are checked.
const (
	LossNoDatabase = "NoDatabase" // nothing was there that could be lost
	LossNone       = "Primary"    // an instance takes writes
	LossUnknown    = "Unknown"    // an instance, or its volume, can't be asked
	LossMajority   = "Majority"   // too few instances have their data to elect one of them
	LossHasData    = "HasData"    // an instance has data
	LossBusy       = "Busy"       // a restore, an upgrade, a stop or a deletion is under way
	LossLeft       = "VolumeLeft" // the volume of an instance that was scaled away is still there
	LossDirectory  = "Directory"  // on a volume that has had the data its directory is gone
	LossNoArchive  = "NoArchive"  // the spec does without an archive
	LossNoBackup   = "NoBackup"   // there is nothing in it that can be restored, as far as is known
	LossWaits      = "Waits"      // the spec does not allow to begin again from it
	LossRestores   = "Restores"   // the SampleDB begins again from its archive
)

// The states of an instance's volume.
const (
	VolumeUnknown = ""     // it was not read, or not understood
	VolumeHasData = "data" // there is data
	VolumeNew     = "new"  // there is none, and the instance has never had any there
	VolumeCleared = "gone" // there is none, and there has been
)

// Loss is what was decided: why, in a word and in a sentence, and onto the volume of which instance the archive is
// to be restored where somebody wants that, "" where that is not known.
type Loss struct {
	Reason, Message, Onto string
}

// IsLost says that no volume has the data.
func (l Loss) IsLost() bool {
	return slices.Contains([]string{
		LossBusy, LossLeft, LossDirectory, LossNoArchive, LossNoBackup, LossWaits, LossRestores,
	}, l.Reason)
}

// goesOn says that a restore which was begun because the data is lost is still wanted: nothing speaks against it. While
// its data is put in place no instance can be asked.
func (l Loss) goesOn() bool { return l.Reason == LossRestores || l.Reason == LossUnknown }

// BringBack is the command that begins again with what the archive has.
func BringBack(name string) string { return "kubectl toban restore " + name + " --to latest" }

// InPlace says that a restore in place is under way.
func (s *restoreFacts) InPlace() bool {
	r := s.RestoreStatus()
	return r != nil && r.ID != "" && r.CompletedAt == nil
}

// RestoreStatus is the status of a restore: as it was, until the phase of restores has looked.
func (s *restoreFacts) RestoreStatus() *v1.RestoreStatus {
	if s.RestoreSeen {
		return s.Restore
	}
	return s.DB.Status.Restore
}

// restoringInstance is the one on whose volume a restore in place that has not ended makes its data, "" for none.
func (s *restoreFacts) restoringInstance() string {
	if !s.InPlace() {
		return ""
	}
	return s.RestoreStatus().Instance
}

// RestoreWanted says that the data is to be replaced or made by a restore, or is being.
func (s *restoreFacts) RestoreWanted() bool {
	first := s.DB.Spec.RestoreFrom != nil && s.Config.SystemIdentifier == ""
	again := s.InPlaceWanted() != nil
	return first || again || s.InPlace() || s.RestoreBegun()
}

// IsRestored says that a restore in place is done.
func (s *restoreFacts) IsRestored(id string) bool {
	return id == s.Config.Restored || id == s.Config.RestoredBefore
}

// InPlaceWanted is the restore in place that is wanted and not done, nil for none: that of spec.restore, or one that
// was begun because the data is lost.
func (s *restoreFacts) InPlaceWanted() *v1.InPlaceRestore {
	if spec := s.DB.Spec.Restore; spec != nil && !s.IsRestored(spec.ID) && !s.RestoreHeld() {
		return spec
	}
	if r := s.RestoreStatus(); r != nil && r.Cause == v1.CauseDataLost && !s.IsRestored(r.ID) && s.Loss.goesOn() {
		return desired.LatestRestore(s.DB, r.ID)
	}
	return nil
}

// RestoreBegun says that a restore has chosen its instance and has not ended, or that something of one still runs.
func (s *restoreFacts) RestoreBegun() bool {
	return s.restoringInstance() != "" ||
		s.Restoring() != nil || slices.ContainsFunc(s.Seen.Jobs, func(job batchv1.Job) bool {
		return job.Labels[naming.LabelComponent] == naming.ComponentRestore && !jobs.Of(&job, nil).Ended()
	})
}

// Restoring is a Pod of a restore that has not ended, nil where there is none.
func (s *restoreFacts) Restoring() *corev1.Pod {
	for i := range s.Seen.RestorePods {
		pod := &s.Seen.RestorePods[i]
		if !pods.Ended(pod) {
			return pod
		}
	}
	return nil
}

// SidesHold is what everything says that would have the sides of a blue/green upgrade differ. Nothing of it is lost:
// it is done when there is one side again.
const SidesHold = "waits for the end of the blue/green upgrade, because the other side would not have it; " +
	"to have it sooner, accept the upgrade, or go back"

// RestoreHeld says that spec.restore has to wait, because an earlier state is nothing that another side could follow.
// One that has begun goes on, and what brings back a database whose data is lost waits for nothing.
func (s *restoreFacts) RestoreHeld() bool {
	spec := s.DB.Spec.Restore
	return spec != nil && !spec.Latest && !spec.Survivor && !s.IsRestored(spec.ID) &&
		desired.TwoSides(s.DB) && s.restoringInstance() == ""
}
