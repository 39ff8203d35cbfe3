package world

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/operator/desired"
	"toban.dev/internal/protocol"
	"toban.dev/internal/wal"
)

// archiveBehind is for how much longer than it may WAL waits for the archive before it is said to be behind.
const archiveBehind = time.Minute

// ArchiveState is what the primary says of its archive, nil where that is not known: an agent that has just been told
// of another archive may still say how far the former one is.
func (s *archiveFacts) ArchiveState() *protocol.ArchiveStatus {
	state := s.Seen.Answers[s.Primary()].Archive
	if state != nil && state.Place != "" && s.Config.Archive != nil && state.Place != s.Config.Archive.Place() {
		return nil
	}
	return state
}

// Archiving is true when the WAL reaches the archive.
func (s *archiveFacts) Archiving() Verdict {
	primary, state := s.Primary(), s.ArchiveState()
	switch {
	case s.Backup == nil:
		return No(v1.ReasonNoArchive, "spec.backup.none: there is no archive and no backup. Data that is deleted "+
			"or changed by mistake, or lost with the volumes, can't be restored")
	case s.Stop.Down():
		return s.archivingStopped()
	case primary == "" && len(s.Silent()) > 0:
		return Unknown("the agents could not be asked")
	case primary == "":
		return No(v1.ReasonArchiveStarting, "waits for a primary")
	case state == nil:
		return No(v1.ReasonArchiveStarting, primary+" has not reported the state of its archive yet")
	case state.Reason == protocol.ArchiveTaken:
		return No(v1.ReasonArchiveTaken, state.Error)
	case state.Reason == protocol.ArchiveAhead:
		return No(v1.ReasonArchiveAhead, state.Error+". To get back what it has lost: "+BringBack(s.DB.Name)+
			". To continue with the present data, give spec.backup.store another prefix")
	case state.Reason == protocol.ArchiveUnfit:
		return No(v1.ReasonArchiveStoreUnfit, state.Error)
	case state.Reason == protocol.ArchiveFull:
		return No(v1.ReasonArchiveFull, state.Error+": give the store more room, or keep less (spec.backup.retention)")
	case state.Reason != "":
		return No(v1.ReasonArchiveFailing, state.Error)
	case s.OpenGap() != "":
		return No(v1.ReasonArchiveGap, fmt.Sprintf("WAL %s is in no archive: a new base backup is taken", s.OpenGap()))
	case state.LSN == "":
		return No(v1.ReasonArchiveStarting, primary+" is finding the end of the archive")
	case state.LagSeconds > (s.Backup.MaxLag.Duration + archiveBehind).Seconds():
		return No(v1.ReasonArchiveBehind, fmt.Sprintf("WAL has waited for the archive for longer than %.0f s",
			(s.Backup.MaxLag.Duration+archiveBehind).Seconds()))
	}
	return Yes(v1.ReasonArchiving, "the WAL reaches the archive as it is written")
}

// OpenGap is the gap that the primary knows of, "" where there is none or where a backup begins behind it.
func (s *archiveFacts) OpenGap() string {
	state := s.ArchiveState()
	if state == nil || state.Gap == "" {
		return ""
	}
	end, known := state.GapEndsAt()
	if !known {
		return state.Gap // better a backup too many
	}
	for _, b := range s.Seen.Backups {
		start, err := wal.ParseLSN(b.Status.StartLSN)
		if err == nil && start >= end && s.InArchive(&b) {
			return ""
		}
	}
	return state.Gap
}

// InArchive says that a backup is complete and in the archive of this very SampleDB.
func (s *archiveFacts) InArchive(b *v1.DatabaseBackup) bool {
	return Complete(b) && s.IsIn(b, s.ArchivePath())
}

// IsIn says that a backup is, or was to be, in the folder of an archive in the store that is used now.
func (s *archiveFacts) IsIn(b *v1.DatabaseBackup, path string) bool {
	return b.Status.Archive != nil && b.Status.Archive.Path == path &&
		desired.StoreOf(b, s.DB.Name) == desired.PresentStore(s.DB)
}

// Complete says that a backup is, and has not been removed.
func Complete(b *v1.DatabaseBackup) bool {
	return meta.IsStatusConditionTrue(b.Status.Conditions, v1.ConditionComplete) && b.Status.ID != "" &&
		b.Status.Archive != nil
}

// ArchivePath is the folder of the archive of the major version that runs.
func (s *archiveFacts) ArchivePath() string {
	return desired.ArchivePath(s.DB, desired.VersionsOf(s.Config))
}

// Ended says that a backup is over, well or not.
func Ended(b *v1.DatabaseBackup) bool {
	return b.Status.CompletedAt != nil || b.DeletionTimestamp != nil
}

// BackupOf is the SampleDB's complete backup of a name in the archive, nil where there is none.
func (s *archiveFacts) BackupOf(name string) *v1.DatabaseBackup {
	for i := range s.Seen.Backups {
		if b := &s.Seen.Backups[i]; b.Name == name && s.InArchive(b) {
			return b
		}
	}
	return nil
}

// RehearsedBackups are the backups, by their ids, that a rehearsal restores.
func (s *archiveFacts) RehearsedBackups() (ids []string) {
	running := []*v1.RehearsalStatus{s.Rehearsal}
	if s.Upgrade != nil {
		running = append(running, s.Upgrade.Rehearsal)
	}
	for _, r := range running {
		if r == nil || r.Ended() {
			continue
		}
		if b := s.BackupOf(r.Backup); b != nil {
			ids = append(ids, b.Status.ID)
		}
	}
	return ids
}

// LastBackup is the last complete one in the archive, nil where there is none.
func (s *archiveFacts) LastBackup() *v1.DatabaseBackup {
	var last *v1.DatabaseBackup
	for i := range s.Seen.Backups {
		b := &s.Seen.Backups[i]
		if s.InArchive(b) && (last == nil || last.Status.CompletedAt.Before(b.Status.CompletedAt)) {
			last = b
		}
	}
	return last
}
