package desired

import (
	corev1 "k8s.io/api/core/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/protocol"
)

const volumeCertificate = "certificate"

// ownNames are the names in spec.tls.
func ownNames(db *v1.SampleDB) []string {
	var out []string
	for _, name := range db.Spec.TLS.Names {
		out = append(out, string(name))
	}
	return out
}

// certificate is what spec.tls wants the servers to show, nil for one of their own authority. What is in NAME-app must
// be among its names. docs/security.md lists them; those of the instances the agents know themselves.
func certificate(db *v1.SampleDB) *protocol.Certificate {
	if db.Spec.TLS.SecretName == "" {
		return nil
	}
	return &protocol.Certificate{
		Secret: db.Spec.TLS.SecretName,
		Names: append([]string{
			naming.ServiceHost(naming.ReadWriteService(db.Name), db.Namespace),
			naming.ServiceHost(naming.ReadOnlyService(db.Name), db.Namespace),
		}, ownNames(db)...),
	}
}

// certificateVolumes mount the user's Secret with a certificate. One that is missing keeps no Pod from starting: the
// server shows a certificate of its own then, and the agent says why.
func certificateVolumes(db *v1.SampleDB) ([]corev1.Volume, []corev1.VolumeMount) {
	if db.Spec.TLS.SecretName == "" {
		return nil, nil
	}
	volume := optionalSecret(volumeCertificate, db.Spec.TLS.SecretName)
	for _, key := range []string{naming.KeyTLSCertificate, naming.KeyTLSKey, naming.KeyCA} {
		volume.Secret.Items = append(volume.Secret.Items, corev1.KeyToPath{Key: key, Path: key})
	}
	// By its name the agent knows whether it has the one that is asked for now.
	path := naming.PathCertificate + "/" + db.Spec.TLS.SecretName
	return []corev1.Volume{volume}, []corev1.VolumeMount{{Name: volumeCertificate, MountPath: path, ReadOnly: true}}
}
