// Package volumes is what follows from specs for the volumes of claims: of what they are made, which are made anew, and
// what lies on them that would be lost with them.
package volumes

import (
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/desired"
)

// What of spec.storage a volume can have only by being made anew (docs/sampledb.md).
const (
	AnewSize  = "size"
	AnewClass = "storageClassName"
)

// AskedStorage is spec.storage as a user wrote it, and of which SampleDB.
type AskedStorage struct {
	v1.StorageSpec

	UID types.UID
}

// Asked is what a SampleDB asks for.
func Asked(db *v1.SampleDB) AskedStorage { return AskedStorage{*db.Spec.Storage.DeepCopy(), db.UID} }

// Note is what a claim notes of it: for which SampleDB, which size, and which class its volume is.
func (s AskedStorage) Note() string {
	words := []string{string(s.UID), s.Size}
	if s.StorageClassName != nil {
		words = append(words, *s.StorageClassName)
	}
	return strings.Join(words, " ")
}

// noted is what a claim has noted for this SampleDB. One that has noted nothing is of an earlier release, and one that
// has noted another SampleDB is of a former one of that name: nobody has changed what these were made for.
func (s AskedStorage) noted(claim *corev1.PersistentVolumeClaim) (v1.StorageSpec, bool) {
	words := strings.Split(claim.Annotations[naming.AnnotationStorage], " ")
	if len(words) < 2 || words[0] != string(s.UID) {
		return v1.StorageSpec{}, false
	}
	out := v1.StorageSpec{Size: words[1]}
	if len(words) > 2 {
		out.StorageClassName = &words[2]
	}
	return out, true
}

// NoteStorage notes on a claim for which spec.storage its volume is.
func NoteStorage(claim *corev1.PersistentVolumeClaim, note string) {
	metav1.SetMetaDataAnnotation(&claim.ObjectMeta, naming.AnnotationStorage, note)
	if applied := claim.Annotations[naming.AnnotationApplied]; applied != "" {
		claim.Annotations[naming.AnnotationApplied] = applied + "-" + desired.Hash(note)
	}
}

// HasNoted says that a claim has noted something for this SampleDB.
func (s AskedStorage) HasNoted(claim *corev1.PersistentVolumeClaim) bool {
	_, known := s.noted(claim)
	return known
}

// Smaller says that the user has lowered storage.size since a volume was made for it, and that the volume is larger.
func (s AskedStorage) Smaller(claim *corev1.PersistentVolumeClaim) bool {
	was, known := s.noted(claim)
	noted, wrong := resource.ParseQuantity(was.Size)
	want, err := resource.ParseQuantity(s.Size)
	return known && wrong == nil && err == nil && noted.Cmp(want) > 0 &&
		claim.Spec.Resources.Requests.Storage().Cmp(want) > 0
}

// otherClass says that the user has asked for another class since a volume was made, and that the volume is not in it.
func (s AskedStorage) otherClass(claim *corev1.PersistentVolumeClaim) bool {
	was, known := s.noted(claim)
	if !known || s.StorageClassName == nil || is(was.StorageClassName, *s.StorageClassName) {
		return false
	}
	return !is(claim.Spec.StorageClassName, *s.StorageClassName)
}

func is(class *string, name string) bool { return class != nil && *class == name }

// Anew is the part of spec.storage that the volume of a claim has only once it is made anew, nothing where it is as
// wanted or can become so. The size is the one in force, which may be larger than the one of the spec.
func (s AskedStorage) Anew(size resource.Quantity, claim *corev1.PersistentVolumeClaim) (out []string) {
	if s.Smaller(claim) && claim.Spec.Resources.Requests.Storage().Cmp(size) > 0 {
		out = append(out, AnewSize)
	}
	if s.otherClass(claim) {
		out = append(out, AnewClass)
	}
	return out
}

// MadeBy says that the claims that a StatefulSet makes are as wanted, or can become so: its template can't be changed.
func (s AskedStorage) MadeBy(set *appsv1.StatefulSet, size resource.Quantity) bool {
	if len(set.Spec.VolumeClaimTemplates) == 0 {
		return false
	}
	made := set.Spec.VolumeClaimTemplates[0].Spec
	return made.Resources.Requests.Storage().Cmp(size) <= 0 &&
		(s.StorageClassName == nil || is(made.StorageClassName, *s.StorageClassName))
}
