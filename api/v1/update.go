package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// UpdateSpec says when the instances move on to a newer minor version of the image that the spec names.
//
// +kubebuilder:validation:MinProperties=1
type UpdateSpec struct {
	// Who begins an update: Automatic is by itself, as soon as the window opens; OnRequest is only by the annotation
	// toban.dev/update. By default: Automatic.
	// +optional
	Mode UpdateMode `json:"mode,omitempty"`

	// What becomes of extensions that are older than what a new image has: Update updates them after a major upgrade
	// (ALTER EXTENSION), Keep names them in status.finish. By default: Keep.
	// +optional
	Extensions ExtensionPolicy `json:"extensions,omitempty"`

	// When an update may begin. One that has begun to do so goes on to its end.
	// +optional
	Window *Window `json:"window,omitempty"`

	// The zone of the quiet hour, and of a window without one: UTC by default.
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="timestamp('2026-01-01T00:00:00Z').getHours(self) >= 0",message="timeZone must be the name of a time zone, such as Asia/Tokyo"
	// +optional
	TimeZone string `json:"timeZone,omitempty"`

	// Newer minor versions on request alone.
	// +optional
	None bool `json:"none"` // always written: update is not empty then
}

// UpdateMode says who begins an update.
// +kubebuilder:validation:Enum=Automatic;OnRequest
type UpdateMode string

// The values of UpdateMode.
const (
	UpdateAutomatic UpdateMode = "Automatic"
	UpdateOnRequest UpdateMode = "OnRequest"
)

// UpdateStatus is how far an update is that waits or is under way.
type UpdateStatus struct {
	// Waiting, Pulling, Replacing or Failed. Nothing is touched before Replacing.
	Step string `json:"step"`

	// Why it is so, in one word for programs.
	// +optional
	Reason string `json:"reason,omitempty"`

	// The same for people.
	// +optional
	Message string `json:"message,omitempty"`

	// The PostgreSQL version that runs, or the versions.
	// +optional
	From string `json:"from,omitempty"`

	// The PostgreSQL version that will run.
	// +optional
	To string `json:"to,omitempty"`

	// The image that will run, by its digest.
	// +optional
	Image string `json:"image,omitempty"`

	// What is still to be done, in this order.
	// +optional
	Left []string `json:"left,omitempty"`

	// Why it did not begin the last time.
	// +optional
	Failure string `json:"failure,omitempty"`

	// When it begins by itself.
	// +optional
	Begins *metav1.Time `json:"begins,omitempty"`

	// When the step began.
	// +optional
	Since *metav1.Time `json:"since,omitempty"`
}

// The values of UpdateStatus.Step.
const (
	UpdateWaiting   = "Waiting"
	UpdatePulling   = "Pulling"
	UpdateReplacing = "Replacing"
	UpdateFailed    = "Failed"
)
