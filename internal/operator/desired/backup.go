package desired

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/protocol"
)

const (
	// keptBackups is the default of backup.retention.count, where the CRD can't fill it in.
	keptBackups = 7
	// fullEvery is the default of backup.incremental.fullEvery.
	fullEvery = 7
)

// BackupSettings is what the Pods of a SampleDB's backups have to know. It must have an archive.
func BackupSettings(db *v1.SampleDB, config protocol.Config) protocol.BackupSettings {
	backup := Backup(db)
	out := protocol.BackupSettings{
		Archive:   *Archive(db, config.Authority, VersionsOf(config)),
		Keep:      protocol.Retention{Count: int(backup.Retention.Count), Days: int(backup.Retention.Days)},
		Verify:    verification(db, config),
		Authority: config.Authority,
		Operator:  config.Operator,
		Given:     config.Given,
	}
	out.Second = secondBucket(backup)
	if i := backup.Incremental; i != nil {
		out.FullEvery = cmp.Or(int(i.FullEvery), fullEvery)
	}
	for _, m := range config.Members {
		out.Hosts = append(out.Hosts, m.Host)
	}
	return out
}

// Spared are backups that retention leaves alone whatever its rules say, by their ids.
type Spared struct {
	Pinned, InUse []string
	// Snapshots are those of volumes, of which the WAL is spared that they need themselves.
	Snapshots []protocol.Snapshot
}

// Former is the archive of a former major version, and what is spared there. Of one that is forgotten the status has
// nothing.
type Former struct {
	v1.FormerArchive
	Spared
	Forgotten bool
}

// BackupConfigMap is NAME-backup: the settings of the backups. The manifest is what would bring the SampleDB back.
func BackupConfigMap(
	db *v1.SampleDB, config protocol.Config, manifest *runtime.RawExtension, spared Spared, former ...Former,
) (*corev1.ConfigMap, error) {
	settings := BackupSettings(db, config)
	settings.SampleDB = manifest.Raw
	for _, f := range former {
		to := &settings.Former
		if f.Forgotten {
			to = &settings.Forgotten
		}
		*to = append(*to, protocol.FormerArchive{
			Path: f.Path, Major: int(f.Version), Pinned: f.Pinned, InUse: f.InUse, Snapshots: f.Snapshots,
		})
	}
	settings.Keep.Pinned, settings.Keep.InUse = spared.Pinned, spared.InUse
	settings.Keep.Snapshots = spared.Snapshots
	return settingsConfigMap(db, naming.BackupConfigMap(db.Name), naming.KeyBackup, settings)
}

// ScheduledBackup is a DatabaseBackup that is due. No owner reference ties it to the SampleDB, only labels: it says
// where a backup lies and how to get at it, which is needed most when the SampleDB is gone.
func ScheduledBackup(db *v1.SampleDB, due time.Time) *v1.DatabaseBackup {
	object := metav1.ObjectMeta{
		Name: naming.ScheduledBackup(db.Name, due), Namespace: db.Namespace,
		Labels:      merged(naming.Lasting(db.Name), map[string]string{naming.LabelOwner: string(db.UID)}),
		Annotations: map[string]string{naming.AnnotationDue: due.UTC().Format(time.RFC3339)},
	}
	return &v1.DatabaseBackup{
		ObjectMeta: object,
		Spec: v1.DatabaseBackupSpec{
			SampleDB: db.Name, From: v1.BackupFromStandby, Verify: Backup(db).Verification.AfterBackup,
			Deadline: metav1.Duration{Duration: 24 * time.Hour},
		},
	}
}

// FinalBackup is the last DatabaseBackup of a SampleDB that is being deleted, of the primary.
func FinalBackup(db *v1.SampleDB) *v1.DatabaseBackup {
	return &v1.DatabaseBackup{
		ObjectMeta: metav1.ObjectMeta{
			Name: naming.FinalBackup(db.Name, string(db.UID)), Namespace: db.Namespace,
			Labels: merged(naming.Lasting(db.Name), map[string]string{naming.LabelOwner: string(db.UID)}),
		},
		Spec: v1.DatabaseBackupSpec{
			SampleDB: db.Name, From: v1.BackupFromPrimary, Full: true,
			Deadline: metav1.Duration{Duration: 24 * time.Hour},
		},
	}
}

// trigger is why a backup is made: retention counts each of them apart.
func trigger(db *v1.SampleDB, backup *v1.DatabaseBackup) string {
	own, app := backup.Labels[naming.LabelOwner] == string(db.UID), backup.Labels[naming.LabelMyApp]
	switch {
	case own && backup.Annotations[naming.AnnotationDue] != "":
		return naming.TriggerSchedule
	case own && backup.Name == naming.FinalBackup(db.Name, string(db.UID)):
		return naming.TriggerFinal
	case app != "" && strings.HasPrefix(backup.Name, naming.MigrationBackup(app, "")):
		return naming.TriggerMigration
	}
	return naming.TriggerRequest
}

// DeletionPolicy is spec.deletionPolicy with its default.
func DeletionPolicy(db *v1.SampleDB) v1.DeletionPolicy {
	switch {
	case db.Spec.DeletionPolicy == v1.DeletionDelete, db.Spec.DeletionPolicy == v1.DeletionRetain:
		return db.Spec.DeletionPolicy
	case Backup(db) == nil:
		return v1.DeletionRetain // data that is nowhere else only goes where that is said
	}
	return v1.DeletionSnapshot
}

// backupSelector selects the Pods of all backups of a SampleDB.
func backupSelector(db string) map[string]string {
	return map[string]string{naming.LabelSampleDB: db, naming.LabelComponent: naming.ComponentBackup}
}

// BackupJob takes a backup. Its Pods come one after the other, since each cleans up what the one before has left. The
// time that remains of the backup's deadline is at least a second.
func BackupJob(db *v1.SampleDB, backup *v1.DatabaseBackup, settings Settings, remaining time.Duration) *batchv1.Job {
	spec := backupPod(db, settings, storeOf(db), takeCommand(db, backup))
	lookAtKeys(db, settings, &spec)
	// It reads the manifest of the backup before.
	incremental := Backup(db).Incremental != nil && !backup.Spec.Full && !backup.BySnapshot()
	if incremental || trigger(db, backup) == naming.TriggerFinal {
		withKey(db, &spec)
	}
	object := ordered(db, backup, "DatabaseBackup", backup.Name, backupSelector(db.Name))
	return workBackup.Within(remaining).Job(object, spec)
}

// AskedAt tells the Pod of a Job that removes parts of an archive what time it is by the operator's clock: it must not
// believe that of its own machine alone. The Job must have a deadline: the Pod may begin at any time before that.
func AskedAt(job *batchv1.Job, now time.Time) *batchv1.Job {
	c := &job.Spec.Template.Spec.Containers[0]
	within := time.Duration(*job.Spec.ActiveDeadlineSeconds) * time.Second
	c.Command = append(slices.Clone(c.Command), "--"+naming.FlagAsked, now.UTC().Format(time.RFC3339),
		"--"+naming.FlagWithin, within.String())
	return job
}

// withKey mounts the key of the archive, where there is one, in the container that works.
func withKey(db *v1.SampleDB, pod *corev1.PodSpec) {
	if Backup(db).Encryption == nil {
		return
	}
	c := &pod.Containers[0]
	c.VolumeMounts = append(slices.Clone(c.VolumeMounts), keyMount())
}

func keyMount() corev1.VolumeMount {
	return corev1.VolumeMount{Name: volumeKey, MountPath: naming.PathKey, ReadOnly: true}
}

// lookAtKeys has a container see which keys the Secret has, before the one that works begins: that has the store's
// credentials and talks to a server, and gets the keys themselves only where it reads what is encrypted.
func lookAtKeys(db *v1.SampleDB, settings Settings, pod *corev1.PodSpec) {
	if Backup(db).Encryption == nil {
		return
	}
	pod.InitContainers = append(slices.Clone(pod.InitContainers), corev1.Container{
		Name:            naming.ContainerKeys,
		Image:           settings.Image,
		ImagePullPolicy: corev1.PullIfNotPresent,
		Command:         []string{naming.PathImageBinary, naming.VerbWork, "keys"},
		SecurityContext: containerSecurity(),
		Resources:       requests("10m", "32Mi"),
		VolumeMounts:    []corev1.VolumeMount{keyMount(), {Name: volumeRun, MountPath: naming.PathRun}},
	})
}

// takeCommand is what the Pod of a backup runs.
func takeCommand(db *v1.SampleDB, backup *v1.DatabaseBackup) []string {
	command := []string{
		naming.PathBinary, naming.VerbWork, "take",
		"--settings", naming.PathBackup + "/" + naming.KeyBackup,
		"--authority", naming.PathAuthority,
		"--run", naming.PathRun,
		"--trigger", trigger(db, backup),
	}
	if backup.Spec.From == v1.BackupFromPrimary {
		command = append(command, "--from-primary")
	}
	if backup.Spec.Full {
		command = append(command, "--full")
	}
	if backup.BySnapshot() {
		command = append(command, "--"+naming.FlagSnapshot)
	}
	if trigger(db, backup) == naming.TriggerFinal { // what it is of goes: it is read before it counts
		command = append(command, "--prove")
	}
	return command
}

// RetentionJob removes what spec.backup.retention does not keep, from a store that is full, or with the credentials for
// deletion, which no other Pod has. While it is there no other is made, so that it is done again only when this one has
// gone, some time after its end. No backup begins while its Pod, which has the label of theirs, has not ended.
// What had ended when it was due, it has seen.
func RetentionJob(db *v1.SampleDB, settings Settings, due time.Time) *batchv1.Job {
	spec := backupPod(db, settings, toDelete(storeOf(db)), []string{naming.PathBinary, naming.VerbWork, "retain"})
	lookAtKeys(db, settings, &spec)
	object := meta(db, naming.RetentionJob(db.Name))
	object.Annotations = map[string]string{naming.AnnotationDue: due.UTC().Format(time.RFC3339)}
	object.Labels = merged(object.Labels, backupSelector(db.Name))
	return AskedAt(workRetention.Job(object, spec), due)
}

// backupPod runs our program in PostgreSQL's image, as an instance does. Its ServiceAccount is the
// instances', whose identity a cloud's store may know; it needs nothing of Kubernetes.
func backupPod(db *v1.SampleDB, settings Settings, store v1.StoreSpec, command []string) corev1.PodSpec {
	volumes, mounts := backupVolumes(db, store)
	if e := Backup(db).Encryption; e != nil {
		volumes = append(volumes, optionalSecret(volumeKey, e.Key.Name))
	}
	pod := askedPod(db, instanceUser, corev1.Container{
		Name:         naming.ContainerBackup,
		Image:        Image(db, settings),
		Command:      command,
		Env:          storeEnv(store),
		Resources:    requests("100m", "256Mi"),
		VolumeMounts: mounts,
	})
	pod.ServiceAccountName = naming.ServiceAccount(db.Name)
	pod.InitContainers = []corev1.Container{installContainer(settings)}
	pod.Volumes = volumes
	return pod
}

func backupVolumes(db *v1.SampleDB, in v1.StoreSpec) ([]corev1.Volume, []corev1.VolumeMount) {
	store, storeMounts := storeVolumes(in)
	volumes := []corev1.Volume{
		settingsVolume(naming.BackupConfigMap(db.Name)),
		authorityVolume(volumeAuthority, db.Name),
		emptyVolume(volumeProgram, corev1.StorageMediumDefault),
		emptyVolume(volumeRun, corev1.StorageMediumMemory), // it has the Pod's key
		emptyVolume(volumeTmp, corev1.StorageMediumDefault),
	}
	mounts := []corev1.VolumeMount{
		{Name: volumeConfig, MountPath: naming.PathBackup, ReadOnly: true},
		{Name: volumeAuthority, MountPath: naming.PathAuthority, ReadOnly: true},
		{Name: volumeProgram, MountPath: naming.PathProgram, ReadOnly: true},
		{Name: volumeRun, MountPath: naming.PathRun},
		{Name: volumeTmp, MountPath: pathTmp},
	}
	return append(volumes, store...), append(mounts, storeMounts...)
}

// BackupPolicy lets the operator ask the Pods of backups, verifications, rehearsals and DatabaseRestores how far they
// are, and nobody else in.
func BackupPolicy(db *v1.SampleDB, settings Settings) *networkingv1.NetworkPolicy {
	return operatorOnly(db, naming.BackupPolicy(db.Name), podsOf(db, naming.ComponentBackup, naming.ComponentVerify,
		naming.ComponentRehearse, naming.ComponentBring), settings)
}

// operatorOnly lets the operator reach what listens for it in the selected Pods, and nobody else in.
func operatorOnly(
	db *v1.SampleDB, name string, selector metav1.LabelSelector, settings Settings,
) *networkingv1.NetworkPolicy {
	operator := &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: settings.Namespace}}
	return &networkingv1.NetworkPolicy{
		ObjectMeta: meta(db, name),
		Spec: networkingv1.NetworkPolicySpec{
			PodSelector: selector,
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
			Ingress: []networkingv1.NetworkPolicyIngressRule{{
				Ports: []networkingv1.NetworkPolicyPort{port(naming.PortAgent)},
				From:  []networkingv1.NetworkPolicyPeer{{NamespaceSelector: operator}},
			}},
		},
	}
}

// ScheduleNone is the schedule that never asks for anything.
const ScheduleNone = "none"

// maxLag is the default of backup.maxLag: a database that writes all the time makes 360 requests in an hour then, and
// may lose ten seconds with all of its volumes.
const maxLag = 10 * time.Second

// scrubDays is the default of backup.verification.scrub.days.
const scrubDays = 30

// Backup is spec.backup with its defaults: an archive on a volume of its own, a backup a day, seven kept, and one
// restored a week to prove it. It is nil where the spec does without (backup.none). The schedules it has are those
// to act on: "" is never.
func Backup(db *v1.SampleDB) *v1.BackupSpec {
	out := &v1.BackupSpec{}
	if db.Spec.Backup != nil {
		out = db.Spec.Backup.DeepCopy()
	}
	if out.None {
		return nil
	}
	own := minuteOf(string(db.UID))
	out.Schedule = schedule(out.Schedule, own.daily())
	if v := &out.Verification; v.Schedule != "" || !v.AfterBackup {
		v.Schedule = schedule(v.Schedule, own.weekly())
	}
	if out.MaxLag == nil {
		out.MaxLag = &metav1.Duration{Duration: maxLag}
	}
	if out.Verification.Scrub == nil {
		out.Verification.Scrub = &v1.ScrubSpec{}
	}
	if scrub := out.Verification.Scrub; scrub.Days == 0 {
		scrub.Days = scrubDays
	}
	if out.Retention.Count == 0 {
		out.Retention.Count = keptBackups
	}
	return out
}

// schedule is the one of the spec, or where that has none, another.
func schedule(spec, other string) string {
	switch spec {
	case "":
		return other
	case ScheduleNone:
		return ""
	}
	return spec
}

// minuteOfWeek is a minute of the week that belongs to a SampleDB, so that of a thousand that say nothing about
// when, not all take their backups at once.
type minuteOfWeek int

const minutesOfDay = int(24 * time.Hour / time.Minute)

func minuteOf(uid string) minuteOfWeek {
	h := fnv.New32a()
	h.Write([]byte(uid))
	return minuteOfWeek(int(h.Sum32()) % (7 * minutesOfDay))
}

// daily is that minute of every day, as in cron.
func (m minuteOfWeek) daily() string {
	of := int(m) % minutesOfDay
	return fmt.Sprintf("%d %d * * *", of%60, of/60)
}

// weekly is an hour later, when the day's backup is most probably there, once a week.
func (m minuteOfWeek) weekly() string {
	at := (int(m) + 60) % (7 * minutesOfDay)
	of := at % minutesOfDay
	return fmt.Sprintf("%d %d * * %d", of%60, of/60, at/minutesOfDay)
}
