// Package myapp says which Kubernetes objects a MyApp should have: pure functions from the spec, with golden files in
// testdata, so that a reviewer sees an object change. It must not import a client, a clock or anything that reads
// the world: what an object depends on besides the spec is a parameter.
package myapp

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/myapp/v1"
	"toban.dev/internal/naming"
)

// meta is the metadata of an object that belongs to the MyApp.
func meta(app *v1.MyApp, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name:            name,
		Namespace:       app.Namespace,
		Labels:          naming.AppLabels(app.Name),
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(app, v1.GroupVersion.WithKind("MyApp"))},
	}
}
