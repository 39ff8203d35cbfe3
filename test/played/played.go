// Package played does what Kubernetes' own controllers and kubelets do, where only its API server runs: it makes the
// Pods of StatefulSets, and says of objects what those would say. All but Install is pure: who calls it writes.
package played

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"toban.dev/internal/naming"
)

// Pod is that of an instance, as the StatefulSet controller makes it.
func Pod(set *appsv1.StatefulSet, ordinal int) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: *set.Spec.Template.ObjectMeta.DeepCopy(), Spec: *set.Spec.Template.Spec.DeepCopy()}
	pod.Namespace, pod.Name = set.Namespace, naming.Instance(set.Name, ordinal)
	for _, template := range set.Spec.VolumeClaimTemplates {
		claim := &corev1.PersistentVolumeClaimVolumeSource{ClaimName: template.Name + "-" + pod.Name}
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{
			Name: template.Name, VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: claim},
		})
	}
	return pod
}

// Run says of a Pod that it runs at an address and is ready.
func Run(pod *corev1.Pod, host string) {
	pod.Status.Phase, pod.Status.PodIP = corev1.PodRunning, host
	pod.Status.PodIPs = []corev1.PodIP{{IP: host}}
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
}

// Observe says of a StatefulSet that its controller has seen its newest template, and made all its Pods.
func Observe(set *appsv1.StatefulSet) {
	set.Status.ObservedGeneration, set.Status.Replicas = set.Generation, *set.Spec.Replicas
}

// Bind says of a claim that it has the volume it asks for.
func Bind(claim *corev1.PersistentVolumeClaim) {
	claim.Status.Phase = corev1.ClaimBound
	claim.Status.Capacity = claim.Spec.Resources.Requests
}

// Complete says of a Job that it has ended well, now.
func Complete(job *batchv1.Job, now metav1.Time) {
	job.Status.StartTime, job.Status.CompletionTime, job.Status.Succeeded = &now, &now, 1
	job.Status.Conditions = []batchv1.JobCondition{
		{Type: batchv1.JobSuccessCriteriaMet, Status: corev1.ConditionTrue},
		{Type: batchv1.JobComplete, Status: corev1.ConditionTrue},
	}
}

// Install gives the operator's ServiceAccount what a user's cluster gives it, from the folder config.
func Install(ctx context.Context, api client.Client, config string) error {
	for _, name := range []string{
		"manager/namespace.yaml", "rbac/own.yaml", "rbac/operator.yaml", "rbac/cluster.yaml",
	} {
		text, err := os.ReadFile(filepath.Join(config, name))
		if err != nil {
			return err
		}
		for part := range strings.SplitSeq(string(text), "\n---\n") {
			object := &unstructured.Unstructured{}
			if err := yaml.Unmarshal([]byte(part), object); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			if err := api.Create(ctx, object); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	return nil
}
