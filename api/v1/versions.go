package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ImageStatus is what was found in the image that instances are made from.
type ImageStatus struct {
	// The image as the instances' Pods name it.
	Name string `json:"name"`

	// The same by its digest, as the registry had it. It is not there where no registry could be asked.
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
