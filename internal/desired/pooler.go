package desired

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/protocol"
)

// poolerUser is as whom PgBouncer runs, as user and group. It may be anybody but root.
const poolerUser = 998

const (
	volumePool       = "pool"
	volumePoolSecret = "pool-secret"
)

// keptConnections are those that no pool gets: superuser_reserved_connections, and some for sessions that are not
// pooled, such as those of the init Job.
const keptConnections = 13

// PoolSettings are what the poolers are told.
func PoolSettings(db *v1.SampleDB, config protocol.Config) protocol.PoolSettings {
	spec := db.Spec.Pooler
	mode := protocol.PoolTransaction
	if spec.Mode == v1.PoolSession {
		mode = protocol.PoolSession
	}
	settings := protocol.PoolSettings{
		Authority: config.Authority, Given: config.Given, Mode: mode,
		Connections: max(1, PoolConnections(db)/poolers(db)),
		MaxClients:  cmp.Or(int(spec.MaxClients), 1000),
	}
	for _, m := range config.Members {
		settings.Hosts = append(settings.Hosts, m.Host)
	}
	return settings
}

// PoolConnections is how many connections all poolers together open at most to one database: what the spec asks for,
// or half of what max_connections leaves, and never more than that.
func PoolConnections(db *v1.SampleDB) int {
	most, err := strconv.Atoi(Parameters(db)["max_connections"])
	if err != nil {
		most = 100 // PostgreSQL refuses it
	}
	free := max(most-keptConnections, 1)
	return min(cmp.Or(int(db.Spec.Pooler.Connections), max(free/2, 1)), free)
}

// poolers is how many there are to be.
func poolers(db *v1.SampleDB) int { return max(1, int(db.Spec.Pooler.Instances)) }

// PoolNames are the names and addresses that clients may call a pooler by.
func PoolNames(db *v1.SampleDB) []string {
	service := naming.Pool(db.Name)
	host := naming.ServiceHost(service, db.Namespace)
	return append([]string{service, service + "." + db.Namespace, host, host + ".cluster.local"}, ownNames(db)...)
}

// PoolSecret is NAME-pool: the poolers' certificate and its key. It belongs to its revision.
func PoolSecret(db *v1.SampleDB, revision *appsv1.ControllerRevision, cert, key []byte) *corev1.Secret {
	secret := &corev1.Secret{
		ObjectMeta: meta(db, naming.Pool(db.Name)),
		Type:       corev1.SecretTypeTLS,
		Data:       map[string][]byte{naming.KeyTLSCertificate: cert, naming.KeyTLSKey: key},
	}
	secret.OwnerReferences = ofRevision(revision)
	return secret
}

// PoolRevision is what NAME-pool belongs to with a certificate for some names of the authority of an epoch.
func PoolRevision(db *v1.SampleDB, epoch int64) *appsv1.ControllerRevision {
	content := fmt.Sprintf("%d-%s", epoch, Hash(PoolNames(db)))
	return secretRevision(db, naming.Pool(db.Name), naming.PoolRevision(db.Name, content), epoch)
}

// PoolConfigMap is NAME-pool: what the poolers are told.
func PoolConfigMap(db *v1.SampleDB, config protocol.Config) (*corev1.ConfigMap, error) {
	text, err := json.MarshalIndent(PoolSettings(db, config), "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", naming.KeyPool, err)
	}
	return &corev1.ConfigMap{
		ObjectMeta: meta(db, naming.Pool(db.Name)),
		Data:       map[string]string{naming.KeyPool: string(text) + "\n"},
	}, nil
}

// PoolDeployment runs the poolers, none while the database is stopped. One that is replaced goes when the next one
// takes clients.
func PoolDeployment(db *v1.SampleDB, settings Settings, stopped bool) *appsv1.Deployment {
	count, revisions := int32(poolers(db)), int32(2) //nolint:gosec // twenty at most
	if stopped {
		count = 0
	}
	none, one := intstr.FromInt32(0), intstr.FromInt32(1)
	labels := merged(naming.Common(db.Name), naming.PoolSelector(db.Name))
	object := meta(db, naming.Pool(db.Name))
	object.Labels = labels
	return &appsv1.Deployment{
		ObjectMeta: object,
		Spec: appsv1.DeploymentSpec{
			Replicas:             &count,
			RevisionHistoryLimit: &revisions,
			Strategy: appsv1.DeploymentStrategy{
				Type:          appsv1.RollingUpdateDeploymentStrategyType,
				RollingUpdate: &appsv1.RollingUpdateDeployment{MaxUnavailable: &none, MaxSurge: &one},
			},
			Selector: &metav1.LabelSelector{MatchLabels: naming.PoolSelector(db.Name)},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{
					Labels:      merged(db.Spec.Pod.Labels, labels),
					Annotations: merged(db.Spec.Pod.Annotations),
				},
				Spec: poolPod(db, settings),
			},
		},
	}
}

func poolPod(db *v1.SampleDB, settings Settings) corev1.PodSpec {
	grace := int64(60)
	pod := auxiliaryPod(db, poolerUser)
	pod.TerminationGracePeriodSeconds = &grace
	pod.InitContainers = []corev1.Container{installContainer(settings)}
	pod.Containers = []corev1.Container{poolContainer(db, settings)}
	pod.Volumes = []corev1.Volume{
		{Name: volumePool, VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: naming.Pool(db.Name)},
		}}},
		secretVolume(volumePoolSecret, naming.Pool(db.Name)),
		emptyVolume(volumeProgram, corev1.StorageMediumDefault),
		emptyVolume(volumeRun, corev1.StorageMediumMemory),
	}
	pod.Affinity = onOtherNodes(naming.PoolSelector(db.Name))
	return pod
}

func poolContainer(db *v1.SampleDB, settings Settings) corev1.Container {
	resources := db.Spec.Pooler.Resources
	if len(resources.Limits) == 0 && len(resources.Requests) == 0 {
		resources = requests("50m", "64Mi")
	}
	return corev1.Container{
		Name:            naming.ContainerPooler,
		Image:           cmp.Or(db.Spec.Pooler.Image, settings.Pooler),
		ImagePullPolicy: corev1.PullIfNotPresent,
		Command: []string{
			naming.PathBinary, "pooler",
			"--settings", naming.PathPool + "/" + naming.KeyPool,
			"--certificate", naming.PathPoolKey,
			"--run", naming.PathRun,
		},
		Env: []corev1.EnvVar{fieldEnv("POD_NAME", "metadata.name")},
		Ports: []corev1.ContainerPort{
			{Name: "postgresql", ContainerPort: naming.PortPostgreSQL, Protocol: corev1.ProtocolTCP},
			{Name: "probe", ContainerPort: naming.PortProbe, Protocol: corev1.ProtocolTCP},
		},
		Resources:       resources,
		SecurityContext: containerSecurity(),
		VolumeMounts: []corev1.VolumeMount{
			{Name: volumePool, MountPath: naming.PathPool, ReadOnly: true},
			{Name: volumePoolSecret, MountPath: naming.PathPoolKey, ReadOnly: true},
			{Name: volumeProgram, MountPath: naming.PathProgram, ReadOnly: true},
			{Name: volumeRun, MountPath: naming.PathRun},
		},
		// It takes clients until no node sends it any more.
		Lifecycle:      &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: 5}}},
		LivenessProbe:  probe("/livez", 10, 5, 6),
		ReadinessProbe: probe("/readyz", 1, 3, 2),
	}
}

// PoolService is NAME-pool, by which clients reach the poolers.
func PoolService(db *v1.SampleDB) *corev1.Service {
	s := service(db, naming.Pool(db.Name), naming.PoolSelector(db.Name))
	s.Spec.Type = corev1.ServiceTypeClusterIP
	return s
}

// PoolBudget lets one pooler at a time be evicted.
func PoolBudget(db *v1.SampleDB) *policyv1.PodDisruptionBudget {
	return budget(db, naming.Pool(db.Name), naming.PoolSelector(db.Name), 1)
}

// PoolPolicy lets those reach the poolers that may reach the servers.
func PoolPolicy(db *v1.SampleDB) *networkingv1.NetworkPolicy {
	return &networkingv1.NetworkPolicy{
		ObjectMeta: meta(db, naming.Pool(db.Name)),
		Spec: networkingv1.NetworkPolicySpec{
			PodSelector: metav1.LabelSelector{MatchLabels: naming.PoolSelector(db.Name)},
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
			Ingress:     append(clientRules(db), metricsRules(db)...),
		},
	}
}
