package myapp

import (
	corev1 "k8s.io/api/core/v1"

	v1 "toban.dev/api/myapp/v1"
	"toban.dev/internal/naming"
)

const volumeTrust = "database-ca"

// trustMode lets whatever user an image runs as read what is public.
const trustMode int32 = 0o444

// trustVolumes have ca.crt of the database's Secret, by which the application knows the server, and nothing else of it.
// A Pod waits for it: without the file no connection comes about. The kubelet brings a changed one, and leaves the
// former one while the Secret is being replaced, which of an optional volume it would take away.
func trustVolumes(database *v1.DatabaseReference) []corev1.Volume {
	if database == nil {
		return nil
	}
	mode := trustMode
	return []corev1.Volume{{Name: volumeTrust, VolumeSource: corev1.VolumeSource{
		Secret: &corev1.SecretVolumeSource{
			SecretName:  naming.AppSecret(database.Name),
			Items:       []corev1.KeyToPath{{Key: naming.KeyCA, Path: naming.KeyCA}},
			DefaultMode: &mode,
		},
	}}}
}

// trustMounts mount it as a folder: a file of its own (subPath) would stay as it is.
func trustMounts(database *v1.DatabaseReference) []corev1.VolumeMount {
	if database == nil {
		return nil
	}
	return []corev1.VolumeMount{{Name: volumeTrust, MountPath: naming.TrustFolder(database.Name), ReadOnly: true}}
}
