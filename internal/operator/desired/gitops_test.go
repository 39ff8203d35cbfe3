package desired

import (
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
)

// byTools is what tools that apply manifests out of a repository put on a SampleDB.
func byTools(db *v1.SampleDB) {
	db.Labels = map[string]string{
		naming.LabelInstance: "application", naming.LabelArgo: "application",
		"kustomize.toolkit.fluxcd.io/name": "application", "helm.toolkit.fluxcd.io/name": "application",
	}
	db.Annotations = map[string]string{
		naming.AnnotationArgo:                              "application:toban.dev/SampleDB:shop/one",
		"meta.helm.sh/release-name":                        "application",
		"kubectl.kubernetes.io/last-applied-configuration": "{}",
	}
}

// A tool deletes what bears its marks and is not in its repository. So no object has those of its SampleDB; and what
// has no owner does not bear the label by which Argo CD knows its own, of whatever name the application is.
func TestNoToolTakesOurObjectsForItsOwn(t *testing.T) {
	for name, db := range map[string]*v1.SampleDB{
		"on a volume": sampleDB("one", onVolume, byTools),
		"in S3":       sampleDB("one", inS3, byTools),
		"in all": sampleDB("one", three, byTools, func(db *v1.SampleDB) {
			db.Spec.Storage.WAL = &v1.WALSpec{Size: "2Gi"}
			db.Spec.Readers = &v1.ReadersSpec{Count: 1}
			db.Spec.Pooler = &v1.PoolerSpec{Instances: 2, ReadOnly: &v1.ReadPoolSpec{Instances: 1}}
			db.Spec.RestoreFrom = &v1.RestoreSpec{SampleDB: "other"}
			db.Status.Upgrade = &v1.UpgradeStatus{ID: "18-0a1b2c", From: 17, To: 18, Step: v1.UpgradeClosing}
		}),
	} {
		t.Run(name, func(t *testing.T) {
			all := append(objects(t, db), FinalBackup(db), ScheduledBackup(db, time.Unix(1e9, 0)))
			for _, object := range all {
				for _, of := range metadataOf(object) {
					checkMarks(t, object, of)
				}
			}
		})
	}
}

// What is brought back out of a backup is not in the repository any more: Argo CD would delete it again.
func TestAManifestHasNoMarksOfArgoCD(t *testing.T) {
	text := string(Manifest(sampleDB("one", byTools), "u.code").Raw)
	for _, mark := range []string{naming.LabelInstance, naming.LabelArgo, naming.AnnotationArgo} {
		if strings.Contains(text, mark) {
			t.Errorf("it has %s: %s", mark, text)
		}
	}
	if !strings.Contains(text, "meta.helm.sh") {
		t.Errorf("it lacks what the user had: %s", text)
	}
}

// metadataOf is that of an object and of the Pods and claims that are made by it.
func metadataOf(object client.Object) []metav1.Object {
	out := []metav1.Object{object}
	switch o := object.(type) {
	case *appsv1.StatefulSet:
		out = append(out, &o.Spec.Template.ObjectMeta)
		for i := range o.Spec.VolumeClaimTemplates {
			out = append(out, &o.Spec.VolumeClaimTemplates[i].ObjectMeta)
		}
	case *appsv1.Deployment:
		out = append(out, &o.Spec.Template.ObjectMeta)
	}
	return out
}

func checkMarks(t *testing.T, object client.Object, of metav1.Object) {
	t.Helper()
	for _, marks := range []map[string]string{of.GetLabels(), of.GetAnnotations()} {
		for key, value := range marks {
			if strings.HasPrefix(value, "application") || strings.HasPrefix(key, "kubectl.kubernetes.io/last") {
				t.Errorf("%T %s has %s=%s of its SampleDB", object, object.GetName(), key, value)
			}
		}
	}
	_, template := of.(*metav1.ObjectMeta)
	pod := template && of.GetName() == ""
	if of.GetLabels()[naming.LabelInstance] != "" && len(of.GetOwnerReferences()) == 0 && !pod {
		t.Errorf("%T %s (%s) has no owner, and Argo CD can take it for its own", object, object.GetName(), of.GetName())
	}
}
