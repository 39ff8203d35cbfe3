package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ExtensionPolicy says what becomes of extensions that are older than what a new image has.
// +kubebuilder:validation:Enum=Update;Keep
type ExtensionPolicy string

// The values of ExtensionPolicy.
const (
	ExtensionsUpdate ExtensionPolicy = "Update"
	ExtensionsKeep   ExtensionPolicy = "Keep"
)

// FinishPart is one of the things that are left to do in the databases after a change of the image.
// +kubebuilder:validation:Enum=Statistics;Indexes;Extensions
type FinishPart string

// The values of FinishPart, in the order in which they are done.
const (
	FinishStatistics FinishPart = "Statistics"
	FinishIndexes    FinishPart = "Indexes"
	FinishExtensions FinishPart = "Extensions"
)

// FinishStatus is what is left to do in the databases after a change of the image, or was done last.
type FinishStatus struct {
	// What has made it due, for instance "17.6 to 17.7", or a request.
	// +optional
	For string `json:"for,omitempty"`

	// What is to be done.
	// +listType=atomic
	// +optional
	Parts []FinishPart `json:"parts,omitempty"`

	// Waiting, Running, Failed or Done.
	Step string `json:"step"`

	// Why it is so, for people.
	// +optional
	Message string `json:"message,omitempty"`

	// How many things of the present part are done, and how many there are.
	// +optional
	Done int32 `json:"done,omitempty"`

	// See done.
	// +optional
	Total int32 `json:"total,omitempty"`

	// What is being done: the name of an index, or a part.
	// +optional
	Current string `json:"current,omitempty"`

	// How many indexes were rebuilt.
	// +optional
	Rebuilt int32 `json:"rebuilt,omitempty"`

	// How many of them were checked before, where the image has the extension amcheck.
	// +optional
	Checked int32 `json:"checked,omitempty"`

	// How many of those checked were really out of order.
	// +optional
	OutOfOrder int32 `json:"outOfOrder,omitempty"`

	// What is left to you: tables whose rows may be in a wrong partition, and extensions that are older than what the
	// image has.
	// +listType=atomic
	// +optional
	Left []string `json:"left,omitempty"`

	// Unique indexes that can't be rebuilt because rows have the same key, with the key's columns.
	// +listType=atomic
	// +optional
	Duplicates []string `json:"duplicates,omitempty"`

	// What else could not be done, with why.
	// +listType=atomic
	// +optional
	Failures []string `json:"failures,omitempty"`

	// When the step began.
	// +optional
	Since *metav1.Time `json:"since,omitempty"`
}

// The values of FinishStatus.Step.
const (
	FinishWaiting = "Waiting"
	FinishRunning = "Running"
	FinishFailed  = "Failed"
	FinishDone    = "Done"
)
