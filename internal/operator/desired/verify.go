package desired

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/protocol"
)

// verification is what Pods that verify a SampleDB's backups have to know.
func verification(db *v1.SampleDB, config protocol.Config) protocol.Verification {
	out := protocol.Verification{
		Major: config.Major, Encrypted: Backup(db).Encryption != nil, Parameters: ofExtensions(config.Parameters),
		Scrub: scrub(db),
	}
	for _, a := range Backup(db).Verification.Assertions {
		database := a.Database
		if database == "" {
			database = initSpec(db).Database
		}
		out.Assertions = append(out.Assertions,
			protocol.Assertion{Name: a.Name, Database: database, SQL: a.SQL, Want: a.Want})
	}
	return out
}

// ofExtensions are the parameters that a server needs which brings a backup back: those of its extensions.
// The rest is about the load, of which there is none, or may have a value that PostgreSQL refuses, which must
// keep nobody from the data.
func ofExtensions(parameters map[string]string) map[string]string {
	out := map[string]string{}
	for name, value := range parameters {
		if strings.HasSuffix(name, "_preload_libraries") || strings.Contains(name, ".") {
			out[name] = value
		}
	}
	return out
}

// verifySelector selects the Pods of all verifications of a SampleDB.
func verifySelector(db string) map[string]string {
	return map[string]string{naming.LabelSampleDB: db, naming.LabelComponent: naming.ComponentVerify}
}

// verifyDeadline is how long a verification may take at least.
const verifyDeadline = 24 * time.Hour

// VerifyDeadline is how long the verification of a backup may take: as long as the backup, and a day at least.
func VerifyDeadline(backup *v1.DatabaseBackup) time.Duration {
	return max(backup.Spec.Deadline.Duration, verifyDeadline)
}

// VerifyJobName is that of the Job for one request.
func VerifyJobName(backup *v1.DatabaseBackup, asked string) string {
	return naming.VerifyJob(backup.Name, Hash([]string{string(backup.UID), asked}))
}

// VerifyJob verifies a backup, once: what it finds is the result, whatever that is.
func VerifyJob(db *v1.SampleDB, backup *v1.DatabaseBackup, settings Settings, asked string) (*batchv1.Job, error) {
	spec, err := verifyPod(db, backup, settings)
	if err != nil {
		return nil, err
	}
	object := ordered(db, backup, "DatabaseBackup", VerifyJobName(backup, asked), verifySelector(db.Name))
	return workVerify.Within(VerifyDeadline(backup)).Job(object, spec), nil
}

// verifyPod restores in one container, and runs SQL in the next. Only the first, which runs nothing of what is in the
// database, has the Secrets: the authority, the store's credentials and the key.
func verifyPod(db *v1.SampleDB, backup *v1.DatabaseBackup, settings Settings) (corev1.PodSpec, error) {
	scratch, err := scratchVolume(db)
	if err != nil {
		return corev1.PodSpec{}, err
	}
	image, former := ofFormer(db, backup, settings)
	command := append([]string{naming.PathBinary, naming.VerbWork, "verify", "--backup", backup.Status.ID}, former...)
	pod := backupPod(db, settings, storeOf(db), command)
	pod.Containers[0].Image = image
	withKey(db, &pod)
	data := corev1.VolumeMount{Name: scratch.Name, MountPath: naming.PathVolume}
	restore := pod.Containers[0]
	restore.Name = naming.ContainerRestore
	restore.Resources = requests("100m", "512Mi")
	restore.VolumeMounts = append(slices.Clone(restore.VolumeMounts), data)
	pod.InitContainers = append(slices.Clone(pod.InitContainers), restore)
	pod.Containers = []corev1.Container{inspectContainer(db, backup, settings, data)}
	pod.Volumes = append(slices.Clone(pod.Volumes), scratch, emptyVolume(volumeSocket, corev1.StorageMediumMemory))
	return pod, nil
}

// ofFormer is the image that verifies a backup. For the backup of a former major version that is the official one of
// that version, with arguments that say which version and which archive it is.
func ofFormer(db *v1.SampleDB, backup *v1.DatabaseBackup, settings Settings) (image string, arguments []string) {
	archive, major := backup.Status.Archive, MajorOf(backup.Status.ServerVersion)
	if archive == nil || archive.Path == PresentArchivePath(db) {
		return Image(db, settings), nil
	}
	return fmt.Sprintf("%s:%d", settings.PostgreSQL, major),
		[]string{"--archive", archive.Path, "--major", strconv.Itoa(major)}
}

// inspectContainer runs SQL. Its socket is in a folder of its own: in the other container's are keys.
func inspectContainer(
	db *v1.SampleDB, backup *v1.DatabaseBackup, settings Settings, data corev1.VolumeMount,
) corev1.Container {
	image, former := ofFormer(db, backup, settings)
	command := []string{naming.PathBinary, naming.VerbWork, "inspect", "--backup", backup.Status.ID}
	return corev1.Container{
		Name:            naming.ContainerVerify,
		Image:           image,
		ImagePullPolicy: corev1.PullIfNotPresent,
		Command:         append(command, former...),
		Env:             []corev1.EnvVar{{Name: "HOME", Value: pathTmp}},
		Resources:       requests("100m", "512Mi"),
		SecurityContext: containerSecurity(),
		VolumeMounts: []corev1.VolumeMount{
			{Name: volumeConfig, MountPath: naming.PathBackup, ReadOnly: true},
			{Name: volumeProgram, MountPath: naming.PathProgram, ReadOnly: true},
			{Name: volumeSocket, MountPath: naming.PathRun},
			{Name: volumeTmp, MountPath: pathTmp},
			data,
		},
	}
}

// scratchVolume is made for the Pod and goes with it.
func scratchVolume(db *v1.SampleDB) (corev1.Volume, error) {
	spec, err := claimSpec(db)
	if err != nil {
		return corev1.Volume{}, err
	}
	backup := Backup(db)
	v := backup.Verification
	if backup.Incremental != nil { // what is put together is there twice
		size := spec.Resources.Requests[corev1.ResourceStorage]
		size.Mul(2)
		spec.Resources.Requests[corev1.ResourceStorage] = size
	}
	if v.Size != "" {
		size, err := resource.ParseQuantity(v.Size)
		if err != nil {
			return corev1.Volume{}, fmt.Errorf("backup.verification.size %q must be a quantity such as 20Gi: %w",
				v.Size, err)
		}
		spec.Resources.Requests[corev1.ResourceStorage] = size
	}
	if v.StorageClassName != nil {
		spec.StorageClassName = v.StorageClassName
	}
	return corev1.Volume{Name: naming.VolumeData, VolumeSource: corev1.VolumeSource{
		Ephemeral: &corev1.EphemeralVolumeSource{
			VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{
				ObjectMeta: metav1.ObjectMeta{Labels: naming.Common(db.Name)}, Spec: spec,
			},
		},
	}}, nil
}

// scrub is how a verification reads the rest of the archive again, nil where it does not.
func scrub(db *v1.SampleDB) *protocol.Scrub {
	spec := Backup(db).Verification.Scrub
	if spec.None {
		return nil
	}
	out := &protocol.Scrub{Days: int(spec.Days)}
	if size, err := resource.ParseQuantity(spec.Budget); err == nil { // the CRD refuses what is none
		out.Budget = max(size.Value(), 0)
	}
	if db.Status.Backup != nil && db.Status.Backup.Scrub != nil {
		out.Last = ScrubState(*db.Status.Backup.Scrub)
	}
	return out
}

// ScrubState is what the next verification has to know of a status.
func ScrubState(s v1.ScrubStatus) protocol.ScrubState {
	position, _ := strconv.ParseUint(s.Position, 16, 64) // from the beginning, where somebody has written another
	out := protocol.ScrubState{
		Position: position, Objects: int(s.Objects), Bytes: s.Bytes, Total: s.TotalBytes, More: int(s.More),
	}
	if s.At != nil {
		out.At = s.At.UTC()
	}
	if s.RoundStartedAt != nil {
		out.Round = s.RoundStartedAt.UTC()
	}
	if s.WholeSince != nil {
		out.Whole = s.WholeSince.UTC()
	}
	for _, o := range s.Broken {
		out.Broken = append(out.Broken, protocol.BrokenObject(o))
	}
	return out
}

// ScrubStatus is the opposite of ScrubState.
func ScrubStatus(s protocol.ScrubState) *v1.ScrubStatus {
	out := &v1.ScrubStatus{
		Position: strconv.FormatUint(s.Position, 16), Percent: int32(s.Position >> 32 * 100 >> 32),
		Objects: int64(s.Objects), Bytes: s.Bytes, TotalBytes: s.Total, More: int64(s.More), Error: s.Error,
	}
	if !s.At.IsZero() {
		at := metav1.NewTime(s.At).Rfc3339Copy()
		out.At = &at
	}
	if !s.Round.IsZero() {
		round := metav1.NewTime(s.Round).Rfc3339Copy()
		out.RoundStartedAt = &round
	}
	if !s.Whole.IsZero() {
		whole := metav1.NewTime(s.Whole).Rfc3339Copy()
		out.WholeSince = &whole
	}
	for _, o := range s.Broken {
		out.Broken = append(out.Broken, v1.BrokenObject(o))
	}
	return out
}
