package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// UpdateSpec says when the instances move on to a newer minor version of the image that the spec names.
//
// +kubebuilder:validation:XValidation:rule="has(self.window) || has(self.mode) && self.mode == 'OnRequest'",message="spec.update needs a window, in which the instances are replaced: give update.window, or update.mode: OnRequest"
type UpdateSpec struct {
	// Who begins an update: Automatic is by itself, as soon as the window opens; OnRequest is only by the annotation
	// toban.dev/update. Where it is not given: Automatic.
	// +optional
	Mode UpdateMode `json:"mode,omitempty"`

	// What becomes of extensions that are older than what a new image has: Update updates them
	// (ALTER EXTENSION … UPDATE) after a major upgrade, Keep leaves them and names them in status.finish. Where it is
	// not given: Keep.
	// +optional
	Extensions ExtensionPolicy `json:"extensions,omitempty"`

	// When an update may begin. One that has begun to replace instances goes on to its end.
	// +optional
	Window *UpdateWindow `json:"window,omitempty"`
}

// UpdateMode says who begins an update.
// +kubebuilder:validation:Enum=Automatic;OnRequest
type UpdateMode string

// The values of UpdateMode.
const (
	UpdateAutomatic UpdateMode = "Automatic"
	UpdateOnRequest UpdateMode = "OnRequest"
)

// UpdateWindow is a time that comes again each day, or on some days of the week.
type UpdateWindow struct {
	// The days of the week on which it opens. Every day where none is given.
	// +listType=set
	// +kubebuilder:validation:MaxItems=7
	// +optional
	Days []Weekday `json:"days,omitempty"`

	// The time of day at which it opens, such as 03:00.
	// +kubebuilder:validation:MaxLength=5
	// +kubebuilder:validation:XValidation:rule="self.matches('^([01][0-9]|2[0-3]):[0-5][0-9]$')",message="update.window.start must be a time of day from 00:00 to 23:59, such as 03:00"
	// +required
	Start string `json:"start"`

	// For how long it is open, for instance 2h. It may go on after midnight.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Format=duration
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('15m') && duration(self) <= duration('24h')",message="update.window.duration must be from 15m to 24h"
	// +required
	Duration metav1.Duration `json:"duration"`

	// The time zone of days and start, for instance Asia/Tokyo. UTC by default.
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Z]') && self != 'Local' && timestamp('2026-01-01T00:00:00Z').getHours(self) >= 0",message="update.window.timeZone must be the name of a time zone, such as Asia/Tokyo"
	// +optional
	TimeZone string `json:"timeZone,omitempty"`
}

// Weekday is a day of the week.
// +kubebuilder:validation:Enum=Sunday;Monday;Tuesday;Wednesday;Thursday;Friday;Saturday
type Weekday string

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

	// Why a node could not get the image, with step Failed.
	// +optional
	Failure string `json:"failure,omitempty"`

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
