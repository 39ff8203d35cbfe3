package desired

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/bucket"
	"toban.dev/internal/naming"
	"toban.dev/internal/protocol"
)

// Archive is where the WAL of a SampleDB goes, nil where it has no archive. There is no
// secret in it: the path of credentials is where Pods have them. The authority (PEM) is the
// SampleDB's own, "" while it is not known.
func Archive(db *v1.SampleDB, authority string) *protocol.Archive {
	if db.Spec.Backup == nil {
		return nil
	}
	out := &protocol.Archive{
		Bucket: bucketConfig(db, authority),
		Path:   naming.ArchivePath(db.Namespace, db.Name, string(db.UID)),
		Owner:  string(db.UID),
	}
	if e := db.Spec.Backup.Encryption; e != nil {
		out.Recipient = e.Recipient
	}
	return out
}

// OnVolume says that a SampleDB's archive lies on a volume of its own.
func OnVolume(db *v1.SampleDB) bool {
	b := db.Spec.Backup
	return b != nil && b.Store.S3 == nil && b.Store.GCS == nil && b.Store.Azure == nil
}

// bucketConfig is the store as Pods open it. The certificate for a volume's server they
// issue themselves.
func bucketConfig(db *v1.SampleDB, authority string) bucket.Config {
	var out bucket.Config
	store := db.Spec.Backup.Store
	switch {
	case store.S3 != nil:
		s := store.S3
		out.S3 = &bucket.S3{Endpoint: strings.TrimSuffix(s.Endpoint, "/"), Region: s.Region, Bucket: s.Bucket, PathStyle: s.PathStyle}
		out.Prefix = s.Prefix
	case store.GCS != nil:
		out.GCS = &bucket.GCS{Bucket: store.GCS.Bucket}
		out.Prefix = store.GCS.Prefix
	case store.Azure != nil:
		a := store.Azure
		out.Azure = &bucket.Azure{Account: a.Account, Container: a.Container, Endpoint: a.Endpoint}
		out.Prefix = a.Prefix
	default:
		host := naming.ServiceHost(naming.Archive(db.Name), db.Namespace)
		out.Volume = &bucket.Volume{URL: fmt.Sprintf("https://%s:%d", host, naming.PortAgent), Identity: naming.IdentityArchive}
		out.CA = authority
	}
	if credentials, _ := storeSecrets(db); credentials != "" {
		out.Credentials = naming.PathStore
	}
	return out
}

// storeSecrets are the names of the user's Secrets with the store's credentials and with its
// authority, "" where there is none.
func storeSecrets(db *v1.SampleDB) (credentials, authority string) {
	if db.Spec.Backup == nil {
		return "", ""
	}
	name := func(r *v1.SecretReference) string {
		if r == nil {
			return ""
		}
		return r.Name
	}
	switch s := db.Spec.Backup.Store; {
	case s.S3 != nil:
		return name(s.S3.Credentials), name(s.S3.CA)
	case s.GCS != nil:
		return name(s.GCS.Credentials), ""
	case s.Azure != nil:
		return name(s.Azure.Credentials), ""
	}
	return "", ""
}

// storeEnv makes programs trust the authority of the user's store besides those of the image. Go reads
// every file in the folders of SSL_CERT_DIR (crypto/x509), once in a process.
func storeEnv(db *v1.SampleDB) []corev1.EnvVar {
	if _, authority := storeSecrets(db); authority == "" {
		return nil
	}
	return []corev1.EnvVar{{Name: "SSL_CERT_DIR", Value: "/etc/ssl/certs:" + naming.PathStoreCA}}
}

// storeVolumes mount the user's Secrets. One that is missing keeps no Pod from starting: the
// database runs without its archive, and says so.
func storeVolumes(db *v1.SampleDB) (volumes []corev1.Volume, mounts []corev1.VolumeMount) {
	credentials, authority := storeSecrets(db)
	for _, s := range []struct{ volume, secret, path string }{
		{volumeStore, credentials, naming.PathStore},
		{volumeStoreCA, authority, naming.PathStoreCA},
	} {
		if s.secret == "" {
			continue
		}
		optional := true
		volume := secretVolume(s.volume, s.secret)
		volume.Secret.Optional = &optional
		volumes = append(volumes, volume)
		mounts = append(mounts, corev1.VolumeMount{Name: s.volume, MountPath: s.path, ReadOnly: true})
	}
	return volumes, mounts
}
