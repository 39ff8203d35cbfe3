package desired

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/protocol"
)

const volumeGreenAuthority = "green-authority"

// Sides is one step of a blue/green upgrade: what its Pod is made from.
type Sides struct {
	// ID is the upgrade's.
	ID   string
	Work protocol.SidesWork
	// FromGreen says that the second side is the one that serves.
	FromGreen bool
	// Run is another one for each try.
	Run string
}

// JobName is that of its Job.
func (x Sides) JobName(db *v1.SampleDB) string { return naming.SidesJob(db.Name, Hash(x)) }

// withoutGreen says that its work can be done where there is no second side: not yet, or not any more.
func (x Sides) withoutGreen() bool {
	return x.Work == protocol.SidesPublish || x.Work == protocol.SidesCancel
}

// TwoSides says that a blue/green upgrade has begun to make a second side, and has not ended: the sides must not come
// to differ by anything but what clients write, which the link carries. It carries no role and no password, and
// nothing of a restore.
func TwoSides(db *v1.SampleDB) bool {
	switch sidesStep(db) {
	case v1.SidesPublishing, v1.SidesCopying, v1.SidesFollowing, v1.SidesComparing, v1.SidesReady, v1.SidesChanging,
		v1.SidesChanged, v1.SidesChangingBack, v1.SidesComingHome, v1.SidesCancelling:
		return true
	}
	return false
}

// sidesStep is that of a blue/green upgrade, "" where there is none.
func sidesStep(db *v1.SampleDB) string {
	if u := db.Status.Upgrade; u != nil && u.Sides != nil {
		return u.Sides.Step
	}
	return ""
}

// otherSide is the SampleDB of the other side, "" where there is none; first is that whose Pods do the work of both.
func otherSide(db *v1.SampleDB) (other, first string) {
	if of, green := IsGreen(db); green {
		return of, of
	}
	if linked(db) {
		return naming.Green(db.Name), db.Name
	}
	return "", ""
}

// linked says that the other side follows, or is about to. It is so from the first step on, and as long as there is
// any: what changes with it has standbys connect anew, so that the SampleDB is not Ready for a moment, and the step is
// Waiting.
func linked(db *v1.SampleDB) bool {
	if _, green := IsGreen(db); green {
		return true
	}
	switch sidesStep(db) {
	case "", v1.UpgradeUpgraded, v1.UpgradeFailed:
		return false
	}
	return true
}

// sideClosed says that a side lets no client in, because the other one serves or is to.
func sideClosed(db *v1.SampleDB) bool {
	if _, green := IsGreen(db); green {
		return db.Annotations[naming.AnnotationSide] != naming.SideServes
	}
	return db.Status.Upgrade.BlueClosed()
}

// SidesSettings is what the Pods of a blue/green upgrade have to know. Position is "" before it is known, and green,
// the config of the second side, nil before that is there.
func SidesSettings(config protocol.Config, id, position string, green *protocol.Config) protocol.SidesSettings {
	out := protocol.SidesSettings{
		ID:       id,
		Position: position,
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

// SidesConfigMap is NAME-sides: the settings of a blue/green upgrade.
func SidesConfigMap(db *v1.SampleDB, settings protocol.SidesSettings) (*corev1.ConfigMap, error) {
	return settingsConfigMap(db, naming.SidesConfigMap(db.Name), naming.KeySides, settings)
}

func sidesSelector(db string) map[string]string {
	return map[string]string{naming.LabelComponent: naming.ComponentSides, naming.LabelSampleDB: db}
}

// SidesPolicy lets the operator reach the Pods of a blue/green upgrade, and nobody else in.
func SidesPolicy(db *v1.SampleDB, settings Settings) *networkingv1.NetworkPolicy {
	return operatorOnly(db, naming.SidesPolicy(db.Name),
		metav1.LabelSelector{MatchLabels: sidesSelector(db.Name)}, settings)
}

// SidesJob does one step of a blue/green upgrade. Its Pod connects to the primaries of both sides, and has no volume
// of either.
func SidesJob(db *v1.SampleDB, settings Settings, x Sides) *batchv1.Job {
	work := workSides
	if x.Work == protocol.SidesChange {
		work = workSidesChange
	}
	object := meta(db, x.JobName(db))
	object.Labels = merged(naming.Common(db.Name), sidesSelector(db.Name))
	return work.Job(object, sidesPod(db, settings, x))
}

func sidesPod(db *v1.SampleDB, settings Settings, x Sides) corev1.PodSpec {
	grace, mode := int64(30), configMode
	command := []string{naming.PathImageBinary, naming.VerbWork, "sides", string(x.Work)}
	if x.FromGreen {
		command = append(command, "--from-green")
	}
	pod := auxiliaryPod(db, initUser)
	pod.RestartPolicy = corev1.RestartPolicyNever
	pod.TerminationGracePeriodSeconds = &grace
	pod.Containers = []corev1.Container{{
		Name:            naming.ContainerSides,
		Image:           settings.Image,
		ImagePullPolicy: corev1.PullIfNotPresent,
		Command:         command,
		Env:             []corev1.EnvVar{fieldEnv("POD_IP", "status.podIP"), {Name: "HOME", Value: pathTmp}},
		Ports: []corev1.ContainerPort{
			{Name: "agent", ContainerPort: naming.PortAgent, Protocol: corev1.ProtocolTCP},
		},
		Resources:       requests("100m", "128Mi"),
		SecurityContext: containerSecurity(),
		VolumeMounts: []corev1.VolumeMount{
			{Name: volumeConfig, MountPath: naming.PathSides, ReadOnly: true},
			{Name: volumeAuthority, MountPath: naming.PathAuthority, ReadOnly: true},
			{Name: volumeGreenAuthority, MountPath: naming.PathGreenAuthority, ReadOnly: true},
			{Name: volumeRun, MountPath: naming.PathRun},
			{Name: volumeTmp, MountPath: pathTmp},
		},
	}}
	green := authorityVolume(volumeGreenAuthority, naming.Green(db.Name))
	if optional := true; x.withoutGreen() {
		green.Projected.Sources[0].Secret.Optional = &optional
	}
	pod.Volumes = []corev1.Volume{
		{Name: volumeConfig, VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: naming.SidesConfigMap(db.Name)},
			DefaultMode:          &mode,
		}}},
		authorityVolume(volumeAuthority, db.Name),
		green,
		emptyVolume(volumeRun, corev1.StorageMediumMemory), // it has the Pod's keys
		emptyVolume(volumeTmp, corev1.StorageMediumDefault),
	}
	return pod
}
