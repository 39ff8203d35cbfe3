package sides

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/change/bluegreen"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/desired"
	"toban.dev/internal/protocol"
)

const volumeGreenAuthority = "green-authority"

// The kinds of work.
var (
	// workSides may compare all rows, and what is half made another Pod makes whole.
	workSides = desired.Work{Retries: 6, Deadline: 24 * time.Hour, OneAfterAnother: true, Refuses: true,
		In: naming.ContainerSides}
	// workSidesChange waits for its beginning, but not for long; one that has failed is put off.
	workSidesChange = desired.Work{Deadline: 15 * time.Minute, OneAfterAnother: true, Refuses: true,
		In: naming.ContainerSides}
)

// Step is one step of a blue/green upgrade: what its Pod is made from.
type Step struct {
	// ID is the upgrade's.
	ID   string
	Work protocol.SidesWork
	// FromGreen says that the second side is the one that serves.
	FromGreen bool
	// Run is another one for each try.
	Run string
}

// JobName is that of its Job.
func (x Step) JobName(db *v1.SampleDB) string { return naming.SidesJob(db.Name, desired.Hash(x)) }

// withoutGreen says that its work can be done where there is no second side: not yet, or not any more.
func (x Step) withoutGreen() bool {
	return x.Work == protocol.SidesPublish || x.Work == protocol.SidesCancel
}

// Settings is what the Pods of a blue/green upgrade have to know. Position is "" before it is known, and green,
// the config of the second side, nil before that is there.
func Settings(config protocol.Config, u *v1.UpgradeStatus, green *protocol.Config) protocol.SidesSettings {
	out := protocol.SidesSettings{
		ID:       u.ID,
		Position: u.Sides.Position,
		To:       int(u.To),
		Blue:     protocol.SidesOf{Hosts: hosts(config), Given: config.Given},
		Operator: config.Operator,
	}
	if green != nil {
		// Its servers show a certificate that the first side's authority has issued.
		out.Green = protocol.SidesOf{Hosts: hosts(*green), Given: config.Authority}
	}
	return out
}

func hosts(config protocol.Config) []string {
	var out []string
	for _, m := range config.Members {
		out = append(out, m.Host)
	}
	return out
}

// ConfigMap is NAME-sides: the settings of a blue/green upgrade.
func ConfigMap(db *v1.SampleDB, settings protocol.SidesSettings) (*corev1.ConfigMap, error) {
	return desired.SettingsConfigMap(db, naming.SidesConfigMap(db.Name), naming.KeySides, settings)
}

func sidesSelector(db string) map[string]string {
	return map[string]string{naming.LabelComponent: naming.ComponentSides, naming.LabelSampleDB: db}
}

// Policy lets the operator reach the Pods of a blue/green upgrade, and nobody else in.
func Policy(db *v1.SampleDB, settings desired.Settings) *networkingv1.NetworkPolicy {
	return desired.OperatorOnly(db, naming.SidesPolicy(db.Name),
		metav1.LabelSelector{MatchLabels: sidesSelector(db.Name)}, settings)
}

// Job does one step of a blue/green upgrade. Its Pod connects to the primaries of both sides, and has no volume
// of either.
func Job(db *v1.SampleDB, settings desired.Settings, x Step) *batchv1.Job {
	work := workSides
	if x.Work == protocol.SidesChange {
		work = workSidesChange
	}
	object := desired.Meta(db, x.JobName(db))
	object.Labels = desired.Merged(naming.Common(db.Name), sidesSelector(db.Name))
	return work.Job(object, sidesPod(db, settings, x))
}

func sidesPod(db *v1.SampleDB, settings desired.Settings, x Step) corev1.PodSpec {
	command := []string{naming.PathImageBinary, naming.VerbWork, "sides", string(x.Work)}
	if x.FromGreen {
		command = append(command, "--from-green")
	}
	pod := desired.AskedPod(db, desired.InitUser, corev1.Container{
		Name:      naming.ContainerSides,
		Image:     settings.Image,
		Command:   command,
		Resources: desired.Requests("100m", "128Mi"),
		VolumeMounts: []corev1.VolumeMount{
			{Name: desired.VolumeConfig, MountPath: naming.PathSides, ReadOnly: true},
			{Name: desired.VolumeAuthority, MountPath: naming.PathAuthority, ReadOnly: true},
			{Name: volumeGreenAuthority, MountPath: naming.PathGreenAuthority, ReadOnly: true},
			{Name: desired.VolumeRun, MountPath: naming.PathRun},
			{Name: desired.VolumeTmp, MountPath: desired.PathTmp},
		},
	})
	green := desired.AuthorityVolume(volumeGreenAuthority, naming.Green(db.Name))
	if optional := true; x.withoutGreen() {
		green.Projected.Sources[0].Secret.Optional = &optional
	}
	pod.Volumes = []corev1.Volume{
		desired.SettingsVolume(naming.SidesConfigMap(db.Name)),
		desired.AuthorityVolume(desired.VolumeAuthority, db.Name),
		green,
		desired.EmptyVolume(desired.VolumeRun, corev1.StorageMediumMemory), // it has the Pod's keys
		desired.EmptyVolume(desired.VolumeTmp, corev1.StorageMediumDefault),
	}
	return pod
}

// StrategyFacts are the facts about a SampleDB that may keep it from an upgrade by a second side.
func StrategyFacts(db *v1.SampleDB) bluegreen.StrategyFacts {
	return bluegreen.StrategyFacts{
		From: desired.Major(db), NoArchive: desired.Backup(db) == nil, Pooler: db.Spec.Pooler != nil,
		OwnCertificate: db.Spec.TLS.SecretName != "",
	}
}
