package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ImageStatus is what was found in the image that instances are made from.
type ImageStatus struct {
	// The image as the spec names it: spec.image, or the official one of the major version.
	Name string `json:"name"`

	// The image by its digest that all instances are made from, whatever a tag has become. It is not there before all
	// run one image, and where the kubelet does not say a digest.
	// +optional
	Runs string `json:"runs,omitempty"`

	// What the name stood for at the last look, by its digest: in the registry, or as a node had it where no registry
	// could be asked. It is not there where the kubelet says no digest.
	// +optional
	Reference string `json:"reference,omitempty"`

	// The PostgreSQL version in it, for instance 17.12.
	// +optional
	Version string `json:"version,omitempty"`

	// The C library in it, for instance glibc 2.41. Another one may sort texts in another order.
	// +optional
	CLibrary string `json:"cLibrary,omitempty"`

	// The version of ICU in it, for instance 76.1.
	// +optional
	ICU string `json:"icu,omitempty"`

	// The C library in the image that instances are made from (runs), where that was looked into.
	// +optional
	RunsCLibrary string `json:"runsCLibrary,omitempty"`

	// The version of ICU in the image that instances are made from, where that was looked into.
	// +optional
	RunsICU string `json:"runsICU,omitempty"`

	// The extensions in it with their versions, for instance pgcrypto 1.3: as many as there is room for.
	// +optional
	Extensions []string `json:"extensions,omitempty"`

	// When it was looked into last.
	// +optional
	LookedAt *metav1.Time `json:"lookedAt,omitempty"`

	// Why the registry could not be asked the last time. What is said of the image is then that of a node.
	// +optional
	Registry string `json:"registry,omitempty"`

	// Why it could not be looked into the last time. What is said of it is then from before.
	// +optional
	Problem string `json:"problem,omitempty"`
}
