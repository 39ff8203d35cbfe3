package desired

import (
	"cmp"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/protocol"
)

// fewReaders is for how many readers the default connections and slots for replication suffice, beside nine instances:
// 8 standbys, 5 readers that each copy by a second connection, and a backup by two are 20.
const fewReaders = 5

// MostReaders is how many readers there may be by the spec, 0 where none are wanted.
func MostReaders(db *v1.SampleDB) int {
	switch r := db.Spec.Readers; {
	case r == nil:
		return 0
	case r.Autoscale != nil:
		return int(r.Autoscale.Max)
	default:
		return int(r.Count)
	}
}

// ReadersSet runs the readers. It is the StatefulSet of the instances, but for labels that none of the instances'
// selectors matches, and for the volumes: a reader's has nothing that others have not, so it goes with its reader.
func ReadersSet(
	db *v1.SampleDB, settings Settings, config protocol.Config, replicas int, current *appsv1.StatefulSet,
) (*appsv1.StatefulSet, error) {
	set, err := StatefulSet(db, settings, config, replicas, current)
	if err != nil {
		return nil, err
	}
	set.Name = naming.Readers(db.Name)
	set.Spec.Selector = &metav1.LabelSelector{MatchLabels: naming.ReaderSelector(db.Name)}
	set.Spec.PersistentVolumeClaimRetentionPolicy = &appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{
		WhenDeleted: appsv1.DeletePersistentVolumeClaimRetentionPolicyType,
		WhenScaled:  appsv1.DeletePersistentVolumeClaimRetentionPolicyType,
	}
	names := map[string]string{naming.VolumeData: naming.VolumeReader, naming.VolumeWAL: naming.VolumeReaderWAL}
	for i, claim := range set.Spec.VolumeClaimTemplates {
		set.Spec.VolumeClaimTemplates[i].Name = cmp.Or(names[claim.Name], claim.Name)
	}
	template := &set.Spec.Template
	template.Labels = merged(template.Labels, naming.ReaderSelector(db.Name))
	for i, mount := range template.Spec.Containers[0].VolumeMounts {
		template.Spec.Containers[0].VolumeMounts[i].Name = cmp.Or(names[mount.Name], mount.Name)
	}
	if db.Spec.Pod.Affinity == nil {
		servers := servers(db)
		template.Spec.Affinity.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution[0].
			PodAffinityTerm.LabelSelector = &servers
	}
	return set, nil
}

// servers selects the Pods that run a server of the SampleDB: the instances, and the readers where there are any.
func servers(db *v1.SampleDB) metav1.LabelSelector {
	if MostReaders(db) == 0 {
		return metav1.LabelSelector{MatchLabels: naming.InstanceSelector(db.Name)}
	}
	return podsOf(db, naming.ComponentInstance, naming.ComponentReader)
}

// ReadersBudget lets one reader at a time be evicted. It has nothing to do with that of the instances.
func ReadersBudget(db *v1.SampleDB) *policyv1.PodDisruptionBudget {
	return budget(db, naming.Readers(db.Name), naming.ReaderSelector(db.Name), 1)
}

// ReadersAutoscaler has the number of readers follow the use of the CPU, nil where that is not wanted. One comes or
// goes in a minute, because each new one copies all data from the primary.
func ReadersAutoscaler(db *v1.SampleDB) *autoscalingv2.HorizontalPodAutoscaler {
	if db.Spec.Readers == nil || db.Spec.Readers.Autoscale == nil {
		return nil
	}
	want := db.Spec.Readers.Autoscale
	target := autoscalingv2.CrossVersionObjectReference{
		APIVersion: "apps/v1", Kind: "StatefulSet", Name: naming.Readers(db.Name),
	}
	out := autoscaler(db, target, int(want.Min), int(want.Max), want.CPU)
	slowly := &autoscalingv2.HPAScalingRules{Policies: []autoscalingv2.HPAScalingPolicy{
		{Type: autoscalingv2.PodsScalingPolicy, Value: 1, PeriodSeconds: 60},
	}}
	out.Spec.Behavior = &autoscalingv2.HorizontalPodAutoscalerBehavior{ScaleUp: slowly, ScaleDown: slowly}
	return out
}

// autoscaler has the number of some Pods follow the use of the CPU, which is given in hundredths of what they request.
func autoscaler(
	db *v1.SampleDB, target autoscalingv2.CrossVersionObjectReference, least, most int, use int32,
) *autoscalingv2.HorizontalPodAutoscaler {
	minimum := max(1, int32(least)) //nolint:gosec // fifty at most
	return &autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: meta(db, target.Name),
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: target,
			MinReplicas:    &minimum,
			MaxReplicas:    int32(most), //nolint:gosec // fifty at most
			Metrics: []autoscalingv2.MetricSpec{{
				Type: autoscalingv2.ResourceMetricSourceType,
				Resource: &autoscalingv2.ResourceMetricSource{
					Name: corev1.ResourceCPU,
					Target: autoscalingv2.MetricTarget{
						Type: autoscalingv2.UtilizationMetricType, AverageUtilization: &use,
					},
				},
			}},
		},
	}
}

// readOnly selects whom NAME-ro leads to. A lone instance serves its readers too, so that an application's second
// connection string works from the start. While no reader is ready, it is as if there were none. Where the second side
// serves, it is whom that one's own leads to.
func readOnly(db, green *v1.SampleDB) map[string]string {
	standby := string(protocol.RoleStandby)
	serve := MostReaders(db) > 0 && db.Status.Readers != nil && db.Status.Readers.Ready > 0
	switch {
	case serving(db) != db.Name && green != nil && green.Name == serving(db):
		return readOnly(green, nil)
	case serving(db) != db.Name:
		return readOnlyOf(serving(db), Instances(db))
	case serve && db.Spec.Readers.Only:
		return merged(naming.ReaderSelector(db.Name), naming.AnyStandby(db.Name, standby))
	case serve:
		return naming.AnyStandby(db.Name, standby)
	}
	return readOnlyOf(db.Name, Instances(db))
}

// readOnlyOf leads to the standbys of a SampleDB, and where it has none, to the primary.
func readOnlyOf(db string, instances int) map[string]string {
	if instances == 1 {
		return naming.RoleSelector(db, string(protocol.RolePrimary))
	}
	return naming.RoleSelector(db, string(protocol.RoleStandby))
}
