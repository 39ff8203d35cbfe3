package upgrades

import (
	"fmt"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/change/major"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/desired"
	"toban.dev/internal/protocol"
)

// Volumes of their Pods besides those of all.
const (
	volumeFormer  = "former"
	volumeScratch = "scratch"
	volumeUpgrade = "upgrade"
)

// The kinds of work.
var (
	workUpgradeCheck = desired.Work{Retries: 1, Deadline: 30 * time.Minute, OneAfterAnother: true, Refuses: true,
		In: naming.ContainerUpgrade}
	// workUpgrade may wait for a window: its Pod is there before.
	workUpgrade = desired.Work{Retries: 3, Deadline: 8 * 24 * time.Hour, OneAfterAnother: true, Refuses: true,
		In: naming.ContainerUpgrade}
	workRehearsal = desired.Work{Retries: 2, OneAfterAnother: true, Refuses: true}
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
func (u Upgrade) JobName(db *v1.SampleDB) string { return naming.UpgradeJob(db.Name, desired.Hash(u)) }

// CheckName is that of the Job that looks before whether it can be done, whatever volume it will be done on.
func (u Upgrade) CheckName(db *v1.SampleDB) string {
	u.Ordinal, u.Node = 0, ""
	return naming.UpgradeCheckJob(db.Name, desired.Hash(u))
}

// Settings is what the Pods of an upgrade have to know.
func Settings(db *v1.SampleDB, config protocol.Config, u Upgrade) protocol.UpgradeSettings {
	out := protocol.UpgradeSettings{
		ID:         u.ID,
		Instance:   naming.Instance(db.Name, u.Ordinal),
		From:       u.From,
		To:         u.To,
		Hosts:      desired.Plan(db).Hosts,
		Parameters: config.Parameters,
		Operator:   config.Operator,
		Given:      config.Given,

		OnRequest:        desired.FinishOnRequest(db),
		UpdateExtensions: desired.UpdatesExtensions(db),
	}
	if spec := db.Spec.Upgrade; spec != nil {
		out.Method = strings.ToLower(string(spec.Method))
	}
	return out
}

// ConfigMap is NAME-upgrade: the settings of an upgrade.
func ConfigMap(db *v1.SampleDB, settings protocol.UpgradeSettings) (*corev1.ConfigMap, error) {
	return desired.SettingsConfigMap(db, naming.UpgradeConfigMap(db.Name), naming.KeyUpgrade, settings)
}

func upgradeSelector(db string) map[string]string {
	return map[string]string{naming.LabelComponent: naming.ComponentUpgrade, naming.LabelSampleDB: db}
}

// Policy lets the operator reach the Pods of an upgrade, and nobody else in.
func Policy(db *v1.SampleDB, settings desired.Settings) *networkingv1.NetworkPolicy {
	return desired.OperatorOnly(db, naming.UpgradePolicy(db.Name),
		metav1.LabelSelector{MatchLabels: upgradeSelector(db.Name)}, settings)
}

// CheckJob looks whether the databases can be upgraded, while they serve. It has no volume of theirs.
func CheckJob(db *v1.SampleDB, settings desired.Settings, u Upgrade) *batchv1.Job {
	pod := upgradePod(db, settings, u, "check")
	pod.Volumes = append(pod.Volumes, desired.EmptyVolume(volumeScratch, corev1.StorageMediumDefault))
	work := &pod.Containers[0]
	work.VolumeMounts = append(work.VolumeMounts,
		corev1.VolumeMount{Name: volumeScratch, MountPath: naming.PathScratch})
	return upgradeJob(db, workUpgradeCheck, u.CheckName(db), naming.ComponentUpgrade, pod)
}

// Job upgrades the data on the volume of an instance, when all instances have stopped. Its Pod is there before,
// on the node of that instance, past the scheduler: also when the instance does not run any more, and on a node that is
// cordoned.
func Job(db *v1.SampleDB, settings desired.Settings, u Upgrade) *batchv1.Job {
	pod := upgradePod(db, settings, u, "run")
	pod.NodeName, pod.NodeSelector = u.Node, nil
	data := desired.ClaimVolume(naming.VolumeData, naming.Claim(db.Name, u.Ordinal))
	pod.Volumes = append(pod.Volumes, data)
	work := &pod.Containers[0]
	work.VolumeMounts = append(work.VolumeMounts, corev1.VolumeMount{Name: data.Name, MountPath: naming.PathVolume})
	desired.WithWAL(db, &pod, u.Ordinal)
	return upgradeJob(db, workUpgrade, u.JobName(db), naming.ComponentUpgrade, pod)
}

func upgradeJob(db *v1.SampleDB, work desired.Work, name, component string, pod corev1.PodSpec) *batchv1.Job {
	object := desired.Meta(db, name)
	object.Labels[naming.LabelComponent] = component
	return work.Job(object, pod)
}

// upgradePod runs in the new version's image, and has the programs of the former one from an init container that runs
// in that one's.
func upgradePod(db *v1.SampleDB, settings desired.Settings, u Upgrade, command string) corev1.PodSpec {
	former := corev1.VolumeMount{Name: volumeFormer, MountPath: naming.PathFormer}
	program := corev1.VolumeMount{Name: desired.VolumeProgram, MountPath: naming.PathProgram, ReadOnly: true}
	collect := corev1.Container{
		Name:            naming.ContainerCollect,
		Image:           desired.Image(db, settings),
		ImagePullPolicy: corev1.PullIfNotPresent,
		Command: []string{
			naming.PathBinary, naming.VerbWork, "upgrade", "collect",
			"--major", fmt.Sprint(u.From), "--to", naming.PathFormer,
		},
		Resources:       desired.Requests("10m", "32Mi"),
		SecurityContext: desired.ContainerSecurity(),
		VolumeMounts:    []corev1.VolumeMount{program, former},
	}
	former.ReadOnly = true
	pod := desired.AskedPod(db, desired.InstanceUser, corev1.Container{
		Name:      naming.ContainerUpgrade,
		Image:     u.Image,
		Command:   []string{naming.PathBinary, naming.VerbWork, "upgrade", command},
		Resources: desired.ResourcesFor(db),
		VolumeMounts: []corev1.VolumeMount{
			program, former,
			{Name: desired.VolumeConfig, MountPath: naming.PathUpgrade, ReadOnly: true},
			{Name: desired.VolumeAuthority, MountPath: naming.PathAuthority, ReadOnly: true},
			{Name: desired.VolumeRun, MountPath: naming.PathRun},
			{Name: desired.VolumeTmp, MountPath: desired.PathTmp},
		},
	})
	pod.InitContainers = []corev1.Container{desired.InstallContainer(settings), collect}
	pod.Volumes = []corev1.Volume{
		desired.EmptyVolume(desired.VolumeProgram, corev1.StorageMediumDefault),
		desired.EmptyVolume(volumeFormer, corev1.StorageMediumDefault),
		desired.SettingsVolume(naming.UpgradeConfigMap(db.Name)),
		desired.AuthorityVolume(desired.VolumeAuthority, db.Name),
		desired.EmptyVolume(desired.VolumeRun, corev1.StorageMediumMemory), // it has the Pod's key
		desired.EmptyVolume(desired.VolumeTmp, corev1.StorageMediumDefault),
	}
	return pod
}

// Backup is the backup that is taken right before an upgrade.
func Backup(db *v1.SampleDB, id string) *v1.DatabaseBackup {
	return &v1.DatabaseBackup{
		ObjectMeta: metav1.ObjectMeta{
			Name: naming.UpgradeBackup(db.Name, id), Namespace: db.Namespace,
			Labels: desired.Merged(naming.Lasting(db.Name), map[string]string{naming.LabelOwner: string(db.UID)}),
		},
		Spec: v1.DatabaseBackupSpec{SampleDB: db.Name, Deadline: metav1.Duration{Duration: 24 * time.Hour}},
	}
}

// WayBack is what is known of what leads back after an upgrade in place that the spec asks for.
func WayBack(db *v1.SampleDB) major.WayBack {
	out := major.WayBack{To: int(db.Spec.Version), Archive: desired.Backup(db) != nil}
	out.Backup = out.Archive
	if spec := db.Spec.Upgrade; spec != nil {
		out.Method = string(spec.Method)
		out.Backup = out.Archive && spec.Backup != v1.UpgradeBackupNone
	}
	return out
}
