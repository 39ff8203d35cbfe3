package sampledb

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
	"toban.dev/internal/protocol"
)

// lossTopic says whether the data is lost, and what can be done.
type lossTopic struct{ restoreBase }

// The reasons of decisions about data that is lost for good (docs/lostdata.md), in the order in which they are checked.
const (
	lossNoDatabase = "NoDatabase" // nothing was there that could be lost
	lossNone       = "Primary"    // an instance takes writes
	lossUnknown    = "Unknown"    // an instance, or its volume, can't be asked
	lossMajority   = "Majority"   // too few instances have their data to elect one of them
	lossHasData    = "HasData"    // an instance has data
	lossBusy       = "Busy"       // a restore, an upgrade, a stop or a deletion is under way
	lossLeft       = "VolumeLeft" // the volume of an instance that was scaled away is still there
	lossDirectory  = "Directory"  // on a volume that has had the data its directory is gone
	lossNoArchive  = "NoArchive"  // the spec does without an archive
	lossNoBackup   = "NoBackup"   // there is nothing in it that can be restored, as far as is known
	lossWaits      = "Waits"      // the spec does not allow to begin again from it
	lossRestores   = "Restores"   // the SampleDB begins again from its archive
)

// The states of an instance's volume.
const (
	volumeUnknown = ""     // it was not read, or not understood
	volumeHasData = "data" // there is data
	volumeNew     = "new"  // there is none, and the instance has never had any there
	volumeCleared = "gone" // there is none, and there has been
)

// lossView is what the decision about lost data is made of.
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

// loss is what was decided: why, in a word and in a sentence, and onto the volume of which instance the archive is
// to be restored where somebody wants that, "" where that is not known.
type loss struct {
	reason, message, onto string
}

// decideLoss decides whether the data is lost for good, and what follows. Unknown is not lost: an instance that is
// away, a node that is cut off or a Pod that does not start leads to lossUnknown.
func decideLoss(v lossView) loss {
	switch {
	case !v.database:
		return loss{reason: lossNoDatabase}
	case v.primary != "":
		return loss{reason: lossNone}
	case len(v.in(volumeUnknown)) > 0:
		return loss{reason: lossUnknown}
	case len(v.in(volumeHasData)) == 0:
		return v.lost()
	case !v.elects && len(v.in(volumeHasData)) < len(v.volumes):
		return loss{lossMajority, fmt.Sprintf("the volumes of %s are without data, and %s may lack what was committed",
			names(v.in(volumeNew, volumeCleared)), names(v.in(volumeHasData))), v.furthest()}
	}
	return loss{reason: lossHasData}
}

// lost is the decision where it is known that no volume of an instance has data.
func (v lossView) lost() loss {
	out := loss{message: "no volume has the data any more: that of " + names(v.volumes) + " is new and empty"}
	out.onto = v.volumes[0].instance
	switch cleared := v.in(volumeCleared); {
	case v.busy != "":
		out.reason, out.message = lossBusy, out.message+"; "+v.busy
	case len(v.left) > 0:
		out.reason, out.message = lossLeft, fmt.Sprintf("no instance has the data any more: the volume of %s is new "+
			"and empty; %s of an instance that was scaled away is still there, and may have some (spec.instances)",
			names(v.volumes), strings.Join(v.left, ", "))
	case len(cleared) > 0:
		out.reason, out.message = lossDirectory, fmt.Sprintf(
			"no volume has the data any more: on that of %s, which has had it, the data directory is gone",
			names(cleared))
	case !v.archive:
		out.reason, out.onto = lossNoArchive, ""
	case !v.backup:
		out.reason, out.onto = lossNoBackup, ""
	case !v.allowed:
		out.reason = lossWaits
	default:
		out.reason = lossRestores
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
	return slices.MaxFunc(v.in(volumeHasData), func(a, b instanceVolume) int {
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

// isLost says that no volume has the data.
func (l loss) isLost() bool {
	return slices.Contains([]string{
		lossBusy, lossLeft, lossDirectory, lossNoArchive, lossNoBackup, lossWaits, lossRestores,
	}, l.reason)
}

// goesOn says that a restore which was begun because the data is lost is still wanted: nothing speaks against it. While
// its data is put in place no instance can be asked.
func (l loss) goesOn() bool { return l.reason == lossRestores || l.reason == lossUnknown }

// lossView is what the scope knows of it.
func (s *lossTopic) lossView() lossView {
	backups := s.archives()
	v := lossView{
		database: s.config.SystemIdentifier != "", primary: s.primary(), busy: s.settlesData(),
		elects:  s.mayElect(),
		archive: s.backup != nil, backup: backups.LastBackup != "" || s.lastBackup() != nil,
	}
	v.allowed = v.archive && s.backup.WhenDataIsLost == v1.DataLostRestore
	for ordinal := range s.instances() {
		v.volumes = append(v.volumes, s.instanceVolume(ordinal))
	}
	for ordinal, claim := range s.seen.claims {
		if ordinal >= s.instances() {
			v.left = append(v.left, claim.Name)
		}
	}
	slices.Sort(v.left)
	return v
}

// instanceVolume is what is known of the volume of an instance: what its agent says, if its Pod and the claim are there
// to stay.
func (s *lossTopic) instanceVolume(ordinal int) instanceVolume {
	out := instanceVolume{instance: naming.Instance(s.db.Name, ordinal)}
	pod, claim := s.seen.pods[ordinal], s.seen.claims[ordinal]
	answer, known := s.seen.answers[out.instance]
	if !known || pod == nil || pod.DeletionTimestamp != nil ||
		claim == nil || claim.DeletionTimestamp != nil || claim.Status.Phase != corev1.ClaimBound {
		return out
	}
	if wal := s.seen.wals[ordinal]; s.db.Spec.Storage.WAL != nil &&
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
		return volumeHasData
	case a.Data != protocol.DataEmpty || a.Election.Voter == "":
		return volumeUnknown
	case a.Election.Configuration.Has(a.Election.Voter) || len(a.Election.TermHistory) > 0:
		return volumeCleared
	}
	return volumeNew
}

// settlesData is what is under way and settles what becomes of the data, "" for nothing. A restore that was begun
// because the data is lost is not meant.
func (s *lossTopic) settlesData() string {
	restore := s.db.Status.Restore
	switch {
	case s.db.DeletionTimestamp != nil:
		return "the SampleDB is being deleted"
	case s.stop != nil:
		return "spec.stopped is being followed"
	case s.upgrading():
		return "an upgrade to another major version is under way"
	case s.db.Spec.Restore != nil && !s.isRestored(s.db.Spec.Restore.ID),
		s.inPlace() && restore.Cause != v1.CauseDataLost:
		return "spec.restore is being followed"
	}
	return ""
}

// beginAgain notes, before anything is done, that the SampleDB begins again from its archive.
func (s *lossTopic) beginAgain() {
	id := "lost-" + s.now.UTC().Format("20060102-150405")
	archive := s.archives()
	s.restore = &v1.RestoreStatus{
		ID: id, Cause: v1.CauseDataLost, Instance: s.loss.onto,
		ArchiveEnd: archive.ArchivedLSN, ArchiveEndAt: archive.Latest,
	}
	s.addWarning(eventDataLost, s.lossSentence())
}

// lossSentence says what is lost, how far the archive reaches, and what becomes of it.
func (s *lossTopic) lossSentence() string {
	words := s.loss.message
	switch s.loss.reason {
	case lossBusy:
		return words
	case lossNoArchive:
		return words + ". There is no archive (spec.backup.none): if a former PersistentVolume is still there, it " +
			"has the only copy"
	case lossNoBackup:
		return words + ", and no backup is known that is complete: if a former PersistentVolume is still there, it " +
			"has the only copy"
	}
	words += "; " + s.reach(s.archives())
	if s.loss.reason == lossRestores {
		return words + ". The SampleDB begins again with that (spec.backup.whenDataIsLost)"
	}
	return words + ". If a former PersistentVolume is still there, keep it: it has everything. To begin again with " +
		"what the archive has: " + bringBack(s.db.Name)
}

// bringBack is the command that begins again with what the archive has.
func bringBack(name string) string { return "kubectl toban restore " + name + " --to latest" }

// hint is what to do where a restore that was begun by itself can't read all that the archive has had.
func (s *lossTopic) hint() string {
	if s.restore.Cause == "" {
		return ""
	}
	return ". To begin again with what there is: " + bringBack(s.db.Name)
}

// reach says how far the archive is known to reach, and what may be missing there.
func (s *lossTopic) reach(archive v1.BackupStatus) string {
	if archive.ArchivedLSN == "" || archive.Latest == nil {
		return "how far the archive reaches is not known before it is read"
	}
	return fmt.Sprintf("the archive reaches at least to %s of %s, and what was committed later may be missing: up to "+
		"%s of commits where the archive worked", archive.ArchivedLSN, archive.Latest.UTC().Format(time.RFC3339),
		s.backup.MaxLag.Duration)
}

// begunAgain is the condition Restored of a SampleDB that has begun again from its archive.
func begunAgain(r *v1.RestoreStatus) verdict {
	words := "no volume had the data any more: it begins again with " + broughtBack(r)
	if r.ArchiveEndAt == nil {
		return yes(v1.ReasonRestored, words+". What was committed after that is missing")
	}
	return yes(v1.ReasonRestored, words+fmt.Sprintf(". The archive was known to reach at least to %s of %s: what was "+
		"committed after the last transaction is missing", r.ArchiveEnd, r.ArchiveEndAt.UTC().Format(time.RFC3339)))
}

// dataLost is the condition Available where no volume has the data, nil elsewhere.
func (s *lossTopic) dataLost() *verdict {
	restores := s.loss.reason == lossRestores || s.loss.reason == lossBusy
	switch {
	case !s.loss.isLost():
		return nil
	case restores && s.restored.status == metav1.ConditionFalse:
		return &s.restored
	case s.loss.reason == lossBusy:
		return nil
	}
	return &verdict{metav1.ConditionFalse, v1.ReasonDataLost, s.lossSentence()}
}
