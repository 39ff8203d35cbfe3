package desired

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/protocol"
)

// instanceUser is the id of postgres in the official image, as user and group.
const instanceUser = 999

// podTemplate is the Pod of an instance.
func podTemplate(db *v1.SampleDB, settings Settings, config protocol.Config) corev1.PodTemplateSpec {
	own := merged(naming.Common(db.Name), naming.InstanceSelector(db.Name))
	grace, token := int64(120), true
	spec := corev1.PodSpec{
		ServiceAccountName:            naming.ServiceAccount(db.Name),
		AutomountServiceAccountToken:  &token,
		TerminationGracePeriodSeconds: &grace,
		SecurityContext:               podSecurity(instanceUser),
		InitContainers:                []corev1.Container{installContainer(settings)},
		Containers:                    []corev1.Container{postgresContainer(db, settings, config)},
		Volumes:                       instanceVolumes(db),
		Affinity:                      affinity(db),
		TopologySpreadConstraints:     zoneSpread(db),
		NodeSelector:                  db.Spec.Pod.NodeSelector,
		Tolerations:                   db.Spec.Pod.Tolerations,
		PriorityClassName:             db.Spec.Pod.PriorityClassName,
		ImagePullSecrets:              db.Spec.Pod.ImagePullSecrets,
	}
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{
			Labels: merged(db.Spec.Pod.Labels, own),
			Annotations: merged(db.Spec.Pod.Annotations, map[string]string{
				naming.AnnotationDefaultContainer: naming.ContainerPostgreSQL,
				naming.AnnotationFacets:           facets(db, settings),
			}),
		},
		Spec: spec,
	}
}

// auxiliaryPod has what all Pods of a SampleDB have in common that are no instances: where and as which user they run.
// They may not speak to the API server.
func auxiliaryPod(db *v1.SampleDB, user int64) corev1.PodSpec {
	no := false
	return corev1.PodSpec{
		AutomountServiceAccountToken: &no,
		EnableServiceLinks:           &no,
		SecurityContext:              podSecurity(user),
		NodeSelector:                 db.Spec.Pod.NodeSelector,
		Tolerations:                  db.Spec.Pod.Tolerations,
		PriorityClassName:            db.Spec.Pod.PriorityClassName,
		ImagePullSecrets:             db.Spec.Pod.ImagePullSecrets,
	}
}

// askedPod is one whose only container works until that is done, and tells the operator how far it is.
func askedPod(db *v1.SampleDB, user int64, work corev1.Container) corev1.PodSpec {
	grace := int64(30)
	work.ImagePullPolicy, work.SecurityContext = corev1.PullIfNotPresent, containerSecurity()
	work.Env = append([]corev1.EnvVar{fieldEnv("POD_IP", "status.podIP"), {Name: "HOME", Value: pathTmp}}, work.Env...)
	work.Ports = []corev1.ContainerPort{
		{Name: "agent", ContainerPort: naming.PortAgent, Protocol: corev1.ProtocolTCP},
	}
	pod := auxiliaryPod(db, user)
	pod.RestartPolicy, pod.TerminationGracePeriodSeconds = corev1.RestartPolicyNever, &grace
	pod.Containers = []corev1.Container{work}
	return pod
}

// resourcesFor are those of a Pod that runs a server on a SampleDB's data for a time.
func resourcesFor(db *v1.SampleDB) corev1.ResourceRequirements {
	if r := db.Spec.Resources; len(r.Requests) > 0 || len(r.Limits) > 0 {
		return r
	}
	return requests("100m", "256Mi")
}

// podSecurity is what the Pod Security Standard "restricted" asks of a Pod.
func podSecurity(user int64) *corev1.PodSecurityContext {
	yes, policy := true, corev1.FSGroupChangeOnRootMismatch
	return &corev1.PodSecurityContext{
		RunAsNonRoot:        &yes,
		RunAsUser:           &user,
		RunAsGroup:          &user,
		FSGroup:             &user,
		FSGroupChangePolicy: &policy,
		SeccompProfile:      &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
}

// containerSecurity is what it asks of a container, and a root file system that nobody writes.
func containerSecurity() *corev1.SecurityContext {
	yes, no := true, false
	return &corev1.SecurityContext{
		AllowPrivilegeEscalation: &no,
		ReadOnlyRootFilesystem:   &yes,
		Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
	}
}

// installContainer copies our binary to where PostgreSQL's image finds it, so
// that nothing has to be in that image.
func installContainer(settings Settings) corev1.Container {
	return corev1.Container{
		Name:            naming.ContainerInstall,
		Image:           settings.Image,
		ImagePullPolicy: corev1.PullIfNotPresent,
		Command:         []string{naming.PathImageBinary, "install", naming.PathBinary},
		SecurityContext: containerSecurity(),
		Resources:       requests("10m", "32Mi"),
		VolumeMounts:    []corev1.VolumeMount{{Name: volumeProgram, MountPath: naming.PathProgram}},
	}
}

func postgresContainer(db *v1.SampleDB, settings Settings, config protocol.Config) corev1.Container {
	return corev1.Container{
		Name:            naming.ContainerPostgreSQL,
		Image:           Image(db, settings),
		ImagePullPolicy: corev1.PullIfNotPresent,
		Command: append([]string{
			naming.PathBinary, "agent",
			"--name", "$(POD_NAME)",
			"--config", naming.PathConfig + "/" + naming.KeyConfig,
			"--authority", naming.PathAuthority,
			"--volume", naming.PathVolume,
		}, walOptions(db)...),
		Env: append(instanceEnv(config), storeEnv(storeOf(db))...),
		Ports: []corev1.ContainerPort{
			{Name: "postgresql", ContainerPort: naming.PortPostgreSQL, Protocol: corev1.ProtocolTCP},
			{Name: "agent", ContainerPort: naming.PortAgent, Protocol: corev1.ProtocolTCP},
			{Name: "probe", ContainerPort: naming.PortProbe, Protocol: corev1.ProtocolTCP},
		},
		Resources:       db.Spec.Resources,
		SecurityContext: containerSecurity(),
		VolumeMounts:    instanceMounts(db),
		// It is not told to stop while it is replaced in place.
		Lifecycle: &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{
			Exec: &corev1.ExecAction{Command: []string{naming.PathBinary, "before-stop"}},
		}},
		// An agent that runs is alive, even while it clones for hours; so there is no
		// startup probe, which would put the first look at readiness off by a second.
		LivenessProbe: probe("/livez", 10, 5, 6),
		// Every second, because nobody gets in through the Service before it.
		ReadinessProbe: probe("/readyz", 1, 3, 2),
	}
}

// instanceEnv tells the agent who it is and which restore in place and upgrade its data must be of, which no file that
// is late may keep from it, and lets `kubectl exec NAME-0 -- psql` work.
func instanceEnv(config protocol.Config) []corev1.EnvVar {
	env := []corev1.EnvVar{
		fieldEnv("POD_NAME", "metadata.name"),
		fieldEnv("POD_NAMESPACE", "metadata.namespace"),
		fieldEnv("POD_IP", "status.podIP"),
		{Name: "PGDATA", Value: naming.PathData},
		{Name: "PGHOST", Value: naming.PathRun},
		{Name: "PGUSER", Value: naming.RoleSuperuser},
		{Name: "HOME", Value: pathTmp},
	}
	if config.Restored != "" {
		env = append(env, corev1.EnvVar{Name: naming.EnvRestored, Value: config.Restored})
	}
	if config.Survivor != "" {
		env = append(env, corev1.EnvVar{Name: naming.EnvSurvivor, Value: config.Survivor})
	}
	if config.Upgraded != "" {
		env = append(env, corev1.EnvVar{Name: naming.EnvUpgraded, Value: config.Upgraded})
	}
	return env
}

func fieldEnv(name, path string) corev1.EnvVar {
	return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{
		FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: path},
	}}
}

func probe(path string, period, timeout, failures int32) *corev1.Probe {
	return &corev1.Probe{
		ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{
			Path: path, Port: intstr.FromString("probe"), Scheme: corev1.URISchemeHTTP,
		}},
		PeriodSeconds:    period,
		TimeoutSeconds:   timeout,
		SuccessThreshold: 1,
		FailureThreshold: failures,
	}
}

// affinity spreads the instances over nodes as far as possible, unless the user
// has rules of their own.
func affinity(db *v1.SampleDB) *corev1.Affinity {
	if db.Spec.Pod.Affinity != nil {
		return db.Spec.Pod.Affinity
	}
	return onOtherNodes(naming.InstanceSelector(db.Name))
}

// onOtherNodes spreads the Pods of a selector over nodes as far as possible.
func onOtherNodes(selector map[string]string) *corev1.Affinity {
	return &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
		PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{
			Weight: 100,
			PodAffinityTerm: corev1.PodAffinityTerm{
				TopologyKey:   corev1.LabelHostname,
				LabelSelector: &metav1.LabelSelector{MatchLabels: selector},
			},
		}},
	}}
}

// zoneSpread spreads the instances over zones: as far as possible, unless the user has rules of their own, or always.
// It is no facet: where a Pod runs that is there already, its volume mostly decides. A zone whose nodes are all lost,
// or not for these Pods, is none that others would have to wait for.
func zoneSpread(db *v1.SampleDB) []corev1.TopologySpreadConstraint {
	otherwise := corev1.ScheduleAnyway
	switch {
	case db.Spec.ZoneSpread == v1.ZoneSpreadRequired:
		otherwise = corev1.DoNotSchedule
	case db.Spec.ZoneSpread == "", db.Spec.Pod.Affinity != nil:
		return nil
	}
	honor := corev1.NodeInclusionPolicyHonor
	return []corev1.TopologySpreadConstraint{{
		MaxSkew:           1,
		TopologyKey:       corev1.LabelTopologyZone,
		WhenUnsatisfiable: otherwise,
		LabelSelector:     &metav1.LabelSelector{MatchLabels: naming.InstanceSelector(db.Name)},
		NodeTaintsPolicy:  &honor,
	}}
}
