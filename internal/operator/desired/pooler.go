package desired

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
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

// Pool is a set of poolers that lead their clients to the same servers.
type Pool struct {
	// Name is that of everything that it is made of, Component that of its Pods.
	Name, Component string
	// Reads says that its clients only read.
	Reads bool
	// Least and Most are how many Pods there may be: an autoscaler decides where these differ.
	Least, Most int
	// Service is how its Service is published.
	Service v1.PoolServiceSpec
}

// Pools are those that the spec wants, the one that leads to the primary first.
func Pools(db *v1.SampleDB) []Pool {
	spec := db.Spec.Pooler
	if spec == nil {
		return nil
	}
	least := max(1, int(spec.Instances))
	out := []Pool{{
		Name: naming.Pool(db.Name), Component: naming.ComponentPooler, Least: least, Most: least, Service: spec.Service,
	}}
	if spec.Autoscale != nil {
		out[0].Most = max(least, int(spec.Autoscale.Max))
	}
	if spec.ReadOnly != nil {
		count := max(1, int(spec.ReadOnly.Instances))
		out = append(out, Pool{
			Name: naming.ReadPool(db.Name), Component: naming.ComponentReadPool, Reads: true, Least: count, Most: count,
		})
	}
	return out
}

// selector selects its Pods.
func (p Pool) selector(db *v1.SampleDB) map[string]string {
	return naming.PoolSelector(db.Name, p.Component)
}

// Replicas is how many Pods there are to be, where there are so many: none while the database is stopped. What an
// autoscaler has asked for stays.
func (p Pool) Replicas(have int, stopped bool) int {
	if stopped {
		return 0
	}
	return min(max(have, p.Least), p.Most)
}

// Settings are what its poolers are told. Readers are the addresses of spec.readers.
func (p Pool) Settings(db *v1.SampleDB, config protocol.Config, readers []string) protocol.PoolSettings {
	spec := db.Spec.Pooler
	mode := protocol.PoolTransaction
	if spec.Mode == v1.PoolSession {
		mode = protocol.PoolSession
	}
	settings := protocol.PoolSettings{
		Server:    naming.ServiceHost(naming.ReadWriteService(db.Name), db.Namespace),
		Authority: config.Authority, Given: config.Given, Mode: mode, Reads: p.Reads,
		Connections: max(1, PoolConnections(db)/p.Most),
		MaxClients:  cmp.Or(int(spec.MaxClients), 1000),
	}
	if db.Spec.Sleep() > 0 {
		settings.Operator, settings.Asleep = config.Operator, db.Status.Stop.Sleeps()
	}
	for _, m := range config.Members {
		settings.Hosts = append(settings.Hosts, m.Host)
	}
	if p.Reads && MostReaders(db) > 0 {
		settings.Readers, settings.ReadersOnly = readers, db.Spec.Readers.Only
	}
	return settings
}

// PoolConnections is how many connections all poolers of a Pool together open at most to one database: what the spec
// asks for, or half of what max_connections leaves, and never more than that.
func PoolConnections(db *v1.SampleDB) int {
	most, err := strconv.Atoi(Parameters(db)["max_connections"])
	if err != nil {
		most = 100 // PostgreSQL refuses it
	}
	free := max(most-keptConnections, 1)
	return min(cmp.Or(int(db.Spec.Pooler.Connections), max(free/2, 1)), free)
}

// PoolNames are the names and addresses that clients may call a pooler by.
func PoolNames(db *v1.SampleDB) []string {
	var out []string
	for _, p := range Pools(db) {
		host := naming.ServiceHost(p.Name, db.Namespace)
		out = append(out, p.Name, p.Name+"."+db.Namespace, host, host+".cluster.local")
	}
	return append(out, ownNames(db)...)
}

// PoolSecret is NAME-pool: the poolers' certificate and its key. It belongs to its revision.
func PoolSecret(db *v1.SampleDB, revision *appsv1.ControllerRevision, cert, key []byte) *corev1.Secret {
	data := map[string][]byte{naming.KeyTLSCertificate: cert, naming.KeyTLSKey: key}
	return secretOf(db, revision, naming.Pool(db.Name), corev1.SecretTypeTLS, data)
}

// PoolRevision is what NAME-pool belongs to with a certificate for some names of the authority of an epoch.
func PoolRevision(db *v1.SampleDB, epoch int64) *appsv1.ControllerRevision {
	content := fmt.Sprintf("%d-%s", epoch, Hash(PoolNames(db)))
	return secretRevision(db, naming.Pool(db.Name), naming.PoolRevision(db.Name, content), epoch)
}

// ConfigMap is what the poolers are told. Readers are the addresses of spec.readers.
func (p Pool) ConfigMap(db *v1.SampleDB, config protocol.Config, readers []string) (*corev1.ConfigMap, error) {
	text, err := json.MarshalIndent(p.Settings(db, config, readers), "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", naming.KeyPool, err)
	}
	return &corev1.ConfigMap{
		ObjectMeta: meta(db, p.Name),
		Data:       map[string]string{naming.KeyPool: string(text) + "\n"},
	}, nil
}

// Deployment runs the poolers. One that is replaced goes when the next one takes clients.
func (p Pool) Deployment(db *v1.SampleDB, settings Settings, replicas int) *appsv1.Deployment {
	count, revisions := int32(replicas), int32(2) //nolint:gosec // twenty at most
	none, one := intstr.FromInt32(0), intstr.FromInt32(1)
	labels := merged(naming.Common(db.Name), p.selector(db))
	object := meta(db, p.Name)
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
			Selector: &metav1.LabelSelector{MatchLabels: p.selector(db)},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{
					Labels:      merged(db.Spec.Pod.Labels, labels),
					Annotations: merged(db.Spec.Pod.Annotations),
				},
				Spec: p.pod(db, settings),
			},
		},
	}
}

func (p Pool) pod(db *v1.SampleDB, settings Settings) corev1.PodSpec {
	grace := int64(60)
	pod := auxiliaryPod(db, poolerUser)
	pod.TerminationGracePeriodSeconds = &grace
	pod.InitContainers = []corev1.Container{installContainer(settings)}
	pod.Containers = []corev1.Container{poolContainer(db, settings)}
	pod.Volumes = []corev1.Volume{
		{Name: volumePool, VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: p.Name},
		}}},
		secretVolume(volumePoolSecret, naming.Pool(db.Name)),
		emptyVolume(volumeProgram, corev1.StorageMediumDefault),
		emptyVolume(volumeRun, corev1.StorageMediumMemory),
	}
	pod.Affinity = onOtherNodes(p.selector(db))
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

// NetworkService is how clients reach the poolers.
func (p Pool) NetworkService(db *v1.SampleDB) *corev1.Service {
	s := service(db, p.Name, p.selector(db))
	s.Spec.Type = cmp.Or(p.Service.Type, corev1.ServiceTypeClusterIP)
	s.Annotations = merged(p.Service.Annotations)
	return s
}

// Budget lets one pooler at a time be evicted.
func (p Pool) Budget(db *v1.SampleDB) *policyv1.PodDisruptionBudget {
	return budget(db, p.Name, p.selector(db), 1)
}

// Policy lets those reach the poolers that may reach the servers, and the operator where it asks them.
func (p Pool) Policy(db *v1.SampleDB, settings Settings) *networkingv1.NetworkPolicy {
	rules := append(clientRules(db), metricsRules(db)...)
	if db.Spec.Sleep() > 0 {
		operator := operatorNamespace(settings)
		rules = append(rules, networkingv1.NetworkPolicyIngressRule{
			Ports: []networkingv1.NetworkPolicyPort{port(naming.PortAgent)},
			From:  []networkingv1.NetworkPolicyPeer{{NamespaceSelector: operator}},
		})
	}
	return &networkingv1.NetworkPolicy{
		ObjectMeta: meta(db, p.Name),
		Spec: networkingv1.NetworkPolicySpec{
			PodSelector: metav1.LabelSelector{MatchLabels: p.selector(db)},
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
			Ingress:     rules,
		},
	}
}

// Autoscaler has the number of Pods follow the use of the CPU, nil where that is not wanted.
func (p Pool) Autoscaler(db *v1.SampleDB) *autoscalingv2.HorizontalPodAutoscaler {
	if p.Reads || db.Spec.Pooler.Autoscale == nil {
		return nil
	}
	target := autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: p.Name}
	return autoscaler(db, target, p.Least, p.Most, db.Spec.Pooler.Autoscale.CPU)
}

// poolComponents are those of the poolers' Pods, none without spec.pooler.
func poolComponents(db *v1.SampleDB) []string {
	var out []string
	for _, p := range Pools(db) {
		out = append(out, p.Component)
	}
	return out
}
