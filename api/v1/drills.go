package v1

// DrillsSpec has a SampleDB broken on purpose by a schedule. docs/faultdrill.md has all of it.
//
// +kubebuilder:validation:XValidation:rule="self.keep >= 1 && self.keep <= 100",message="drills.keep must be from 1 to 100"
type DrillsSpec struct {
	// When a FaultDrill is created, as in cron. One that could not be within ten minutes is left out.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=100
	// +required
	Schedule string `json:"schedule"`

	// The time zone of the schedule. UTC by default.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	TimeZone string `json:"timeZone,omitempty"`

	// The faults, as in a FaultDrill. Each drill has the next one, again and again.
	// +kubebuilder:default={ServerKilled,PodDeleted}
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:Enum=ServerKilled;ServerHung;AgentKilled;PodDeleted;PodKilled;PoolersKilled;VolumeLost;DiskFull;ReplayPaused;APIAway;ArchiveAway;LeaderKilled
	// +listType=atomic
	// +optional
	Faults []FaultDrillFault `json:"faults,omitempty"`

	// Which instance is broken.
	// +kubebuilder:validation:Enum=Primary;Standby
	// +kubebuilder:default=Primary
	// +optional
	Instance FaultDrillInstance `json:"instance,omitempty"`

	// What must be true for a drill to pass.
	// +kubebuilder:default={}
	// +optional
	Objectives FaultDrillObjectives `json:"objectives,omitempty"`

	// How many of these FaultDrills are kept when they are over: from 1 to 100.
	// +kubebuilder:default=10
	// +optional
	Keep int32 `json:"keep,omitempty"`
}
