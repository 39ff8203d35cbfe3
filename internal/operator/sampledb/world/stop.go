package world

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/desired"
	"toban.dev/internal/operator/jobs"
	"toban.dev/internal/protocol"
)

// Poolers asks the poolers of SampleDBs.
type Poolers interface {
	// Waiting is what the poolers at some hosts have told last, without those that do not answer. From now on it is
	// told by Changed when one of them tells something else, and no other pooler of the SampleDB is asked.
	Waiting(cluster types.UID, hosts []string, config protocol.Config) map[string]protocol.PoolTells
}

// BusyForStop is what is under way that a stop would cut off, "" for nothing. An upgrade that has not sent clients away
// goes back to its beginning, and what pulls images is made anew.
func (s *stopFacts) BusyForStop() string {
	if s.RestoreBegun() {
		return "a restore"
	}
	if s.Upgrade.Closed() {
		return "the upgrade to PostgreSQL " + fmt.Sprint(s.Upgrade.To)
	}
	if desired.TwoSides(s.DB) {
		return "the blue/green upgrade to PostgreSQL " + fmt.Sprint(s.DB.Status.Upgrade.To)
	}
	for i := range s.Seen.Jobs {
		job := &s.Seen.Jobs[i]
		if jobs.Of(job, nil).Ended() || job.DeletionTimestamp != nil {
			continue
		}
		switch component := job.Labels[naming.LabelComponent]; {
		case component == naming.ComponentUpgrade, component == naming.ComponentImage:
		case component == naming.ComponentRehearse && s.Upgrade != nil && s.Upgrade.Step == v1.UpgradeRehearsing:
		default:
			return "Job " + job.Name
		}
	}
	return ""
}

// StopProof says what of a stopped database the archive has.
func (s *stopFacts) StopProof() string {
	stop := s.Stop
	switch stop.Archive {
	case v1.StopArchiveComplete:
		return fmt.Sprintf("the archive is complete: it has all WAL up to %s, where the last client had gone", stop.LSN)
	case v1.StopArchiveIncomplete:
		if stop.ArchivedLSN == "" {
			return fmt.Sprintf("the archive is not known to have the WAL up to %s, which is on the volumes", stop.LSN)
		}
		return fmt.Sprintf("the archive goes up to %s, and the WAL to %s: the rest is on the volumes",
			stop.ArchivedLSN, stop.LSN)
	case v1.StopArchiveNone:
		return "there is no archive: all data is on the volumes"
	case v1.StopArchiveUnknown:
	}
	return "it is not known whether the archive has all WAL, which is on the volumes"
}

// archivingStopped is the condition Archiving of a database that is stopped.
func (s *stopFacts) archivingStopped() Verdict {
	switch s.Stop.Archive {
	case v1.StopArchiveComplete:
		return Yes(v1.ReasonStopped, s.StopProof())
	case "":
		return No(v1.ReasonStopped, "the database was never started: the archive begins when it is")
	case v1.StopArchiveIncomplete, v1.StopArchiveUnknown, v1.StopArchiveNone:
	}
	return No(v1.ReasonArchiveIncomplete, s.StopProof())
}

// NotTold is a condition of which only running instances can tell, while none runs.
func NotTold() Verdict {
	return Verdict{metav1.ConditionUnknown, v1.ReasonStopped, "the database is stopped; it is known after the start"}
}

// HoldsWork says that nothing is to be begun that a stop would have to wait for. While it waits for a blue/green
// upgrade all goes on, because the upgrade does not end otherwise.
func (s *stopFacts) HoldsWork() bool {
	return s.Stop != nil && s.Stop.Step != v1.StopStarting &&
		(s.Stop.Step != v1.StopWaiting || !desired.TwoSides(s.DB))
}
