package console

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
)

// Seen are the objects of which a view is made. It is of one database, or of all.
type Seen struct {
	Databases []v1.SampleDB
	Backups   []v1.DatabaseBackup
	Restores  []v1.DatabaseRestore
	Drills    []v1.FaultDrill
	Events    []corev1.Event
	Pods      []corev1.Pod
	// KnowsPods says that Pods could be listed: then an instance without a Pod has none.
	KnowsPods bool
	// KnowsBackups says the same of DatabaseBackups: then no backup is none.
	KnowsBackups bool
}

// Trouble is why something is not known, or not new.
type Trouble struct {
	// Kind is forbidden, away or failed.
	Kind string `json:"kind"`
	// Right is what the user may not do, such as "list databasebackups.toban.dev"; with Kind forbidden.
	Right string `json:"right,omitempty"`
	// Namespace is where, "" for all.
	Namespace string `json:"namespace,omitempty"`
	// Message are the API's own words.
	Message string `json:"message"`
	// Since is when it began.
	Since *metav1.Time `json:"since,omitempty"`
}

// The kinds of Trouble.
const (
	troubleForbidden = "forbidden"
	troubleAway      = "away"
	troubleFailed    = "failed"
)

// The levels of a database or a condition, the one that needs somebody most first.
const (
	LevelDown = "down" // it takes no writes, and is to
	LevelAct  = "act"  // somebody has to do something, or data is at risk
	LevelWarn = "warn" // something is not as it should be, and the database serves
	LevelBusy = "busy" // it changes; to wait is enough
	LevelWell = "well"
	LevelOff  = "off" // it is stopped, because somebody wants that
)

var levels = []string{LevelDown, LevelAct, LevelWarn, LevelBusy, LevelWell, LevelOff}

// urgency orders levels: the least is the most urgent.
func urgency(level string) int { return slices.Index(levels, level) }

// The phases of a SampleDB that say more than its conditions.
const (
	phaseBlocked  = "Blocked"
	phaseStopped  = "Stopped"
	phaseSleeping = "Sleeping"
	phaseStopping = "Stopping"
	phaseStarting = "Starting"
	phaseDeleting = "Deleting"
)
