package volumes

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/desired"
	"toban.dev/internal/operator/desired/desiredtest"
)

func snapshotOf(db string) *v1.DatabaseBackup {
	return &v1.DatabaseBackup{
		ObjectMeta: metav1.ObjectMeta{Name: "before-the-import", Namespace: "shop", UID: types.UID("1a2b")},
		Spec: v1.DatabaseBackupSpec{
			SampleDB: db, Method: v1.MethodVolumeSnapshot, VolumeSnapshotClassName: "fast",
		},
	}
}

func TestAVolumeSnapshot(t *testing.T) {
	got := VolumeSnapshot(desiredtest.SampleDB("main"), snapshotOf("main"), "main-1", "20261120T031500Z-3f2a")
	text, err := yaml.Marshal(got.Object)
	if err != nil {
		t.Fatal(err)
	}
	desiredtest.Compare(t, "testdata/volumesnapshot.yaml", text)
	backup := snapshotOf("main")
	backup.Name, backup.Spec.VolumeSnapshotClassName = strings.Repeat("b", 57), ""
	longest := VolumeSnapshot(desiredtest.SampleDB(strings.Repeat("d", 40)), backup, "d-1", "20261120T031500Z-3f2a")
	_, named, err := unstructured.NestedString(longest.Object, "spec", "volumeSnapshotClassName")
	if err != nil || named || len(longest.GetName()) > 253 {
		t.Errorf("it is %+v", longest.Object)
	}
}

// A claim says for as long as it is there what it was made of, and is noted only until its data is a database.
func TestAClaimThatIsMadeOfASnapshot(t *testing.T) {
	db := desiredtest.SampleDB("main")
	claim, err := desired.Claim(db, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	plain := claim.Annotations[naming.AnnotationApplied]
	MadeOf(claim, "s-1")
	if !IsMadeOf(claim, "s-1") || IsMadeOf(claim, "s-2") || claim.Annotations[naming.AnnotationMadeOf] != "s-1" ||
		claim.Annotations[naming.AnnotationApplied] == plain {
		t.Errorf("it is %+v of %+v", claim.Annotations, claim.Spec.DataSource)
	}
	group := "snapshot.storage.k8s.io"
	claim.Spec.DataSourceRef = &corev1.TypedObjectReference{APIGroup: &group, Kind: "VolumeSnapshot", Name: "s-1"}
	again, err := desired.Claim(db, 0, claim)
	if err != nil {
		t.Fatal(err)
	}
	if !IsMadeOf(again, "s-1") || again.Spec.DataSourceRef == nil || again.Annotations[naming.AnnotationMadeOf] != "" ||
		again.Annotations[naming.AnnotationApplied] != plain {
		t.Errorf("it is %+v of %+v", again.Annotations, again.Spec.DataSource)
	}
	if IsMadeOf(&corev1.PersistentVolumeClaim{}, "") {
		t.Error("one that is made of nothing is made of a snapshot")
	}
}
