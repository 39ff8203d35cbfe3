package sampledb

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"toban.dev/internal/naming"
	"toban.dev/internal/operator/cached"
)

// bigPod is one with what is kept of a Pod, and with what is not.
func bigPod() *corev1.Pod {
	claim := &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data-x-0"}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: "x-0", Labels: map[string]string{naming.LabelSampleDB: "x"}, Annotations: map[string]string{"a": "b"},
			OwnerReferences: []metav1.OwnerReference{{Kind: "StatefulSet", Name: "x"}},
			ManagedFields: []metav1.ManagedFieldsEntry{
				{Manager: "kubelet", Operation: metav1.ManagedFieldsOperationUpdate, Subresource: "status"},
			},
		},
		Spec: corev1.PodSpec{
			NodeName: "n", ImagePullSecrets: []corev1.LocalObjectReference{{Name: "pull"}},
			Volumes: []corev1.Volume{
				{Name: "run", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
				{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: claim}},
			},
			InitContainers: []corev1.Container{{Name: "install"}},
			Containers: []corev1.Container{{
				Name: "postgresql", Image: "postgres:17", Args: []string{"agent"}, Env: []corev1.EnvVar{{Name: "A"}},
				VolumeMounts: []corev1.VolumeMount{{Name: "data"}},
				Resources: corev1.ResourceRequirements{
					Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")},
				},
			}},
			ServiceAccountName: "x",
		},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, PodIP: "10.0.0.1", ObservedGeneration: 2,
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
			ContainerStatuses: []corev1.ContainerStatus{{
				Name: "postgresql", ImageID: "postgres@sha256:1", ContainerID: "c", RestartCount: 1, Ready: true,
				State:        corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
				VolumeMounts: []corev1.VolumeMountStatus{{Name: "data"}},
				Resources:    &corev1.ResourceRequirements{},
			}},
		},
	}
}

func slimmed(t *testing.T, object any) any {
	t.Helper()
	out, err := Transform(object)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Transform(out)
	if err != nil || !equality.Semantic.DeepEqual(out, again) {
		t.Fatalf("a second time it changes: %v", err)
	}
	return out
}

func TestOfAPodTheCacheKeepsWhatIsRead(t *testing.T) {
	want := bigPod()
	want.ManagedFields = nil
	want.Spec.Volumes = want.Spec.Volumes[1:]
	want.Spec.InitContainers, want.Spec.ServiceAccountName = nil, ""
	c := want.Spec.Containers[0]
	want.Spec.Containers = []corev1.Container{{Name: c.Name, Image: c.Image, Resources: c.Resources}}
	want.Status.ContainerStatuses[0].VolumeMounts, want.Status.ContainerStatuses[0].Resources = nil, nil
	if got := slimmed(t, bigPod()); !equality.Semantic.DeepEqual(got, want) {
		t.Errorf("it keeps\n%+v\nand is to keep\n%+v", got, want)
	}
}

func TestOfAJobTheCacheKeepsWhatIsRead(t *testing.T) {
	many, day := int32(3), int64(86400)
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: "x-init", Labels: map[string]string{naming.LabelSampleDB: "x"}},
		Spec: batchv1.JobSpec{BackoffLimit: &many, ActiveDeadlineSeconds: &day,
			Template: corev1.PodTemplateSpec{Spec: bigPod().Spec}},
		Status: batchv1.JobStatus{Failed: 1, Conditions: []batchv1.JobCondition{{Type: batchv1.JobFailed}}},
	}
	want := job.DeepCopy()
	want.Spec = batchv1.JobSpec{ActiveDeadlineSeconds: &day,
		Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{NodeName: "n"}}}
	if got := slimmed(t, job); !equality.Semantic.DeepEqual(got, want) {
		t.Errorf("it keeps\n%+v\nand is to keep\n%+v", got, want)
	}
}

// strangers are objects with our labels, as anybody can make them.
func strangers(named string, owner *metav1.OwnerReference, note int) metav1.ObjectMeta {
	out := metav1.ObjectMeta{
		Name: named, Namespace: "ns", UID: "u", ResourceVersion: "7", Finalizers: []string{"a/b"},
		Labels: map[string]string{
			naming.LabelManagedBy: naming.ManagedBy, naming.LabelSampleDB: "x", "other": "y",
		},
		Annotations: map[string]string{naming.AnnotationSetAside: "mistake", "other": strings.Repeat("n", note)},
	}
	if owner != nil {
		out.OwnerReferences = []metav1.OwnerReference{*owner}
	}
	return out
}

// Of what is not ours, and of what is large, the cache keeps what it is. Of what is listed there, it keeps the rest too
// where others have only written too much beside.
func TestTheCacheKeepsLittleOfStrangers(t *testing.T) {
	controls := true
	owner := &metav1.OwnerReference{Kind: "SampleDB", Name: "x", UID: "o", Controller: &controls}
	config := func(name string, owner *metav1.OwnerReference, data, note int) client.Object {
		return &corev1.ConfigMap{
			ObjectMeta: strangers(name, owner, note), Data: map[string]string{"a": strings.Repeat("d", data)},
		}
	}
	claim := func(note int) client.Object {
		return &corev1.PersistentVolumeClaim{
			ObjectMeta: strangers("data-x-0", nil, note), Spec: corev1.PersistentVolumeClaimSpec{VolumeName: "v"},
		}
	}
	has := func(o client.Object) bool {
		switch o := o.(type) {
		case *corev1.ConfigMap:
			return len(o.Data) > 0
		case *corev1.PersistentVolumeClaim:
			return o.Spec.VolumeName != ""
		}
		return false
	}
	for name, c := range map[string]struct {
		object         client.Object
		content, noted bool
	}{
		"ours":                        {config("x-config", owner, 100, 0), true, true},
		"ours, with a note of others": {config("x-config", owner, 100, 100), true, true},
		"a large one":                 {config("x-config", owner, keptAtMost, 0), false, false},
		"with large notes":            {config("x-config", owner, 100, keptAtMost), false, false},
		"without an owner":            {config("x-config", nil, 100, 0), false, false},
		"with the name of another":    {config("y-config", owner, 100, 0), false, false},
		"a claim":                     {claim(100), true, true},
		"a claim with large notes":    {claim(keptAtMost), true, false},
	} {
		got := slimmed(t, c.object).(client.Object) //nolint:errcheck // it is one
		_, marked := got.GetAnnotations()[cached.NotKept]
		_, noted := got.GetAnnotations()["other"]
		if has(got) != c.content || noted != c.noted || marked == c.noted || got.GetResourceVersion() != "7" ||
			got.GetLabels()[naming.LabelSampleDB] != "x" || got.GetUID() != "u" ||
			got.GetAnnotations()[naming.AnnotationSetAside] != "mistake" {
			t.Errorf("%s: it keeps %+v", name, got)
		}
	}
}

func TestThatWeOwnFieldsByACreateIsKept(t *testing.T) {
	ours := metav1.ManagedFieldsEntry{
		Manager: naming.FieldOwner, Operation: metav1.ManagedFieldsOperationUpdate, FieldsV1: &metav1.FieldsV1{},
	}
	other := metav1.ManagedFieldsEntry{Manager: "kubectl", Operation: metav1.ManagedFieldsOperationUpdate}
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{ManagedFields: []metav1.ManagedFieldsEntry{other, ours}}}
	slimmed(t, object)
	if len(object.ManagedFields) != 1 || object.ManagedFields[0].FieldsV1 != nil ||
		object.ManagedFields[0].Manager != naming.FieldOwner {
		t.Errorf("it keeps %+v", object.ManagedFields)
	}
}

// What controllers read of the spec of a Pod is what the cache keeps of it. test/api reads through Transform as well,
// so that its tests fail where something else is missing.
func TestControllersReadNothingElseOfAPodsSpec(t *testing.T) {
	kept := []string{"NodeName", "ImagePullSecrets", "SchedulingGates", "Volumes", "Containers"}
	others := []string{"Resources", "ActiveDeadlineSeconds"} // of claims, and of Jobs
	read := map[string]string{}
	err := filepath.WalkDir("..", func(path string, _ os.DirEntry, err error) error {
		if path == "../desired" || path == "../plan" { // they say what objects should be
			return filepath.SkipDir
		}
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") ||
			filepath.Base(path) == "slim.go" {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		for field := range podSpecFields(file) {
			read[field] = path
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for field, path := range read {
		if !slices.Contains(kept, field) && !slices.Contains(others, field) {
			t.Errorf("%s reads Spec.%s: keep it in Slim if it is a Pod's of the cache, or name it here", path, field)
		}
	}
	for _, field := range kept {
		if read[field] == "" {
			t.Errorf("nobody reads Spec.%s of a Pod any more: Slim need not keep it", field)
		}
	}
}

// podSpecFields are the fields of a Pod's spec that a file reads.
func podSpecFields(file *ast.File) map[string]bool {
	spec, fields := reflect.TypeFor[corev1.PodSpec](), map[string]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		if field, ok := n.(*ast.SelectorExpr); ok {
			of, ok := field.X.(*ast.SelectorExpr)
			if _, known := spec.FieldByName(field.Sel.Name); ok && known && of.Sel.Name == "Spec" {
				fields[field.Sel.Name] = true
			}
		}
		return true
	})
	return fields
}
