package restore

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/ha"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/sampledb/world"
	"toban.dev/internal/protocol"
)

// lossTopic says whether the data is lost, and what can be done.
type lossTopic struct{ base }

// LossView is what the decision about lost data is made of.
type lossView struct {
	// database says that there has been one, primary which instance takes writes, "" for none.
	database bool
	primary  string
	// volumes are those of the instances, left the volumes of instances that are gone.
	volumes []instanceVolume
	left    []string
	// elects says that the instances with data may elect one of them, or that this is not known.
	elects bool
	// busy is what is under way and settles what becomes of the data, "" for nothing.
	busy string
	// archive says that there is one, backup that something in it can be restored, allowed that the spec wants that.
	archive, backup, allowed bool
}

// instanceVolume is the volume of an instance.
type instanceVolume struct {
	instance, state string
	position        ha.Position
}

// DecideLoss decides whether the data is lost for good, and what follows. Unknown is not lost: an instance that is
// away, a node that is cut off or a Pod that does not start leads to LossUnknown.
func DecideLoss(v lossView) world.Loss {
	switch {
	case !v.database:
		return world.Loss{Reason: world.LossNoDatabase}
	case v.primary != "":
		return world.Loss{Reason: world.LossNone}
	case len(v.in(world.VolumeUnknown)) > 0:
		return world.Loss{Reason: world.LossUnknown}
	case len(v.in(world.VolumeHasData)) == 0:
		return v.lost()
	case !v.elects && len(v.in(world.VolumeHasData)) < len(v.volumes):
		return world.Loss{Reason: world.LossMajority,
			Message: fmt.Sprintf("the volumes of %s are without data, and %s may lack what was committed",
				names(v.in(world.VolumeNew, world.VolumeCleared)), names(v.in(world.VolumeHasData))),
			Onto: v.furthest()}
	}
	return world.Loss{Reason: world.LossHasData}
}

// lost is the decision where it is known that no volume of an instance has data.
func (v lossView) lost() world.Loss {
	out := world.Loss{Message: "no volume has the data any more: that of " + names(v.volumes) + " is new and empty"}
	out.Onto = v.volumes[0].instance
	switch cleared := v.in(world.VolumeCleared); {
	case v.busy != "":
		out.Reason, out.Message = world.LossBusy, out.Message+"; "+v.busy
	case len(v.left) > 0:
		out.Reason, out.Message = world.LossLeft,
			fmt.Sprintf("no instance has the data any more: the volume of %s is new "+
				"and empty; %s of an instance that was scaled away is still there, and may have some (spec.instances)",
				names(v.volumes), strings.Join(v.left, ", "))
	case len(cleared) > 0:
		out.Reason, out.Message = world.LossDirectory, fmt.Sprintf(
			"no volume has the data any more: on that of %s, which has had it, the data directory is gone",
			names(cleared))
	case !v.archive:
		out.Reason, out.Onto = world.LossNoArchive, ""
	case !v.backup:
		out.Reason, out.Onto = world.LossNoBackup, ""
	case !v.allowed:
		out.Reason = world.LossWaits
	default:
		out.Reason = world.LossRestores
	}
	return out
}

// in are the volumes in one of some states.
func (v lossView) in(states ...string) []instanceVolume {
	return slices.DeleteFunc(slices.Clone(v.volumes), func(i instanceVolume) bool {
		return !slices.Contains(states, i.state)
	})
}

// furthest is the instance whose data goes furthest.
func (v lossView) furthest() string {
	return slices.MaxFunc(v.in(world.VolumeHasData), func(a, b instanceVolume) int {
		switch {
		case a.position.Before(b.position):
			return -1
		case b.position.Before(a.position):
			return 1
		}
		return strings.Compare(b.instance, a.instance)
	}).instance
}

// names are those of the instances, for a sentence.
func names(volumes []instanceVolume) string {
	var out []string
	for _, v := range volumes {
		out = append(out, v.instance)
	}
	return strings.Join(out, ", ")
}

// LossView is what the scope knows of it.
func (s *lossTopic) LossView() lossView {
	backups := s.Archives()
	v := lossView{
		database: s.Config.SystemIdentifier != "", primary: s.Primary(), busy: s.settlesData(),
		elects:  s.mayElect(),
		archive: s.Backup != nil, backup: backups.LastBackup != "" || s.LastBackup() != nil,
	}
	v.allowed = v.archive && s.Backup.WhenDataIsLost == v1.DataLostRestore
	for ordinal := range s.Instances() {
		v.volumes = append(v.volumes, s.instanceVolume(ordinal))
	}
	for ordinal, claim := range s.Seen.Claims {
		if ordinal >= s.Instances() {
			v.left = append(v.left, claim.Name)
		}
	}
	slices.Sort(v.left)
	return v
}

// instanceVolume is what is known of the volume of an instance: what its agent says, if its Pod and the claim are there
// to stay.
func (s *lossTopic) instanceVolume(ordinal int) instanceVolume {
	out := instanceVolume{instance: naming.Instance(s.DB.Name, ordinal)}
	pod, claim := s.Seen.Pods[ordinal], s.Seen.Claims[ordinal]
	answer, known := s.Seen.Answers[out.instance]
	if !known || pod == nil || pod.DeletionTimestamp != nil ||
		claim == nil || claim.DeletionTimestamp != nil || claim.Status.Phase != corev1.ClaimBound {
		return out
	}
	if wal := s.Seen.WALs[ordinal]; s.DB.Spec.Storage.WAL != nil &&
		(wal == nil || wal.DeletionTimestamp != nil || wal.Status.Phase != corev1.ClaimBound) {
		return out
	}
	out.state, out.position = volumeState(answer), answer.Election.Position
	return out
}

// volumeState is what an agent says of its volume. It has never had data there if it is in no configuration of the
// quorum that it knows: who leads alone is in its own, and every other voter in that which made it one.
func volumeState(a protocol.Status) string {
	switch {
	case a.Data == protocol.DataPresent:
		return world.VolumeHasData
	case a.Data != protocol.DataEmpty || a.Election.Voter == "":
		return world.VolumeUnknown
	case a.Election.Configuration.Has(a.Election.Voter) || len(a.Election.TermHistory) > 0:
		return world.VolumeCleared
	}
	return world.VolumeNew
}

// settlesData is what is under way and settles what becomes of the data, "" for nothing. A restore that was begun
// because the data is lost is not meant.
func (s *lossTopic) settlesData() string {
	restore := s.DB.Status.Restore
	switch {
	case s.DB.DeletionTimestamp != nil:
		return "the SampleDB is being deleted"
	case s.Stop != nil:
		return "spec.stopped is being followed"
	case s.Upgrading():
		return "an upgrade to another major version is under way"
	case s.DB.Spec.Restore != nil && !s.IsRestored(s.DB.Spec.Restore.ID),
		s.InPlace() && restore.Cause != v1.CauseDataLost:
		return "spec.restore is being followed"
	}
	return ""
}

// beginAgain notes, before anything is done, that the SampleDB begins again from its archive.
func (s *lossTopic) beginAgain() {
	id := "lost-" + s.Now.UTC().Format("20060102-150405")
	archive := s.Archives()
	s.Restore = &v1.RestoreStatus{
		ID: id, Cause: v1.CauseDataLost, Instance: s.Loss.Onto,
		ArchiveEnd: archive.ArchivedLSN, ArchiveEndAt: archive.Latest,
	}
	s.AddWarning(world.EventDataLost, s.lossSentence())
}

// lossSentence says what is lost, how far the archive reaches, and what becomes of it.
func (s *lossTopic) lossSentence() string {
	words := s.Loss.Message
	switch s.Loss.Reason {
	case world.LossBusy:
		return words
	case world.LossNoArchive:
		return words + ". There is no archive (spec.backup.none): if a former PersistentVolume is still there, it " +
			"has the only copy"
	case world.LossNoBackup:
		return words + ", and no backup is known that is complete: if a former PersistentVolume is still there, it " +
			"has the only copy"
	}
	words += "; " + s.reach(s.Archives())
	if s.Loss.Reason == world.LossRestores {
		return words + ". The SampleDB begins again with that (spec.backup.whenDataIsLost)"
	}
	return words + ". If a former PersistentVolume is still there, keep it: it has everything. To begin again with " +
		"what the archive has: " + world.BringBack(s.DB.Name)
}

// hint is what to do where a restore that was begun by itself can't read all that the archive has had.
func (s *lossTopic) hint() string {
	if s.Restore.Cause == "" {
		return ""
	}
	return ". To begin again with what there is: " + world.BringBack(s.DB.Name)
}

// reach says how far the archive is known to reach, and what may be missing there.
func (s *lossTopic) reach(archive v1.BackupStatus) string {
	if archive.ArchivedLSN == "" || archive.Latest == nil {
		return "how far the archive reaches is not known before it is read"
	}
	return fmt.Sprintf("the archive reaches at least to %s of %s, and what was committed later may be missing: up to "+
		"%s of commits where the archive worked", archive.ArchivedLSN, archive.Latest.UTC().Format(time.RFC3339),
		s.Backup.MaxLag.Duration)
}

// begunAgain is the condition Restored of a SampleDB that has begun again from its archive.
func begunAgain(r *v1.RestoreStatus) world.Verdict {
	words := "no volume had the data any more: it begins again with " + broughtBack(r)
	if r.ArchiveEndAt == nil {
		return world.Yes(v1.ReasonRestored, words+". What was committed after that is missing")
	}
	return world.Yes(v1.ReasonRestored, words+
		fmt.Sprintf(". The archive was known to reach at least to %s of %s: what was "+
			"committed after the last transaction is missing", r.ArchiveEnd, r.ArchiveEndAt.UTC().Format(time.RFC3339)))
}

// DataLost is the condition Available where no volume has the data, nil elsewhere.
func (s *lossTopic) DataLost() *world.Verdict {
	restores := s.Loss.Reason == world.LossRestores || s.Loss.Reason == world.LossBusy
	switch {
	case !s.Loss.IsLost():
		return nil
	case restores && s.Restored.Status == metav1.ConditionFalse:
		return &s.Restored
	case s.Loss.Reason == world.LossBusy:
		return nil
	}
	return &world.Verdict{Status: metav1.ConditionFalse, Reason: v1.ReasonDataLost, Message: s.lossSentence()}
}
