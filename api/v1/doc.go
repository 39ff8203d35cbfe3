// Package v1 holds the kinds of the API group toban.dev: what a user declares
// and what the operator reports. It has types, validation rules and names of
// conditions, and no behaviour.
//
// +kubebuilder:object:generate=true
// +groupName=toban.dev
package v1

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/scheme"
)

var (
	// GroupVersion is the group and version of the kinds in this package.
	GroupVersion = schema.GroupVersion{Group: "toban.dev", Version: "v1"}

	// SchemeBuilder collects the kinds of this package.
	SchemeBuilder = &scheme.Builder{GroupVersion: GroupVersion}

	// AddToScheme adds the kinds of this package to a scheme.
	AddToScheme = SchemeBuilder.AddToScheme
)
