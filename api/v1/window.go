package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Window is a time that comes again each day, or on some days of the week.
type Window struct {
	// The days of the week on which it opens. Every day where none is given.
	// +listType=set
	// +kubebuilder:validation:MaxItems=7
	// +optional
	Days []Weekday `json:"days,omitempty"`

	// The time of day at which it opens, such as 03:00.
	// +kubebuilder:validation:MaxLength=5
	// +kubebuilder:validation:XValidation:rule="self.matches('^([01][0-9]|2[0-3]):[0-5][0-9]$')",message="start must be a time of day from 00:00 to 23:59, such as 03:00"
	// +required
	Start string `json:"start"`

	// For how long it is open, for instance 2h. It may go on after midnight.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Format=duration
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('15m') && duration(self) <= duration('24h')",message="duration must be from 15m to 24h"
	// +required
	Duration metav1.Duration `json:"duration"`

	// The time zone of days and start, for instance Asia/Tokyo. UTC by default.
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Z]') && self != 'Local' && timestamp('2026-01-01T00:00:00Z').getHours(self) >= 0",message="timeZone must be the name of a time zone, such as Asia/Tokyo"
	// +optional
	TimeZone string `json:"timeZone,omitempty"`
}

// Weekday is a day of the week.
// +kubebuilder:validation:Enum=Sunday;Monday;Tuesday;Wednesday;Thursday;Friday;Saturday
type Weekday string
