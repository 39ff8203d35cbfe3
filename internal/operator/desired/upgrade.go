package desired

import (
	"fmt"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/protocol"
)

// keepFormer is for how long the data of the former version is kept, where spec.upgrade.keep does not say.
const keepFormer = 7 * 24 * time.Hour

// KeepFormer is for how long the data of the former version is kept after an upgrade.
func KeepFormer(db *v1.SampleDB) time.Duration {
	if spec := db.Spec.Upgrade; spec != nil && spec.Keep != nil {
		return spec.Keep.Duration
	}
	return keepFormer
}

// Upgrade is an upgrade to another major version: what its Pods are made from.
type Upgrade struct {
	ID       string
	From, To int
	// Image is that of the new version.
	Image string
	// Instance is the one on whose volume the data is upgraded, by ordinal, Node where it runs.
	Ordinal int
	Node    string
	// Attempt is another one for each try.
	Attempt int
}

// JobName is that of the Job that upgrades the data.
func (u Upgrade) JobName(db *v1.SampleDB) string { return naming.UpgradeJob(db.Name, Hash(u)) }

// CheckName is that of the Job that looks before whether it can be done, whatever volume it will be done on.
func (u Upgrade) CheckName(db *v1.SampleDB) string {
	u.Ordinal, u.Node = 0, ""
	return naming.UpgradeCheckJob(db.Name, Hash(u))
}

// UpgradeSettings is what the Pods of an upgrade have to know.
func UpgradeSettings(db *v1.SampleDB, config protocol.Config, u Upgrade) protocol.UpgradeSettings {
	out := protocol.UpgradeSettings{
		ID:         u.ID,
		Instance:   naming.Instance(db.Name, u.Ordinal),
		From:       u.From,
		To:         u.To,
		Hosts:      Plan(db).Hosts,
		Parameters: config.Parameters,
		Operator:   config.Operator,
		Given:      config.Given,

		OnRequest:        FinishOnRequest(db),
		UpdateExtensions: UpdatesExtensions(db),
	}
	if spec := db.Spec.Upgrade; spec != nil {
		out.Method = strings.ToLower(string(spec.Method))
	}
	return out
}

// UpgradeConfigMap is NAME-upgrade: the settings of an upgrade.
func UpgradeConfigMap(db *v1.SampleDB, settings protocol.UpgradeSettings) (*corev1.ConfigMap, error) {
	return settingsConfigMap(db, naming.UpgradeConfigMap(db.Name), naming.KeyUpgrade, settings)
}

func upgradeSelector(db string) map[string]string {
	return map[string]string{naming.LabelComponent: naming.ComponentUpgrade, naming.LabelSampleDB: db}
}

// UpgradePolicy lets the operator reach the Pods of an upgrade, and nobody else in.
func UpgradePolicy(db *v1.SampleDB, settings Settings) *networkingv1.NetworkPolicy {
	return operatorOnly(db, naming.UpgradePolicy(db.Name),
		metav1.LabelSelector{MatchLabels: upgradeSelector(db.Name)}, settings)
}

// UpgradeCheckJob looks whether the databases can be upgraded, while they serve. It has no volume of theirs.
func UpgradeCheckJob(db *v1.SampleDB, settings Settings, u Upgrade) *batchv1.Job {
	pod := upgradePod(db, settings, u, "check")
	pod.Volumes = append(pod.Volumes, emptyVolume(volumeScratch, corev1.StorageMediumDefault))
	work := &pod.Containers[0]
	work.VolumeMounts = append(work.VolumeMounts,
		corev1.VolumeMount{Name: volumeScratch, MountPath: naming.PathScratch})
	return upgradeJob(db, workUpgradeCheck, u.CheckName(db), naming.ComponentUpgrade, pod)
}

// UpgradeJob upgrades the data on the volume of an instance, when all instances have stopped. Its Pod is there before,
// on the node of that instance, past the scheduler: also when the instance does not run any more, and on a node that is
// cordoned.
func UpgradeJob(db *v1.SampleDB, settings Settings, u Upgrade) *batchv1.Job {
	pod := upgradePod(db, settings, u, "run")
	pod.NodeName, pod.NodeSelector = u.Node, nil
	data := claimVolume(naming.VolumeData, naming.Claim(db.Name, u.Ordinal))
	pod.Volumes = append(pod.Volumes, data)
	work := &pod.Containers[0]
	work.VolumeMounts = append(work.VolumeMounts, corev1.VolumeMount{Name: data.Name, MountPath: naming.PathVolume})
	withWAL(db, &pod, u.Ordinal)
	return upgradeJob(db, workUpgrade, u.JobName(db), naming.ComponentUpgrade, pod)
}

func upgradeJob(db *v1.SampleDB, work Work, name, component string, pod corev1.PodSpec) *batchv1.Job {
	object := meta(db, name)
	object.Labels[naming.LabelComponent] = component
	return work.Job(object, pod)
}

// upgradePod runs in the new version's image, and has the programs of the former one from an init container that runs
// in that one's.
func upgradePod(db *v1.SampleDB, settings Settings, u Upgrade, command string) corev1.PodSpec {
	grace, mode := int64(30), configMode
	resources := db.Spec.Resources
	if len(resources.Requests) == 0 && len(resources.Limits) == 0 {
		resources = requests("100m", "256Mi")
	}
	pod := auxiliaryPod(db, instanceUser)
	pod.RestartPolicy = corev1.RestartPolicyNever
	pod.TerminationGracePeriodSeconds = &grace
	former := corev1.VolumeMount{Name: volumeFormer, MountPath: naming.PathFormer}
	program := corev1.VolumeMount{Name: volumeProgram, MountPath: naming.PathProgram, ReadOnly: true}
	pod.InitContainers = []corev1.Container{installContainer(settings), {
		Name:            naming.ContainerCollect,
		Image:           Image(db, settings),
		ImagePullPolicy: corev1.PullIfNotPresent,
		Command: []string{
			naming.PathBinary, naming.VerbWork, "upgrade", "collect",
			"--major", fmt.Sprint(u.From), "--to", naming.PathFormer,
		},
		Resources:       requests("10m", "32Mi"),
		SecurityContext: containerSecurity(),
		VolumeMounts:    []corev1.VolumeMount{program, former},
	}}
	former.ReadOnly = true
	pod.Containers = []corev1.Container{{
		Name:            naming.ContainerUpgrade,
		Image:           u.Image,
		ImagePullPolicy: corev1.PullIfNotPresent,
		Command:         []string{naming.PathBinary, naming.VerbWork, "upgrade", command},
		Env:             []corev1.EnvVar{fieldEnv("POD_IP", "status.podIP"), {Name: "HOME", Value: pathTmp}},
		Ports: []corev1.ContainerPort{
			{Name: "agent", ContainerPort: naming.PortAgent, Protocol: corev1.ProtocolTCP},
		},
		Resources:       resources,
		SecurityContext: containerSecurity(),
		VolumeMounts: []corev1.VolumeMount{
			program, former,
			{Name: volumeConfig, MountPath: naming.PathUpgrade, ReadOnly: true},
			{Name: volumeAuthority, MountPath: naming.PathAuthority, ReadOnly: true},
			{Name: volumeRun, MountPath: naming.PathRun},
			{Name: volumeTmp, MountPath: pathTmp},
		},
	}}
	pod.Volumes = []corev1.Volume{
		emptyVolume(volumeProgram, corev1.StorageMediumDefault),
		emptyVolume(volumeFormer, corev1.StorageMediumDefault),
		{Name: volumeConfig, VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: naming.UpgradeConfigMap(db.Name)},
			DefaultMode:          &mode,
		}}},
		authorityVolume(volumeAuthority, db.Name),
		emptyVolume(volumeRun, corev1.StorageMediumMemory), // it has the Pod's key
		emptyVolume(volumeTmp, corev1.StorageMediumDefault),
	}
	return pod
}

// UpgradeBackup is the backup that is taken right before an upgrade.
func UpgradeBackup(db *v1.SampleDB, id string) *v1.DatabaseBackup {
	return &v1.DatabaseBackup{
		ObjectMeta: metav1.ObjectMeta{
			Name: naming.UpgradeBackup(db.Name, id), Namespace: db.Namespace,
			Labels: merged(naming.Common(db.Name), map[string]string{naming.LabelOwner: string(db.UID)}),
		},
		Spec: v1.DatabaseBackupSpec{SampleDB: db.Name, Deadline: metav1.Duration{Duration: 24 * time.Hour}},
	}
}
