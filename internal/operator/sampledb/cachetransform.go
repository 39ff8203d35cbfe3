package sampledb

import (
	"maps"
	"reflect"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"toban.dev/internal/naming"
	"toban.dev/internal/operator/cached"
)

const (
	// keptAtMost is how large, encoded, an object of ours may be that the cache keeps: nearly all are smaller.
	keptAtMost = 32 << 10
	// keptNames is how many labels and finalizers are kept of what the cache does not keep, and keptNotes how long the
	// annotations may be together.
	keptNames = 16
	keptNotes = 4 << 10
)

// Transform is an object as the operator's cache keeps it, without what nobody reads there: of its field owners all but
// the fact that we are one by a plain create, which apply has to hand over to server-side apply; of a Pod and of a Job
// most of its spec, which makes up the greatest part of them. Who wants such a spec whole reads past the cache.
//
// Whoever may write into one namespace can make as many objects with our labels there as he likes, and the memory is
// that of all. So the cache keeps the content only of what seems to be made by us, and of no large object. Of others it
// keeps what they are; cached.Whole reads the rest for whoever asks for one by its name.
func Transform(object any) (any, error) {
	accessor, ok := object.(client.Object)
	if !ok {
		return object, nil
	}
	accessor.SetManagedFields(ownByCreate(accessor.GetManagedFields()))
	listed := true
	switch o := object.(type) {
	case *corev1.Pod:
		o.Spec = transformPod(o.Spec)
		transformStatuses(o.Status.InitContainerStatuses)
		transformStatuses(o.Status.ContainerStatuses)
	case *batchv1.Job:
		o.Spec = batchv1.JobSpec{
			ActiveDeadlineSeconds: o.Spec.ActiveDeadlineSeconds,
			Template: corev1.PodTemplateSpec{
				Spec: corev1.PodSpec{NodeName: o.Spec.Template.Spec.NodeName},
			},
		}
	case *corev1.PersistentVolumeClaim:
		o.Spec.Selector = nil
	default:
		listed = false
	}
	sized, builtIn := object.(interface{ Size() int })
	if builtIn && accessor.GetLabels()[naming.LabelManagedBy] == naming.ManagedBy {
		leaveOut(accessor, sized.Size, listed)
	}
	return object, nil
}

// leaveOut leaves out of an object what it may not have in the cache. Of those that are listed there, and not asked for
// by their names, first the annotations and labels of others go.
func leaveOut(object client.Object, size func() int, listed bool) {
	if size() <= keptAtMost && (listed || seemsOurs(object)) {
		return
	}
	keepNames(object)
	if listed && size() <= keptAtMost {
		return
	}
	all := reflect.ValueOf(object).Elem()
	empty := reflect.New(all.Type()).Elem()
	for _, name := range []string{"TypeMeta", "ObjectMeta"} {
		empty.FieldByName(name).Set(all.FieldByName(name))
	}
	all.Set(empty)
	if pod, ok := object.(*corev1.Pod); ok {
		pod.Spec.Containers = []corev1.Container{{}} // each Pod has one
	}
}

// seemsOurs says that an object has an owner, and a name that begins with that one's.
func seemsOurs(object client.Object) bool {
	owner := metav1.GetControllerOf(object)
	return owner != nil && strings.HasPrefix(object.GetName(), owner.Name)
}

// keepNames leaves of what an object says of itself what it is, whose it is and which version, and our own notes.
func keepNames(object client.Object) {
	ours := func(all map[string]string) map[string]string {
		out := maps.Clone(all)
		maps.DeleteFunc(out, func(key, _ string) bool { return !naming.IsOwn(key) })
		return out
	}
	notes := ours(object.GetAnnotations())
	length := 0
	for key, value := range notes {
		length += len(key) + len(value)
	}
	if notes == nil || length > keptNotes {
		notes = map[string]string{}
	}
	notes[cached.NotKept] = "true"
	object.SetAnnotations(notes)
	labels := ours(object.GetLabels())
	if len(labels) > keptNames {
		labels = map[string]string{naming.LabelManagedBy: naming.ManagedBy}
	}
	object.SetLabels(labels)
	if finalizers := object.GetFinalizers(); len(finalizers) > keptNames {
		object.SetFinalizers(finalizers[:keptNames:keptNames])
	}
	owner := metav1.GetControllerOf(object)
	object.SetOwnerReferences(nil)
	if owner != nil && owner.Size() < keptNotes {
		object.SetOwnerReferences([]metav1.OwnerReference{*owner})
	}
}

func ownByCreate(owners []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry {
	for _, entry := range owners {
		if entry.Manager == naming.FieldOwner && entry.Operation == metav1.ManagedFieldsOperationUpdate &&
			entry.Subresource == "" {
			return []metav1.ManagedFieldsEntry{{Manager: entry.Manager, Operation: entry.Operation}}
		}
	}
	return nil
}

// transformPod keeps where a Pod runs, what keeps it from being scheduled, which claims it uses, which Secrets it pulls
// its images with, and of its containers the image and the resources.
func transformPod(s corev1.PodSpec) corev1.PodSpec {
	out := corev1.PodSpec{
		NodeName: s.NodeName, ImagePullSecrets: s.ImagePullSecrets, SchedulingGates: s.SchedulingGates,
	}
	for _, v := range s.Volumes {
		if v.PersistentVolumeClaim != nil {
			out.Volumes = append(out.Volumes, corev1.Volume{
				Name: v.Name, VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: v.PersistentVolumeClaim},
			})
		}
	}
	for _, c := range s.Containers {
		out.Containers = append(out.Containers, corev1.Container{Name: c.Name, Image: c.Image, Resources: c.Resources})
	}
	return out
}

// transformStatuses drops what the kubelet repeats of a container's spec.
func transformStatuses(all []corev1.ContainerStatus) {
	for i := range all {
		all[i].VolumeMounts, all[i].AllocatedResources, all[i].Resources, all[i].User = nil, nil, nil, nil
	}
}
