package upgrades

import (
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/desired"
)

// RehearsalID identifies a rehearsal that is not one of an upgrade.
const RehearsalID = "rehearsal"

// RehearsalName is that of the Job that upgrades a copy by a method, whatever volume the data will be upgraded on.
func (u Upgrade) RehearsalName(db *v1.SampleDB) string {
	u.Ordinal, u.Node = 0, ""
	method := v1.UpgradeMethod("")
	if db.Spec.Upgrade != nil {
		method = db.Spec.Upgrade.Method
	}
	return naming.RehearsalJob(db.Name, desired.Hash([]any{u, method}))
}

// RehearsalJob upgrades a copy of the data, which it restores from a backup into a scratch volume, and looks through
// it. Only what restores, which runs nothing of what is in the database, has Secrets.
func RehearsalJob(
	db *v1.SampleDB, settings desired.Settings, u Upgrade, backup *v1.DatabaseBackup,
) (*batchv1.Job, error) {
	pod, err := desired.VerifyPod(db, backup, settings)
	if err != nil {
		return nil, err
	}
	enlargeForCopy(db, &pod)
	like := upgradePod(db, settings, u, "rehearse")
	restore := &pod.InitContainers[slices.IndexFunc(pod.InitContainers, func(c corev1.Container) bool {
		return c.Name == naming.ContainerRestore
	})]
	restore.Command = append(slices.Clone(restore.Command), "--without-scrub")
	collect := like.InitContainers[len(like.InitContainers)-1]
	pod.InitContainers = slices.Insert(slices.Clone(pod.InitContainers), 1, collect)
	pod.Containers = []corev1.Container{rehearseContainer(pod.Containers[0], like.Containers[0])}
	for _, v := range like.Volumes {
		switch v.Name {
		case volumeFormer:
			pod.Volumes = append(pod.Volumes, v)
		case desired.VolumeConfig:
			v.Name = volumeUpgrade
			pod.Volumes = append(pod.Volumes, v)
		}
	}
	work := workRehearsal.Within(desired.VerifyDeadline(backup))
	return upgradeJob(db, work, u.RehearsalName(db), naming.ComponentRehearse, pod), nil
}

// rehearseContainer is as the one that inspects a restored backup, without any Secret, in the image of the new version
// and with what an upgrade may use.
func rehearseContainer(inspect, upgrade corev1.Container) corev1.Container {
	inspect.Name, inspect.Image, inspect.Command = upgrade.Name, upgrade.Image, upgrade.Command
	inspect.Resources = upgrade.Resources
	inspect.VolumeMounts = append(slices.Clone(inspect.VolumeMounts),
		corev1.VolumeMount{Name: volumeFormer, MountPath: naming.PathFormer, ReadOnly: true},
		corev1.VolumeMount{Name: volumeUpgrade, MountPath: naming.PathUpgrade, ReadOnly: true})
	return inspect
}

// enlargeForCopy gives the scratch volume room for a second copy of all files, where that is how they get over.
func enlargeForCopy(db *v1.SampleDB, pod *corev1.PodSpec) {
	spec := db.Spec.Upgrade
	if spec == nil || spec.Method != v1.UpgradeCopy || desired.Backup(db).Verification.Size != "" {
		return
	}
	for i := range pod.Volumes {
		if e := pod.Volumes[i].Ephemeral; e != nil {
			requests := e.VolumeClaimTemplate.Spec.Resources.Requests
			size := requests[corev1.ResourceStorage]
			doubled := resource.NewQuantity(2*size.Value(), size.Format)
			requests[corev1.ResourceStorage] = *doubled
		}
	}
}
