package desired

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	pgv1 "toban.dev/api/postgresql/v1"
	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
)

// Manifest is what brings a SampleDB back when it is gone: its own manifest, or that of the object that it was made
// for. The credentials go with it, so that it has its password again (credentials.Store).
func Manifest(db *v1.SampleDB, credentials string) *runtime.RawExtension {
	out := again(db, credentials)
	if db.Status.Upgrade.GreenServes() { // what clients write is on the other side
		out.Raw = annotated(out.Raw, map[string]string{naming.AnnotationSide: naming.SideFollows})
	}
	return out
}

// again is that object as the user has it.
func again(db *v1.SampleDB, credentials string) *runtime.RawExtension {
	if text := madeFor(db); text != "" {
		return &runtime.RawExtension{Raw: []byte(withGrownStorage(text, db))}
	}
	spec := *db.Spec.DeepCopy()
	// What it has begun with and what it was set back to is done, and would not be asked for again.
	spec.RestoreFrom, spec.Restore = nil, nil
	spec.Storage = GrownStorage(db)
	return manifest(db, v1.GroupVersion.WithKind("SampleDB"), spec,
		map[string]string{naming.AnnotationCredentials: credentials})
}

// withGrownStorage is the manifest of what a SampleDB was made for, with the size that its volumes have grown to.
func withGrownStorage(text string, db *v1.SampleDB) string {
	if _, grown := grownSize(db); !grown {
		return text
	}
	return withSpec(text, map[string]any{"storage": GrownStorage(db)})
}

// OfVersion has the manifest of what a SampleDB was made for name the version of the SampleDB, and its backups, which
// may differ between versions. The spec of that object may ask for a newer version than that of the data.
func OfVersion(db *v1.SampleDB) {
	text := madeFor(db)
	if text == "" {
		return
	}
	fields := map[string]any{"version": db.Spec.Version}
	if db.Spec.Backup != nil {
		fields["backup"] = db.Spec.Backup
	}
	db.Annotations[naming.AnnotationManifest] = withSpec(text, fields)
}

// withSpec is the manifest of what a SampleDB was made for, with some fields of its spec.
func withSpec(text string, fields map[string]any) string {
	var all, spec map[string]json.RawMessage
	if json.Unmarshal([]byte(text), &all) != nil || json.Unmarshal(all["spec"], &spec) != nil || spec == nil {
		return text // not ours, so it stays as it is
	}
	var err error
	for name, value := range fields {
		if spec[name], err = json.Marshal(value); err != nil {
			return text
		}
	}
	if all["spec"], err = json.Marshal(spec); err != nil {
		return text
	}
	out, err := json.Marshal(all)
	if err != nil {
		return text
	}
	return string(out)
}

// manifest is an object as a user would apply it, with some annotations more.
func manifest(
	object metav1.Object, kind schema.GroupVersionKind, spec any, annotations map[string]string,
) *runtime.RawExtension {
	of := map[string]any{"name": object.GetName(), "namespace": object.GetNamespace()}
	if labels := usersLabels(object.GetLabels()); len(labels) > 0 {
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

// annotated is a manifest with some annotations more.
func annotated(text []byte, more map[string]string) []byte {
	var all, of map[string]json.RawMessage
	annotations := map[string]string{}
	if json.Unmarshal(text, &all) != nil || json.Unmarshal(all["metadata"], &of) != nil || of == nil {
		return text // not ours, so it stays as it is
	}
	if have := of["annotations"]; have != nil && json.Unmarshal(have, &annotations) != nil {
		return text
	}
	out, err := json.Marshal(merged(annotations, more))
	if err != nil {
		return text
	}
	of["annotations"] = out
	if all["metadata"], err = json.Marshal(of); err != nil {
		return text
	}
	if out, err = json.Marshal(all); err != nil {
		return text
	}
	return out
}

// BackupSide is of which side of a blue/green upgrade a backup is, by the manifest in it.
type BackupSide struct {
	// Of is the SampleDB whose second side it is of, UID that one's; "" where it is of a SampleDB's own instances.
	Of, UID string
	// Does is what the side did when the backup was taken: naming.SideServes, or naming.SideFollows; "" where there
	// was one side.
	Does string
}

// SideOfBackup says of which side a backup is.
func SideOfBackup(b *v1.DatabaseBackup) BackupSide {
	var m struct {
		Metadata struct {
			Annotations map[string]string `json:"annotations"`
		} `json:"metadata"`
	}
	if b.Status.Manifest == nil || json.Unmarshal(b.Status.Manifest.Raw, &m) != nil {
		return BackupSide{}
	}
	out := BackupSide{Does: m.Metadata.Annotations[naming.AnnotationSide]}
	out.Of, out.UID, _ = strings.Cut(m.Metadata.Annotations[naming.AnnotationSideOf], "/")
	return out
}

// usersLabels are the labels but those by which Argo CD knows its own: it would delete what was brought back, and is
// not in the application's source any more, once more.
func usersLabels(labels map[string]string) map[string]string {
	out := maps.Clone(labels)
	delete(out, naming.LabelArgo)
	delete(out, naming.LabelInstance)
	return out
}

// usersOwn are the annotations that say something about the object for good: not a request, not what kubectl applied
// last, and not what Argo CD knows its own by.
func usersOwn(annotations map[string]string) map[string]string {
	out := maps.Clone(annotations)
	maps.DeleteFunc(out, func(name, _ string) bool {
		ours := strings.HasPrefix(name, "toban.dev/") && name != naming.AnnotationDatabasesFrom
		return ours || strings.HasPrefix(name, "kubectl.kubernetes.io/") || name == naming.AnnotationArgo
	})
	return out
}

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
		object.GetObjectKind().GroupVersionKind() != schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind) &&
			!ofFirstSide(db, object) {
		return ""
	}
	return text
}

// ofFirstSide says that an object is what the first side was made for, of a SampleDB that is a second side: the
// PostgreSQL that has it as its own server.
func ofFirstSide(db *v1.SampleDB, object Object) bool {
	pg, is := object.(*pgv1.PostgreSQL)
	_, green := IsGreen(db)
	return green && is && pg.Spec.Server == nil
}
