package desired

import (
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/archive/bucket"
	"toban.dev/internal/naming"
	"toban.dev/internal/protocol"
)

// Source is what a SampleDB is restored from, with every name looked up.
type Source struct {
	Archive v1.ArchiveReference
	// Backup is the id of the base backup to begin with, "" for the best.
	Backup string
	// Snapshot is the one that the volume is made of, and VolumeSnapshot its name; nil and "" where the data comes from
	// the archive.
	Snapshot       *protocol.Snapshot
	VolumeSnapshot string
	// Major is the major version of PostgreSQL that it is of, 0 where that is not known.
	Major int
	// Server is the SampleDB whose server has the archive's volume, Authority the certificate (PEM) of its authority.
	// "" where there is none: then the volume is mounted.
	Server, Authority string
	// AtLeast is the LSN up to which the archive has had WAL, "" where that is not asked: one that ends before it is
	// not restored.
	AtLeast string
}

// Restore is one: what is wanted, and where it is made.
type Restore struct {
	Wanted v1.RestoreSpec
	// Ordinal is that of the instance whose volume gets the data.
	Ordinal int
	// InPlace is the id of a restore in place, "" for what a new SampleDB begins with.
	InPlace string
}

// OwnSource is the SampleDB's own archive at a path, whose volume, if it is on one, has its server.
func OwnSource(db *v1.SampleDB, path, authority string) Source {
	source := Source{Archive: ArchiveReference(db)}
	source.Archive.Path = path
	if IsVolume(source.Archive.Store) {
		source.Server, source.Authority = db.Name, authority
	}
	return source
}

// FirstRestore is what spec.restoreFrom wants.
func FirstRestore(db *v1.SampleDB) Restore { return Restore{Wanted: *db.Spec.RestoreFrom} }

// LatestRestore is a restore in place to the end of the archive, which the operator wants by itself.
func LatestRestore(db *v1.SampleDB, id string) *v1.InPlaceRestore {
	return &v1.InPlaceRestore{ID: id, Confirm: db.Name, Latest: true, Before: v1.BeforeKeep}
}

// InPlace is a restore in place, made on the volume of an instance that runs.
func InPlace(spec v1.InPlaceRestore, ordinal int) Restore {
	return Restore{Wanted: v1.RestoreSpec{Backup: spec.Backup, Target: spec.Target}, Ordinal: ordinal, InPlace: spec.ID}
}

// JobName is that of its Job.
func (x Restore) JobName(db *v1.SampleDB) string {
	if x.InPlace == "" {
		return naming.RestoreJob(db.Name, Hash(x.Wanted))
	}
	return naming.RestoreJob(db.Name, Hash(x))
}

// RestoreSettings is what the Pod of a restore has to know.
func RestoreSettings(
	db *v1.SampleDB, config protocol.Config, x Restore, source Source,
) (protocol.RestoreSettings, error) {
	target, err := restoreTarget(x.Wanted)
	return protocol.RestoreSettings{
		Instance:   naming.Instance(db.Name, x.Ordinal),
		InPlace:    x.InPlace,
		Major:      config.Major,
		Bucket:     source.bucket(db.Namespace),
		Path:       source.Archive.Path,
		Encrypted:  source.Archive.Encryption != nil,
		Backup:     source.Backup,
		Snapshot:   source.Snapshot,
		Target:     target,
		AtLeast:    source.AtLeast,
		Parameters: ofExtensions(config.Parameters),
		Operator:   config.Operator,
	}, err
}

func (s Source) bucket(namespace string) bucket.Config {
	switch {
	case !IsVolume(s.Archive.Store):
		return bucketConfig(s.Archive.Store)
	case s.Server != "":
		return volumeBucket(s.Server, namespace, s.Authority)
	}
	return bucket.Config{Folder: naming.PathArchive}
}

func restoreTarget(spec v1.RestoreSpec) (protocol.RestoreTarget, error) {
	t := spec.Target
	if t == nil {
		return protocol.RestoreTarget{Immediate: spec.Backup != ""}, nil
	}
	if t.Branch < 0 {
		return protocol.RestoreTarget{},
			fmt.Errorf("target.branch %d must be a number from status.backup.windows", t.Branch)
	}
	out := protocol.RestoreTarget{
		LSN: t.LSN, Transaction: t.Transaction, Name: t.Name, Exclusive: t.Exclusive, Branch: uint64(t.Branch),
	}
	if t.Time == "" {
		return out, nil
	}
	at, err := time.Parse(time.RFC3339, t.Time)
	if err != nil {
		return out, fmt.Errorf("target.time %q must be like 2026-11-20T03:15:00+09:00", t.Time)
	}
	out.Time = at
	return out, nil
}

// RestoreConfigMap is NAME-restore: the settings of the restore.
func RestoreConfigMap(db *v1.SampleDB, settings protocol.RestoreSettings) (*corev1.ConfigMap, error) {
	return settingsConfigMap(db, naming.RestoreConfigMap(db.Name), naming.KeyRestore, settings)
}

// restoreSelector selects the Pods of restores, of one SampleDB or, for "", of all in the namespace.
func restoreSelector(db string) map[string]string {
	out := map[string]string{naming.LabelComponent: naming.ComponentRestore}
	if db != "" {
		out[naming.LabelSampleDB] = db
	}
	return out
}

// RestoreJob makes the data, on the volume of an instance. Where another try would fail in the
// same way it ends at once.
func RestoreJob(db *v1.SampleDB, settings Settings, x Restore, source Source) *batchv1.Job {
	object := meta(db, x.JobName(db))
	object.Labels = merged(naming.Common(db.Name), restoreSelector(db.Name))
	return workRestore.Job(object, restorePod(db, settings, x, source))
}

func restorePod(db *v1.SampleDB, settings Settings, x Restore, source Source) corev1.PodSpec {
	volumes, mounts := restoreVolumes(db, naming.RestoreConfigMap(db.Name),
		claimVolume(naming.VolumeData, naming.Claim(db.Name, x.Ordinal)), source)
	pod := restoringPod(db, settings, source, volumes, mounts)
	withWAL(db, &pod, x.Ordinal)
	pod.Affinity = x.affinity(db)
	return pod
}

// restoringPod restores into a volume that is among those given.
func restoringPod(
	db *v1.SampleDB, settings Settings, source Source, volumes []corev1.Volume, mounts []corev1.VolumeMount,
) corev1.PodSpec {
	pod := askedPod(db, instanceUser, corev1.Container{
		Name:         naming.ContainerRestore,
		Image:        Image(db, settings),
		Command:      []string{naming.PathBinary, naming.VerbWork, "restore"},
		Env:          storeEnv(source.Archive.Store),
		Resources:    resourcesFor(db),
		VolumeMounts: mounts,
	})
	pod.ServiceAccountName = naming.ServiceAccount(db.Name)
	pod.InitContainers = []corev1.Container{installContainer(settings)}
	pod.Volumes = volumes
	return pod
}

// affinity has the Pod of a restore in place where the instance is whose volume it shares: one that is
// ReadWriteOnce is so for a node.
func (x Restore) affinity(db *v1.SampleDB) *corev1.Affinity {
	if x.InPlace == "" {
		return db.Spec.Pod.Affinity
	}
	return &corev1.Affinity{
		PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
			TopologyKey: corev1.LabelHostname,
			LabelSelector: &metav1.LabelSelector{
				MatchLabels: map[string]string{appsv1.StatefulSetPodNameLabel: naming.Instance(db.Name, x.Ordinal)},
			},
		}}},
	}
}

// restoreVolumes mount the settings, the volume for the data, and what it takes to read the archive.
func restoreVolumes(
	db *v1.SampleDB, settings string, data corev1.Volume, source Source,
) ([]corev1.Volume, []corev1.VolumeMount) {
	volumes, mounts := storeVolumes(source.Archive.Store)
	add := func(volume corev1.Volume, path string, readOnly bool) {
		volumes = append(volumes, volume)
		mounts = append(mounts, corev1.VolumeMount{Name: volume.Name, MountPath: path, ReadOnly: readOnly})
	}
	add(settingsVolume(settings), naming.PathRestore, true)
	add(authorityVolume(volumeAuthority, db.Name), naming.PathAuthority, true)
	add(emptyVolume(volumeProgram, corev1.StorageMediumDefault), naming.PathProgram, true)
	add(emptyVolume(volumeRun, corev1.StorageMediumMemory), naming.PathRun, false) // it has the Pod's key
	add(emptyVolume(volumeTmp, corev1.StorageMediumDefault), pathTmp, false)
	add(data, naming.PathVolume, false)
	if source.Archive.Encryption != nil {
		add(optionalSecret(volumeKey, source.Archive.Encryption.Key.Name), naming.PathKey, true)
	}
	switch {
	case source.Server != "":
		add(authorityVolume(volumeSource, source.Server), naming.PathSource, true)
	case IsVolume(source.Archive.Store):
		add(claimVolume(volumeArchive, source.Archive.Claim), naming.PathArchive, true)
	}
	return volumes, mounts
}

func claimVolume(name, claim string) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim},
	}}
}

// RestorePolicy lets the operator ask the Pod of a restore how far it is, and nobody else in.
func RestorePolicy(db *v1.SampleDB, settings Settings) *networkingv1.NetworkPolicy {
	return operatorOnly(db, naming.RestorePolicy(db.Name),
		metav1.LabelSelector{MatchLabels: restoreSelector(db.Name)}, settings)
}

// FormerAt is the former archive that has a moment: that of the major version that ran then. It is nil where that is
// the present one, or is not known.
func FormerAt(b *v1.BackupStatus, at time.Time) *v1.FormerArchive {
	if b == nil {
		return nil
	}
	var found *v1.FormerArchive
	for i := range b.Former { // the newest first
		if until := leftAt(&b.Former[i]); until != nil && !at.After(until.Time) {
			found = &b.Former[i]
		}
	}
	return found
}

// FormerOf is the former archive of a major version, nil where there is none.
func FormerOf(b *v1.BackupStatus, major int) *v1.FormerArchive {
	for i := range b.Former {
		if int(b.Former[i].Version) == major {
			return &b.Former[i]
		}
	}
	return nil
}

// leftAt is until when an archive was the present one, as far as that is known.
func leftAt(f *v1.FormerArchive) *metav1.Time {
	if f.Until != nil {
		return f.Until
	}
	var last *metav1.Time
	for _, w := range f.Windows {
		if last == nil || last.Before(w.Latest) {
			last = w.Latest
		}
	}
	return last
}

// TargetTime is the moment of a target, false where it is none.
func TargetTime(t *v1.RestoreTarget) (time.Time, bool) {
	if t == nil || t.Time == "" {
		return time.Time{}, false
	}
	at, err := time.Parse(time.RFC3339, t.Time)
	return at, err == nil
}
