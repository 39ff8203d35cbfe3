package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// RehearsalStatus is what came of an upgrade to another major version that was done on a copy of the data, or how far
// it is.
type RehearsalStatus struct {
	// Running, Passed, Problems, NotDone (it is not known whether there are problems) or Skipped.
	Result string `json:"result"`

	// The same for people.
	// +optional
	Message string `json:"message,omitempty"`

	// What identifies it.
	// +optional
	ID string `json:"id,omitempty"`

	// The major versions, and the image of the new one.
	// +optional
	From int32 `json:"from,omitempty"`
	// +optional
	To int32 `json:"to,omitempty"`
	// +optional
	Image string `json:"image,omitempty"`

	// When it ended.
	// +optional
	Time *metav1.Time `json:"time,omitempty"`

	// How long the part took during which a real upgrade has no clients: from the old server that has stopped to the
	// new one that takes connections.
	// +kubebuilder:validation:Format=duration
	// +optional
	WithoutWrites *metav1.Duration `json:"withoutWrites,omitempty"`

	// What was a problem, a sentence each.
	// +listType=atomic
	// +optional
	Problems []string `json:"problems,omitempty"`

	// The DatabaseBackup that was restored, and the last transaction in the copy.
	// +optional
	Backup string `json:"backup,omitempty"`
	// +optional
	LastTransactionAt *metav1.Time `json:"lastTransactionAt,omitempty"`

	// How large the databases of the copy are.
	// +optional
	Bytes int64 `json:"bytes,omitempty"`

	// How the files became those of the new version.
	// +optional
	Method string `json:"method,omitempty"`

	// The steps that were done, with their times.
	// +listType=atomic
	// +optional
	Steps []VerificationStep `json:"steps,omitempty"`
}

// The values of RehearsalStatus.Result.
const (
	RehearsalRunning  = "Running"
	RehearsalPassed   = "Passed"
	RehearsalProblems = "Problems"
	RehearsalNotDone  = "NotDone"
	RehearsalSkipped  = "Skipped"
)

// Ended says that there is a result.
func (r *RehearsalStatus) Ended() bool {
	return r != nil && r.Result != "" && r.Result != RehearsalRunning
}
