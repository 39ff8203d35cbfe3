package desired

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	pgv1 "toban.dev/api/postgresql/v1"
	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
)

// Object is a SampleDB or a PostgreSQL: the kinds that a manifest of ours makes.
type Object interface {
	metav1.Object
	runtime.Object
}

// manifestOf is all that a manifest of ours has: no owner, no finalizer, no status.
type manifestOf[S any] struct {
	metav1.TypeMeta `json:",inline"`

	Metadata struct {
		Name        string            `json:"name"`
		Namespace   string            `json:"namespace"`
		Labels      map[string]string `json:"labels"`
		Annotations map[string]string `json:"annotations"`
	} `json:"metadata"`
	Spec S `json:"spec"`
}

// ReadManifest is what a manifest makes, a *v1.SampleDB or a *pgv1.PostgreSQL. It may have come through an annotation,
// a status, or a store, and so from somebody with fewer rights than who makes it again: another kind, and anything that
// the types don't know, is an error.
func ReadManifest(text []byte) (Object, error) {
	var of metav1.TypeMeta
	if err := json.Unmarshal(text, &of); err != nil {
		return nil, fmt.Errorf("it can't be understood: %w", err)
	}
	switch of.GroupVersionKind() {
	case v1.GroupVersion.WithKind("SampleDB"):
		m, err := decodeManifest[v1.SampleDBSpec](text)
		if err != nil {
			return nil, err
		}
		return &v1.SampleDB{TypeMeta: of, ObjectMeta: m.meta(), Spec: m.Spec}, nil
	case pgv1.GroupVersion.WithKind("PostgreSQL"):
		m, err := decodeManifest[pgv1.PostgreSQLSpec](text)
		if err != nil {
			return nil, err
		}
		return &pgv1.PostgreSQL{TypeMeta: of, ObjectMeta: m.meta(), Spec: m.Spec}, nil
	}
	return nil, fmt.Errorf("it is a %q of %q, and only a SampleDB of %s or a PostgreSQL of %s comes back",
		of.Kind, of.APIVersion, v1.GroupVersion, pgv1.GroupVersion)
}

func decodeManifest[S any](text []byte) (m manifestOf[S], err error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&m); err != nil {
		return m, fmt.Errorf("it has something that this release of Toban does not know: %w", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return m, errors.New("it goes on after its end")
	}
	return m, nil
}

// meta has of the annotations those that Manifest writes, without what says which side of an upgrade it was
// (SideOfBackup): what comes back is alone.
func (m *manifestOf[S]) meta() metav1.ObjectMeta {
	annotations := usersOwn(m.Metadata.Annotations)
	if value := m.Metadata.Annotations[naming.AnnotationCredentials]; value != "" {
		annotations[naming.AnnotationCredentials] = value
	}
	return metav1.ObjectMeta{
		Name: m.Metadata.Name, Namespace: m.Metadata.Namespace, Labels: m.Metadata.Labels, Annotations: annotations,
	}
}

// madeFor is the manifest of the object that a SampleDB was made for, "" where it was made for none. Whoever may write
// SampleDBs may give one any annotation, and any owner: only the manifest of that owner is believed.
func madeFor(db *v1.SampleDB) string {
	text, owner := db.Annotations[naming.AnnotationManifest], metav1.GetControllerOf(db)
	if text == "" || owner == nil {
		return ""
	}
	object, err := ReadManifest([]byte(text))
	if err != nil || object.GetName() != owner.Name || object.GetNamespace() != db.Namespace ||
		object.GetObjectKind().GroupVersionKind() != schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind) {
		return ""
	}
	return text
}
