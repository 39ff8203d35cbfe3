package desired

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/protocol"
)

// amounts are resources of a processor and memory, "" for none.
func amounts(cpu, memory string) corev1.ResourceList {
	out := corev1.ResourceList{}
	for name, text := range map[corev1.ResourceName]string{corev1.ResourceCPU: cpu, corev1.ResourceMemory: memory} {
		if text != "" {
			out[name] = resource.MustParse(text)
		}
	}
	return out
}

func TestWhatAPodGetsWhileItRuns(t *testing.T) {
	type resources = corev1.ResourceRequirements
	burst := func(requests, limits corev1.ResourceList) resources {
		return resources{Requests: requests, Limits: limits}
	}
	huge := amounts("1", "1Gi")
	huge["hugepages-2Mi"] = resource.MustParse("64Mi")
	for name, c := range map[string]struct {
		was, now resources
		want     bool
	}{
		"more of a processor": {burst(amounts("1", "1Gi"), nil), burst(amounts("2", "1Gi"), nil), true},
		"less of a processor": {burst(amounts("2", "1Gi"), nil), burst(amounts("500m", "1Gi"), nil), true},
		"more memory":         {burst(nil, amounts("1", "1Gi")), burst(nil, amounts("1", "2Gi")), true},
		"less memory":         {burst(nil, amounts("1", "2Gi")), burst(nil, amounts("1", "1Gi")), false},
		"less memory asked for, the limit stays": {burst(amounts("1", "2Gi"), amounts("2", "2Gi")),
			burst(amounts("1", "1Gi"), amounts("2", "2Gi")), false},
		"a limit that was not there": {burst(amounts("1", "1Gi"), nil),
			burst(amounts("1", "1Gi"), amounts("2", "")), false},
		"a limit less": {burst(amounts("1", ""), amounts("2", "")), burst(amounts("1", ""), nil), false},
		"huge pages":   {burst(nil, amounts("1", "1Gi")), burst(nil, huge), false},
		"none before":  {resources{}, burst(amounts("1", ""), nil), false},
	} {
		db := sampleDB("x", three, func(db *v1.SampleDB) { db.Spec.Resources = c.was })
		template := podTemplate(db, settings, protocol.Config{})
		pod := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
		for i := range pod.Spec.Containers { // as the API server stores it
			pod.Spec.Containers[i].Resources = withRequests(pod.Spec.Containers[i].Resources)
		}
		db.Spec.Resources = c.now
		got, can := ResizesInPlace(db, pod, Outdated(db, settings, pod))
		if can != c.want {
			t.Errorf("%s: in place is %v", name, can)
		}
		if want := withRequests(c.now); can && !equality.Semantic.DeepEqual(got, want) {
			t.Errorf("%s: it gets %v", name, got)
		}
	}
}

// A Pod that has got its resources is outdated in nothing, or in what it was outdated in besides. What else differs
// keeps it from getting them while it runs: it is replaced anyway.
func TestAPodThatWasResized(t *testing.T) {
	db := sampleDB("x", three, func(db *v1.SampleDB) { db.Spec.Resources.Requests = amounts("1", "1Gi") })
	template := podTemplate(db, settings, protocol.Config{})
	pod := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
	db.Spec.Resources.Requests = amounts("2", "1Gi")
	marked := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Annotations: map[string]string{naming.AnnotationFacets: FacetsResized(db, pod)},
	}}
	if left := Outdated(db, settings, marked); left != nil {
		t.Errorf("it is outdated in %v", left)
	}
	db.Spec.Image = "other"
	if _, can := ResizesInPlace(db, pod, Outdated(db, settings, pod)); can {
		t.Error("a Pod with another image is resized")
	}
	if left := Outdated(db, settings, marked); len(left) != 1 || left[0] != FacetImage {
		t.Errorf("it is outdated in %v", left)
	}
}
