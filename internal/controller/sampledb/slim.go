package sampledb

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"toban.dev/internal/naming"
)

// Slim is an object as the operator's cache keeps it, without what nobody reads there: of its field owners all but the
// fact that we are one by a plain create, which apply has to hand over to server-side apply; of a Pod and of a Job most
// of its spec, which makes up the greatest part of them. Who wants such a spec whole reads past the cache.
func Slim(object any) (any, error) {
	accessor, ok := object.(metav1.Object)
	if !ok {
		return object, nil
	}
	accessor.SetManagedFields(ownByCreate(accessor.GetManagedFields()))
	switch o := object.(type) {
	case *corev1.Pod:
		o.Spec = slimPod(o.Spec)
		slimStatuses(o.Status.InitContainerStatuses)
		slimStatuses(o.Status.ContainerStatuses)
	case *batchv1.Job:
		o.Spec = batchv1.JobSpec{Template: corev1.PodTemplateSpec{
			Spec: corev1.PodSpec{NodeName: o.Spec.Template.Spec.NodeName},
		}}
	}
	return object, nil
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

// slimPod keeps where a Pod runs, which claims it uses, which Secrets it pulls its images with, and of its containers
// the image and the resources.
func slimPod(s corev1.PodSpec) corev1.PodSpec {
	out := corev1.PodSpec{NodeName: s.NodeName, ImagePullSecrets: s.ImagePullSecrets}
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

// slimStatuses drops what the kubelet repeats of a container's spec.
func slimStatuses(all []corev1.ContainerStatus) {
	for i := range all {
		all[i].VolumeMounts, all[i].AllocatedResources, all[i].Resources, all[i].User = nil, nil, nil, nil
	}
}
