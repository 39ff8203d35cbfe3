package myapp

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	v1 "toban.dev/api/myapp/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/desired"
)

// lastRequests is how long a Pod that goes serves on (seconds): until every node has heard that
// it is not in the Service any more.
const lastRequests = 3

// Release is what Pods are made from.
type Release struct {
	// Spec is the spec of the MyApp, or while an update is held back, that of before.
	Spec v1.MyAppSpec
	// Config is the digest of what is in its ConfigMaps, Secrets what somebody has noted about its Secrets, and
	// Connection tells one content of the database's Secret from another. Pods are replaced when one of them changes.
	Config, Secrets, Connection string
}

// PodPart is the part of a spec that Pods are made from, and that a migration belongs to.
func PodPart(spec v1.MyAppSpec) v1.MyAppSpec {
	out := *spec.DeepCopy()
	out.Replicas, out.Autoscaling, out.Ingress, out.Service = nil, nil, nil, v1.ServiceSpec{}
	if out.Migration != nil {
		out.Migration.Backup, out.Migration.Deadline = false, metav1.Duration{}
	}
	return out
}

// Replicas is how many Pods are wanted. With autoscaling they stay as many as there are (present, nil where there is no
// Deployment), but for the start and for none, which the autoscaler neither leaves nor enters.
func Replicas(spec v1.MyAppSpec, present *int32) int32 {
	wanted := int32(1)
	if spec.Replicas != nil {
		wanted = *spec.Replicas
	}
	scaling := spec.Autoscaling
	switch {
	case scaling == nil, wanted == 0:
		return wanted
	case present == nil, *present == 0:
		return min(max(wanted, scaling.MinReplicas), scaling.MaxReplicas)
	}
	return *present
}

// Deployment runs the Pods. It never has fewer than are wanted while they are replaced.
func Deployment(app *v1.MyApp, release Release, replicas int32) *appsv1.Deployment {
	none, some, revisions := intstr.FromInt32(0), intstr.FromString("25%"), int32(3)
	d := &appsv1.Deployment{
		ObjectMeta: meta(app, naming.App(app.Name)),
		Spec: appsv1.DeploymentSpec{
			Selector:             &metav1.LabelSelector{MatchLabels: naming.AppSelector(app.Name)},
			RevisionHistoryLimit: &revisions,
			Strategy: appsv1.DeploymentStrategy{
				Type:          appsv1.RollingUpdateDeploymentStrategyType,
				RollingUpdate: &appsv1.RollingUpdateDeployment{MaxUnavailable: &none, MaxSurge: &some},
			},
			Template: podTemplate(app, release),
		},
	}
	// What an autoscaler changes must not make the Deployment look changed.
	d.Annotations = map[string]string{naming.AnnotationApplied: desired.Hash(d)}
	d.Spec.Replicas = &replicas
	return d
}

func podTemplate(app *v1.MyApp, release Release) corev1.PodTemplateSpec {
	spec := release.Spec
	out := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{
			Labels:      desired.Merged(spec.Pod.Labels, naming.AppLabels(app.Name), naming.AppSelector(app.Name)),
			Annotations: desired.Merged(spec.Pod.Annotations),
		},
		Spec: podSpec(spec, appContainer(spec)),
	}
	for key, value := range map[string]string{
		naming.AnnotationConfig: release.Config, naming.AnnotationSecrets: release.Secrets,
		naming.AnnotationConnection: release.Connection,
	} {
		if value != "" {
			out.Annotations[key] = value
		}
	}
	out.Spec.Affinity = affinity(app, spec)
	if spec.Leader {
		out.Spec.Volumes = append(out.Spec.Volumes, leaderVolume())
		out.Spec.Containers[0].VolumeMounts = append(out.Spec.Containers[0].VolumeMounts,
			corev1.VolumeMount{Name: volumeLeader, MountPath: naming.PathLeader, ReadOnly: true})
	}
	out.Annotations[naming.AnnotationTemplate] = desired.Hash(out)
	return out
}

// podSpec is what Pods of the application and of its migrations have in common.
func podSpec(spec v1.MyAppSpec, container corev1.Container) corev1.PodSpec {
	no := false
	security := spec.PodSecurityContext.DeepCopy()
	if security == nil {
		security = &corev1.PodSecurityContext{}
	}
	if security.SeccompProfile == nil {
		security.SeccompProfile = &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}
	}
	return corev1.PodSpec{
		Containers: []corev1.Container{container},
		Volumes:    trustVolumes(spec.Database),
		// It has no business with the Kubernetes API, and other Services' addresses only get into the
		// way of its own variables.
		AutomountServiceAccountToken: &no,
		EnableServiceLinks:           &no,
		SecurityContext:              security,
		NodeSelector:                 spec.Pod.NodeSelector,
		Tolerations:                  spec.Pod.Tolerations,
		Affinity:                     spec.Pod.Affinity,
		PriorityClassName:            spec.Pod.PriorityClassName,
		ImagePullSecrets:             spec.Pod.ImagePullSecrets,
	}
}

func appContainer(spec v1.MyAppSpec) corev1.Container {
	c := container(spec, naming.ContainerApp, spec.Image)
	c.Command, c.Args = spec.Command, spec.Args
	c.Ports = []corev1.ContainerPort{{Name: naming.PortApp, ContainerPort: spec.Port, Protocol: corev1.ProtocolTCP}}
	c.ReadinessProbe, c.LivenessProbe, c.StartupProbe = spec.ReadinessProbe, spec.LivenessProbe, spec.StartupProbe
	c.Lifecycle = &corev1.Lifecycle{
		PreStop: &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: lastRequests}},
	}
	return c
}

// container is what containers of the application and of its migrations have in common. What one that has failed wrote
// last becomes its message.
func container(spec v1.MyAppSpec, name, image string) corev1.Container {
	return corev1.Container{
		Name:                     name,
		Image:                    image,
		Env:                      environment(spec),
		EnvFrom:                  sources(spec.Config),
		VolumeMounts:             trustMounts(spec.Database),
		Resources:                spec.Resources,
		SecurityContext:          spec.SecurityContext,
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
	}
}

const volumeLeader = "leader"

// leaderVolume has the file that says whether the Pod leads. The kubelet writes it anew when the label comes or goes.
func leaderVolume() corev1.Volume {
	return corev1.Volume{Name: volumeLeader, VolumeSource: corev1.VolumeSource{
		DownwardAPI: &corev1.DownwardAPIVolumeSource{
			Items: []corev1.DownwardAPIVolumeFile{{
				Path: naming.FileLeader,
				FieldRef: &corev1.ObjectFieldSelector{
					APIVersion: "v1", FieldPath: "metadata.labels['" + naming.LabelLeaderOf + "']",
				},
			}},
		},
	}}
}

// affinity spreads the Pods over nodes as far as possible, unless the user has rules of their own.
func affinity(app *v1.MyApp, spec v1.MyAppSpec) *corev1.Affinity {
	if spec.Pod.Affinity != nil {
		return spec.Pod.Affinity
	}
	return &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
		PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{
			Weight: 100,
			PodAffinityTerm: corev1.PodAffinityTerm{
				TopologyKey:   corev1.LabelHostname,
				LabelSelector: &metav1.LabelSelector{MatchLabels: naming.AppSelector(app.Name)},
			},
		}},
	}}
}
