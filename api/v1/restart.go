package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// RestartStatus is how far a restart of the servers is that the annotation toban.dev/restart asks for, or how the last
// one ended.
type RestartStatus struct {
	// Waiting, Restarting, Restarted or Refused.
	Step string `json:"step"`

	// The same for people.
	// +optional
	Message string `json:"message,omitempty"`

	// What was asked for: all, or the name of an instance.
	Asked string `json:"asked"`

	// When it began and ended.
	// +optional
	StartedAt *metav1.Time `json:"startedAt,omitempty"`
	// +optional
	CompletedAt *metav1.Time `json:"completedAt,omitempty"`

	// The servers that are still to restart.
	// +listType=map
	// +listMapKey=instance
	// +optional
	Left []ServerRun `json:"left,omitempty"`
}

// ServerRun is one run of an instance's server, from its start to its end.
type ServerRun struct {
	// The name of the instance.
	Instance string `json:"instance"`
	// What tells this run from any other of the instance.
	Run string `json:"run"`
}

// The values of RestartStatus.Step.
const (
	RestartWaiting    = "Waiting"
	RestartRestarting = "Restarting"
	RestartRestarted  = "Restarted"
	RestartRefused    = "Refused"
)

// Ended says that the restart is over.
func (r *RestartStatus) Ended() bool {
	return r != nil && (r.Step == RestartRestarted || r.Step == RestartRefused)
}
