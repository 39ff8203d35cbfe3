package desired

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
)

// Size is the size in force of an instance's volume: that of the spec, or a larger one to which the volumes have grown
// by themselves.
func Size(db *v1.SampleDB) (resource.Quantity, error) {
	size, err := resource.ParseQuantity(db.Spec.Storage.Size)
	if err != nil {
		return size, fmt.Errorf("storage.size %q must be a quantity such as 10Gi: %w", db.Spec.Storage.Size, err)
	}
	if grown := db.Status.Storage; grown != nil {
		// One that can't be understood is nobody's.
		if in, err := resource.ParseQuantity(grown.Size); err == nil && in.Cmp(size) > 0 {
			return in, nil
		}
	}
	return size, nil
}

// GrowthLimit is the size up to which the volumes grow by themselves; false where they do not.
func GrowthLimit(s v1.StorageSpec) (resource.Quantity, bool) {
	if s.Grow == nil {
		return resource.Quantity{}, false
	}
	limit, err := resource.ParseQuantity(s.Grow.Limit)
	return limit, err == nil // the CRD refuses what is none
}

// GrownStorage is spec.storage for another SampleDB that is to have the same data: its volumes need the size in force.
func GrownStorage(db *v1.SampleDB) v1.StorageSpec {
	out := *db.Spec.Storage.DeepCopy()
	if size, grown := grownSize(db); grown {
		return WithSize(out, size)
	}
	return out
}

// grownSize is the size in force where that is larger than the one of the spec.
func grownSize(db *v1.SampleDB) (string, bool) {
	size, err := Size(db)
	if err != nil || size.Cmp(resource.MustParse(db.Spec.Storage.Size)) <= 0 {
		return "", false
	}
	return size.String(), true
}

// WithSize is spec.storage with another size, and a limit that is not below that: such a one would be refused.
func WithSize(s v1.StorageSpec, size string) v1.StorageSpec {
	s.Size = size
	if limit, grows := GrowthLimit(s); grows {
		if want, err := resource.ParseQuantity(size); err == nil && limit.Cmp(want) < 0 {
			s.Grow = &v1.GrowSpec{Limit: size}
		}
	}
	return s
}

// ResizesInPlace are the resources that a running Pod's PostgreSQL is to get without a restart, where that can be: they
// are all that is outdated, no memory is taken from it, and the Pod's quality of service stays (Kubernetes 1.35
// documentation, "Resize CPU and Memory Resources assigned to Containers"). Memory is only taken by a restart: what a
// server has, it does not give back, and the kernel would end it.
func ResizesInPlace(db *v1.SampleDB, pod *corev1.Pod, outdated []string) (corev1.ResourceRequirements, bool) {
	want := withRequests(db.Spec.Resources)
	has, there := resourcesOf(pod)
	if !there || db.Spec.Resources.Claims != nil || !slices.Equal(outdated, []string{FacetResources}) ||
		!resizable(has.Limits, want.Limits) || !resizable(has.Requests, want.Requests) {
		return corev1.ResourceRequirements{}, false
	}
	return want, true
}

// FacetsResized is the annotation of a Pod that was given the resources which the SampleDB wants, and nothing else.
func FacetsResized(db *v1.SampleDB, pod *corev1.Pod) string {
	all := parseFacets(pod.Annotations[naming.AnnotationFacets])
	all[FacetResources] = Hash(db.Spec.Resources)
	return encodeFacets(all)
}

func resourcesOf(pod *corev1.Pod) (corev1.ResourceRequirements, bool) {
	for _, c := range pod.Spec.Containers {
		if c.Name == naming.ContainerPostgreSQL {
			return c.Resources, true
		}
	}
	return corev1.ResourceRequirements{}, false
}

// withRequests are resources as the API server stores them: a limit without a request is the request too.
func withRequests(r corev1.ResourceRequirements) corev1.ResourceRequirements {
	out := *r.DeepCopy()
	if len(out.Limits) > 0 && out.Requests == nil {
		out.Requests = corev1.ResourceList{}
	}
	for name, limit := range out.Limits {
		if _, given := out.Requests[name]; !given {
			out.Requests[name] = limit
		}
	}
	return out
}

// resizable says that one list of resources can become the other while the container runs.
func resizable(has, want corev1.ResourceList) bool {
	if len(has) != len(want) {
		return false
	}
	for name, now := range want {
		was, there := has[name]
		switch {
		case !there:
			return false
		case name == corev1.ResourceCPU, name == corev1.ResourceMemory && now.Cmp(was) >= 0:
		case !equality.Semantic.DeepEqual(was, now):
			return false
		}
	}
	return true
}
