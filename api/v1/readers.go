package v1

// ReadersSpec says how many readers there are, and who serves reads. docs/readers.md has what they are.
//
// +kubebuilder:validation:XValidation:rule="!has(self.autoscale) || !has(self.count) || self.count == 0",message="readers.count and readers.autoscale exclude each other: the one is a fixed number, the other follows the load"
type ReadersSpec struct {
	// How many readers there are, from 0 to 50. One that is removed loses its volume at once: nothing on it is the
	// only copy. More than 5 restart the servers once, standbys first, for more connections for replication.
	// +kubebuilder:validation:XValidation:rule="self >= 0 && self <= 50",message="readers.count must be from 0 to 50"
	// +optional
	Count int32 `json:"count,omitempty"`

	// Has the number of readers follow their use of the CPU, by a HorizontalPodAutoscaler NAME-readers.
	// +optional
	Autoscale *ReadersAutoscale `json:"autoscale,omitempty"`

	// Whether the Service NAME-ro leads to readers only. Else it leads to all standbys, readers or not.
	// +optional
	Only bool `json:"only,omitempty"`
}

// ReadersAutoscale says how the number of readers follows their load.
//
// +kubebuilder:validation:XValidation:rule="self.min <= self.max",message="readers.autoscale.min can't be more than readers.autoscale.max"
type ReadersAutoscale struct {
	// The least number of readers.
	// +kubebuilder:default=1
	// +kubebuilder:validation:XValidation:rule="self >= 1 && self <= 50",message="readers.autoscale.min must be from 1 to 50"
	// +optional
	Min int32 `json:"min"`

	// The greatest number of readers. More than 5 restart the servers once, as with count.
	// +kubebuilder:validation:XValidation:rule="self >= 1 && self <= 50",message="readers.autoscale.max must be from 1 to 50"
	// +required
	Max int32 `json:"max"`

	// The use of the CPU that is aimed at, in hundredths of what resources.requests.cpu asks for.
	// +kubebuilder:default=70
	// +kubebuilder:validation:XValidation:rule="self >= 10 && self <= 400",message="readers.autoscale.cpu must be from 10 to 400, in hundredths of resources.requests.cpu"
	// +optional
	CPU int32 `json:"cpu"`
}

// ReadersStatus is how the readers are.
type ReadersStatus struct {
	// How many are wanted now: by the spec, or by the HorizontalPodAutoscaler.
	Desired int32 `json:"desired"`

	// How many of them stream and answer queries.
	Ready int32 `json:"ready"`

	// The readers, one by one.
	// +listType=map
	// +listMapKey=name
	// +optional
	Instances []ReaderStatus `json:"instances,omitempty"`
}

// ReaderStatus is one reader as its agent describes it.
type ReaderStatus struct {
	// The name of the Pod.
	Name string `json:"name"`

	// Whether it streams and answers queries.
	Ready bool `json:"ready"`

	// Why it is what it is, in one word for programs.
	// +optional
	Reason string `json:"reason,omitempty"`

	// The same for people.
	// +optional
	Message string `json:"message,omitempty"`
}
