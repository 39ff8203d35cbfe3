package desired

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/protocol"
)

// Bring is a DatabaseRestore with all that it needs.
type Bring struct {
	Wanted *v1.DatabaseRestore
	// Config is that of the SampleDB, Source its archive.
	Config protocol.Config
	Source Source
}

// Suffix is what the names end in that it brings back: of no two DatabaseRestores the same.
func (x Bring) Suffix() string {
	return "restored_" + x.Wanted.CreationTimestamp.UTC().Format("20060102_150405") + "_" + Hash(x.Wanted.UID)[:4]
}

// meta belongs to the DatabaseRestore.
func (x Bring) meta(db *v1.SampleDB) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name: naming.Bring(x.Wanted.Name), Namespace: x.Wanted.Namespace,
		Labels: merged(naming.Common(db.Name), BringSelector(db.Name)),
		OwnerReferences: []metav1.OwnerReference{
			*metav1.NewControllerRef(x.Wanted, v1.GroupVersion.WithKind("DatabaseRestore")),
		},
	}
}

// BringSelector selects the Pods of a SampleDB's DatabaseRestores.
func BringSelector(db string) map[string]string {
	return map[string]string{naming.LabelSampleDB: db, naming.LabelComponent: naming.ComponentBring}
}

// BringConfigMap has what its Pod has to know.
func BringConfigMap(db *v1.SampleDB, x Bring) (*corev1.ConfigMap, error) {
	spec := x.Wanted.Spec
	restore, err := RestoreSettings(db, x.Config, Restore{Wanted: v1.RestoreSpec{
		Backup: spec.Backup, Target: spec.Target}}, x.Source)
	if err != nil {
		return nil, err
	}
	restore.Scratch = true
	bring := protocol.BringSettings{
		Database: spec.Database, Tables: spec.Tables, Schemas: spec.Schemas,
		Suffix: x.Suffix(), Replace: spec.Mode == v1.RestoreReplace, Major: x.Config.Major,
		Parameters: restore.Parameters, Operator: x.Config.Operator,
	}
	if bring.Database == "" {
		bring.Database = initSpec(db).Database
	}
	out := &corev1.ConfigMap{ObjectMeta: x.meta(db), Data: map[string]string{}}
	for key, settings := range map[string]any{naming.KeyRestore: restore, naming.KeyBring: bring} {
		text, err := json.MarshalIndent(settings, "", "  ")
		if err != nil {
			return nil, fmt.Errorf("encode %s: %w", key, err)
		}
		out.Data[key] = string(text) + "\n"
	}
	return out, nil
}

// BringJob restores the archive into a scratch volume, and brings from there to the primary what is wanted.
func BringJob(db *v1.SampleDB, settings Settings, x Bring, deadline time.Duration) (*batchv1.Job, error) {
	pod, err := bringPod(db, settings, x)
	if err != nil {
		return nil, err
	}
	return workBring.Within(deadline).Job(x.meta(db), pod), nil
}

// bringPod restores in the first container, which alone can read the archive. Then two run side by side: one runs the
// copy's server, with code of the database, and has no Secret; the other connects to both servers.
func bringPod(db *v1.SampleDB, settings Settings, x Bring) (corev1.PodSpec, error) {
	scratch, err := scratchVolume(db)
	if err != nil {
		return corev1.PodSpec{}, err
	}
	volumes, mounts := restoreVolumes(db, naming.Bring(x.Wanted.Name), scratch, x.Source)
	pod := restoringPod(db, settings, x.Source, volumes, mounts)
	restore := pod.Containers[0]
	restore.Resources = requests("100m", "512Mi")
	pod.InitContainers = append(slices.Clone(pod.InitContainers), restore)
	plan := configVolume(db)
	plan.Name = volumePlan
	pod.Volumes = append(slices.Clone(pod.Volumes), plan, emptyVolume(volumeSocket, corev1.StorageMediumMemory))
	pod.Containers = []corev1.Container{bringContainer(restore), copyContainer(restore)}
	return pod, nil
}

// copyContainer runs the server of what was restored.
func copyContainer(restore corev1.Container) corev1.Container {
	out := *restore.DeepCopy()
	out.Name, out.Command, out.Ports = naming.ContainerCopy, []string{naming.PathBinary, naming.VerbWork, "copy"}, nil
	out.Env = []corev1.EnvVar{{Name: "HOME", Value: pathTmp}}
	out.VolumeMounts = mountsOf(restore, volumeProgram, volumeConfig, volumeTmp, naming.VolumeData)
	out.VolumeMounts = append(out.VolumeMounts, corev1.VolumeMount{Name: volumeSocket, MountPath: naming.PathRun})
	return out
}

// bringContainer connects to the primary as the init Job does.
func bringContainer(restore corev1.Container) corev1.Container {
	out := *restore.DeepCopy()
	out.Name, out.Command = naming.ContainerBring, []string{naming.PathBinary, naming.VerbWork, "bring"}
	out.Ports = nil // it listens where the container did that restored
	out.Env = []corev1.EnvVar{fieldEnv("POD_IP", "status.podIP"), {Name: "HOME", Value: naming.PathRun}}
	out.VolumeMounts = append(
		mountsOf(restore, volumeProgram, volumeConfig, volumeAuthority, volumeRun, naming.VolumeData),
		corev1.VolumeMount{Name: volumePlan, MountPath: naming.PathConfig, ReadOnly: true},
		corev1.VolumeMount{Name: volumeSocket, MountPath: naming.PathCopy})
	return out
}

// mountsOf are those of some volumes.
func mountsOf(c corev1.Container, volumes ...string) []corev1.VolumeMount {
	var out []corev1.VolumeMount
	for _, m := range c.VolumeMounts {
		if slices.Contains(volumes, m.Name) {
			out = append(out, m)
		}
	}
	return out
}
