package desired

import (
	"encoding/json"
	"maps"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
)

// Manifest is what brings a SampleDB back when it is gone: its own manifest, or that of the object that it was made
// for. The credentials go with it, so that it has its password again (credentials.Store).
func Manifest(db *v1.SampleDB, credentials string) *runtime.RawExtension {
	if madeFor := db.Annotations[naming.AnnotationManifest]; madeFor != "" && metav1.GetControllerOf(db) != nil {
		return &runtime.RawExtension{Raw: []byte(madeFor)}
	}
	spec := *db.Spec.DeepCopy()
	// What it has begun with and what it was set back to is done, and would not be asked for again.
	spec.RestoreFrom, spec.Restore = nil, nil
	return manifest(db, v1.GroupVersion.WithKind("SampleDB"), spec,
		map[string]string{naming.AnnotationCredentials: credentials})
}

// manifest is an object as a user would apply it, with some annotations more.
func manifest(
	object metav1.Object, kind schema.GroupVersionKind, spec any, annotations map[string]string,
) *runtime.RawExtension {
	of := map[string]any{"name": object.GetName(), "namespace": object.GetNamespace()}
	if labels := object.GetLabels(); len(labels) > 0 {
		of["labels"] = labels
	}
	if all := merged(usersOwn(object.GetAnnotations()), annotations); len(all) > 0 {
		of["annotations"] = all
	}
	text, err := json.Marshal(map[string]any{
		"apiVersion": kind.GroupVersion().String(), "kind": kind.Kind, "metadata": of, "spec": spec,
	})
	if err != nil {
		panic(err) // what came as JSON goes as JSON
	}
	return &runtime.RawExtension{Raw: text}
}

// usersOwn are the annotations that say something about the object for good: not a request, and not
// what kubectl applied last.
func usersOwn(annotations map[string]string) map[string]string {
	out := maps.Clone(annotations)
	maps.DeleteFunc(out, func(name, _ string) bool {
		ours := strings.HasPrefix(name, "toban.dev/") && name != naming.AnnotationDatabasesFrom
		return ours || strings.HasPrefix(name, "kubectl.kubernetes.io/")
	})
	return out
}
