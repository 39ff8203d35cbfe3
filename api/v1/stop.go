package v1

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// StopStatus is how far a stop is, or the start after it.
type StopStatus struct {
	// Waiting, Closing, Proving, Stopping, Stopped or Starting. The database serves in Waiting.
	Step string `json:"step"`

	// When the step began; in Proving, when what it waits for last got on.
	// +optional
	Since *metav1.Time `json:"since,omitempty"`

	// When spec.stopWindows end, and the database is started again. It is not there where spec.stopped is true.
	// +optional
	Until *metav1.Time `json:"until,omitempty"`

	// Since when it sleeps (spec.sleepAfter).
	// +optional
	Asleep string `json:"asleep,omitempty"`

	// What is done, or what is waited for. The condition Ready has the same.
	// +optional
	Message string `json:"message,omitempty"`

	// How many instances were stopped. As many start again, before there are more or fewer.
	// +optional
	Instances int32 `json:"instances,omitempty"`

	// The primary that was stopped, and where its WAL ended when the last client had gone: all that clients have
	// committed is before that position.
	// +optional
	Primary string `json:"primary,omitempty"`
	// +optional
	LSN string `json:"lsn,omitempty"`

	// Whether the archive has all WAL up to that position: Complete, where its store has confirmed that; Incomplete;
	// Unknown, where the position is not known; None, where there is no archive.
	// +optional
	Archive StopArchive `json:"archive,omitempty"`

	// Up to where the archive goes, as far as that is known.
	// +optional
	ArchivedLSN string `json:"archivedLSN,omitempty"`

	// The instances that are not known to have received all WAL up to that position.
	// +listType=atomic
	// +optional
	Behind []string `json:"behind,omitempty"`
}

// The values of StopStatus.Step.
const (
	StopWaiting  = "Waiting"
	StopClosing  = "Closing"
	StopProving  = "Proving"
	StopStopping = "Stopping"
	StopStopped  = "Stopped"
	StopStarting = "Starting"
)

// StopArchive says whether the archive has all WAL.
// +kubebuilder:validation:Enum=Complete;Incomplete;Unknown;None
type StopArchive string

// The values of StopArchive.
const (
	StopArchiveComplete   StopArchive = "Complete"
	StopArchiveIncomplete StopArchive = "Incomplete"
	StopArchiveUnknown    StopArchive = "Unknown"
	StopArchiveNone       StopArchive = "None"
)

// Closed says that no client is let in, because the database is stopped or about to be.
func (s *StopStatus) Closed() bool {
	return s != nil && (s.Step == StopClosing || s.Step == StopProving || s.Down())
}

// Down says that no instance is to run.
func (s *StopStatus) Down() bool {
	return s != nil && (s.Step == StopStopping || s.Step == StopStopped)
}

// Sleeps says that the database is stopped, or about to be, because nobody used it, and is not being started: its
// poolers stay, and hold their clients.
func (s *StopStatus) Sleeps() bool { return s != nil && s.Asleep != "" && s.Step != StopStarting }

// Sleep is spec.sleepAfter, 0 where the database is not to sleep. It needs a pooler, which is what wakes it.
func (s *SampleDBSpec) Sleep() time.Duration {
	after, err := time.ParseDuration(s.SleepAfter)
	if err != nil || s.Pooler == nil {
		return 0
	}
	return after
}

// Stops says that a SampleDB is stopped, is being stopped or is about to be: nothing new is begun with it.
func (db *SampleDB) Stops() bool {
	return db.DeletionTimestamp == nil && (db.Spec.Stopped || db.Status.Stop.Closed())
}
