package api

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"toban.dev/internal/naming"
	"toban.dev/internal/operator/index"
)

// namesOf are the names of the parts of a namespace with these labels, as a reader has them.
func namesOf(reader client.Reader, namespace string, labels map[string]string) (string, error) {
	ctx := context.Background()
	pods, wrongPods := index.Pods(ctx, reader, namespace, labels)
	jobs, wrongJobs := index.Jobs(ctx, reader, namespace, labels)
	claims, wrongClaims := index.Claims(ctx, reader, namespace, labels)
	var names []string
	for _, p := range pods {
		names = append(names, "Pod "+p.Name)
	}
	for _, j := range jobs {
		names = append(names, "Job "+j.Name)
	}
	for _, c := range claims {
		names = append(names, "claim "+c.Name)
	}
	slices.Sort(names)
	return strings.Join(names, ", "), errors.Join(wrongPods, wrongJobs, wrongClaims)
}

// The parts of a SampleDB, a PostgreSQL and a MyApp are found by the cache's indexes, and no others.
func TestThePartsOfAnObjectAreFound(t *testing.T) {
	w := newWorld(t)
	ofX := map[string]string{naming.LabelSampleDB: "x"}
	instance := map[string]string{naming.LabelSampleDB: "x", naming.LabelComponent: naming.ComponentInstance}
	for name, labels := range map[string]map[string]string{
		"x-0": instance, "x-init": ofX, "xy-0": {naming.LabelSampleDB: "xy"}, "nobody": {},
		"pg": {naming.LabelPostgreSQL: "x"}, "app": {naming.LabelMyApp: "x"},
	} {
		for _, object := range partsOf(w.namespace, name, labels) {
			w.must(w.api.Create(t.Context(), object))
		}
	}
	elsewhere := w.anotherNamespace()
	w.must(w.api.Create(t.Context(), partsOf(elsewhere, "x-1", ofX)[0]))
	reader := indexed(t, w.namespace)
	for want, labels := range map[string]map[string]string{
		"Job x-0, Job x-init, Pod x-0, Pod x-init, claim x-0, claim x-init": ofX,
		"Job x-0, Pod x-0, claim x-0":                                       instance,
		"Job xy-0, Pod xy-0, claim xy-0":                                    {naming.LabelSampleDB: "xy"},
		"Job pg, Pod pg, claim pg":                                          {naming.LabelPostgreSQL: "x"},
		"Job app, Pod app, claim app":                                       {naming.LabelMyApp: "x"},
		"":                                                                  {naming.LabelSampleDB: "none"},
	} {
		got, err := namesOf(reader, w.namespace, labels)
		w.must(err)
		if got != want {
			t.Errorf("with %v it finds %q, want %q", labels, got, want)
		}
	}
	if _, err := namesOf(reader, w.namespace, map[string]string{naming.LabelComponent: "x"}); err == nil {
		t.Error("parts of nothing are found")
	}
}

// partsOf are a Pod, a Job and a claim of a name, with these labels and the one of all that is ours.
func partsOf(namespace, name string, labels map[string]string) []client.Object {
	ours := maps.Clone(labels)
	ours[naming.LabelManagedBy] = naming.ManagedBy
	is := metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: ours}
	spec := corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "c", Image: "toban:test"}},
	}
	claim := corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources: corev1.VolumeResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
		},
	}
	return []client.Object{
		&corev1.Pod{ObjectMeta: is, Spec: spec},
		&batchv1.Job{ObjectMeta: is, Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: spec}}},
		&corev1.PersistentVolumeClaim{ObjectMeta: is, Spec: claim},
	}
}

// BenchmarkPartsOfOneOfMany is what it costs to find the three Pods, Jobs and claims of one SampleDB, among those of
// 100 and of 1,000 in a namespace: by the indexes, and by labels alone.
func BenchmarkPartsOfOneOfMany(b *testing.B) {
	for _, databases := range []int{100, 1000} {
		namespace := fmt.Sprintf("parts-%d-%d", databases, time.Now().UnixNano())
		fillParts(b, namespaceToFill(b, namespace), namespace, databases)
		reader, labels := indexed(b, namespace), map[string]string{naming.LabelSampleDB: "db-50"}
		b.Run(fmt.Sprintf("%d SampleDBs/index", databases), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				pods, err := index.Pods(b.Context(), reader, namespace, labels)
				jobs, wrongJobs := index.Jobs(b.Context(), reader, namespace, labels)
				claims, wrongClaims := index.Claims(b.Context(), reader, namespace, labels)
				if err := errors.Join(err, wrongJobs, wrongClaims); err != nil || len(pods)+len(jobs)+len(claims) != 9 {
					b.Fatalf("%d, %d, %d, %v", len(pods), len(jobs), len(claims), err)
				}
			}
		})
		b.Run(fmt.Sprintf("%d SampleDBs/labels", databases), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				for _, list := range []client.ObjectList{
					&corev1.PodList{}, &batchv1.JobList{}, &corev1.PersistentVolumeClaimList{},
				} {
					if err := reader.List(b.Context(), list, client.InNamespace(namespace),
						client.MatchingLabels(labels)); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}

// fillParts makes the parts of so many SampleDBs.
func fillParts(b *testing.B, api client.Client, namespace string, databases int) {
	b.Helper()
	for i := range databases * 3 {
		labels := map[string]string{naming.LabelSampleDB: fmt.Sprintf("db-%d", i/3)}
		for _, object := range partsOf(namespace, fmt.Sprintf("db-%d-%d", i/3, i%3), labels) {
			if err := api.Create(b.Context(), object); err != nil {
				b.Fatal(err)
			}
		}
	}
}
