package desired

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/archive/bucket"
	"toban.dev/internal/naming"
	"toban.dev/internal/protocol"
)

// Archive is where the WAL of a SampleDB goes, nil where it has no archive. There is no
// secret in it: the path of credentials is where Pods have them. The authority (PEM) is the
// SampleDB's own, "" while it is not known.
func Archive(db *v1.SampleDB, authority string, versions Versions) *protocol.Archive {
	backup := Backup(db)
	if backup == nil {
		return nil
	}
	out := &protocol.Archive{
		Bucket: bucketConfig(backup.Store),
		Path:   ArchivePath(db, versions),
		Owner:  string(db.UID),
	}
	if OnVolume(db) {
		out.Bucket = volumeBucket(db.Name, db.Namespace, authority)
	}
	if backup.MaxLag != nil {
		out.MaxLag = backup.MaxLag.Duration
	}
	if e := backup.Encryption; e != nil {
		out.Recipient = e.Recipient
	}
	return out
}

// Versions are major versions of PostgreSQL: the one that runs, and the one that the SampleDB has begun with, 0 where
// that is the same.
type Versions struct{ Running, First int }

// VersionsOf are those of a config.
func VersionsOf(config protocol.Config) Versions { return Versions{config.Major, config.FirstMajor} }

// MajorOf is the major version in that of a server, such as 17 of 17.6; 0 where there is none.
func MajorOf(serverVersion string) int {
	text, _, _ := strings.Cut(serverVersion, ".")
	major, err := strconv.Atoi(text)
	if err != nil {
		return 0
	}
	return major
}

// ArchivePath is the folder of a SampleDB's archive: each major version that it has run has its own.
func ArchivePath(db *v1.SampleDB, versions Versions) string {
	first := naming.ArchivePath(db.Namespace, db.Name, string(db.UID))
	if versions.First == 0 || versions.First == versions.Running {
		return first
	}
	return naming.MajorArchivePath(first, versions.Running)
}

// PresentArchivePath is the folder to which a SampleDB archives now, as its status says.
func PresentArchivePath(db *v1.SampleDB) string {
	path := naming.ArchivePath(db.Namespace, db.Name, string(db.UID))
	if b := db.Status.Backup; b != nil {
		if first, _ := naming.FirstArchivePath(b.Archive); first == path {
			return b.Archive
		}
	}
	return path
}

// ArchiveReference is where a SampleDB's archive lies, by its place. It must have one.
func ArchiveReference(db *v1.SampleDB) v1.ArchiveReference {
	backup := Backup(db)
	out := v1.ArchiveReference{
		Store:      backup.Store,
		Path:       PresentArchivePath(db),
		Encryption: backup.Encryption,
	}
	if OnVolume(db) {
		out.Claim = naming.Archive(db.Name)
	}
	return out
}

// StorePlace names where the store of an archive is, to tell it from others. That of a volume is its claim.
func StorePlace(archive v1.ArchiveReference) string {
	if IsVolume(archive.Store) {
		return "PersistentVolumeClaim " + archive.Claim
	}
	return bucketConfig(archive.Store).Place()
}

// PresentStore is where the store of a SampleDB's archive is, "" where it has no archive.
func PresentStore(db *v1.SampleDB) string {
	if Backup(db) == nil {
		return ""
	}
	return StorePlace(ArchiveReference(db))
}

// StoreOf is where the store of a SampleDB's backup is, "" where that is not known.
func StoreOf(backup *v1.DatabaseBackup, db string) string {
	if backup.Status.Archive == nil {
		return ""
	}
	archive := *backup.Status.Archive
	archive.Claim = cmp.Or(archive.Claim, naming.Archive(db)) // a former version has not noted it
	return StorePlace(archive)
}

// OpensStore says that Pods of a SampleDB open the store of its spec where one says that it was, by bucket.Config.
func OpensStore(db *v1.SampleDB, place string) bool {
	archive := Archive(db, "", Versions{})
	return archive != nil && archive.Bucket.Place() == place
}

// OnVolume says that a SampleDB's archive lies on a volume of its own.
func OnVolume(db *v1.SampleDB) bool {
	backup := Backup(db)
	return backup != nil && IsVolume(backup.Store)
}

// IsVolume says that a store is a volume.
func IsVolume(s v1.StoreSpec) bool { return s.S3 == nil && s.GCS == nil && s.Azure == nil }

// bucketConfig is a store other than a volume as Pods open it.
func bucketConfig(store v1.StoreSpec) bucket.Config {
	var out bucket.Config
	switch {
	case store.S3 != nil:
		s := store.S3
		out.S3 = &bucket.S3{
			Endpoint: strings.TrimSuffix(s.Endpoint, "/"), Region: s.Region, Bucket: s.Bucket, PathStyle: s.PathStyle,
		}
		out.Prefix = s.Prefix
	case store.GCS != nil:
		out.GCS = &bucket.GCS{Bucket: store.GCS.Bucket}
		out.Prefix = store.GCS.Prefix
	case store.Azure != nil:
		a := store.Azure
		out.Azure = &bucket.Azure{Account: a.Account, Container: a.Container, Endpoint: a.Endpoint}
		out.Prefix = a.Prefix
	}
	if credentials, _ := storeSecrets(store); credentials != "" {
		out.Credentials = naming.PathStore
	}
	out.KeepAll = deletionCredentials(store) != nil
	return out
}

// DeletesApart says that only the Pods of NAME-retention remove anything from a SampleDB's archive.
func DeletesApart(db *v1.SampleDB) bool { return deletionCredentials(storeOf(db)) != nil }

// deletionCredentials are the store's, nil where its credentials are for everything.
func deletionCredentials(s v1.StoreSpec) *v1.SecretReference {
	switch {
	case s.S3 != nil:
		return s.S3.DeletionCredentials
	case s.GCS != nil:
		return s.GCS.DeletionCredentials
	case s.Azure != nil:
		return s.Azure.DeletionCredentials
	}
	return nil
}

// toDelete is a store as it is for who may delete.
func toDelete(s v1.StoreSpec) v1.StoreSpec {
	out, may := *s.DeepCopy(), deletionCredentials(s)
	switch {
	case may == nil:
	case out.S3 != nil:
		out.S3.Credentials = may
	case out.GCS != nil:
		out.GCS.Credentials = may
	case out.Azure != nil:
		out.Azure.Credentials = may
	}
	return out
}

// volumeBucket is the server of a SampleDB's volume. The certificate for it Pods issue themselves.
func volumeBucket(db, namespace, authority string) bucket.Config {
	host := naming.ServiceHost(naming.Archive(db), namespace)
	return bucket.Config{
		Volume: &bucket.Volume{
			URL: fmt.Sprintf("https://%s:%d", host, naming.PortAgent), Identity: naming.IdentityArchive,
		},
		CA: authority,
	}
}

// storeOf is where a SampleDB's archive is kept, empty where it has none.
func storeOf(db *v1.SampleDB) v1.StoreSpec {
	backup := Backup(db)
	if backup == nil {
		return v1.StoreSpec{}
	}
	return backup.Store
}

// storeSecrets are the names of the user's Secrets with a store's credentials and with its
// authority, "" where there is none.
func storeSecrets(s v1.StoreSpec) (credentials, authority string) {
	name := func(r *v1.SecretReference) string {
		if r == nil {
			return ""
		}
		return r.Name
	}
	switch {
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
func storeEnv(store v1.StoreSpec) []corev1.EnvVar {
	if _, authority := storeSecrets(store); authority == "" {
		return nil
	}
	return trustFolders(naming.PathStoreCA)
}

// trustFolders makes programs trust the authorities in some folders, besides those of the image.
func trustFolders(folders ...string) []corev1.EnvVar {
	if len(folders) == 0 {
		return nil
	}
	return []corev1.EnvVar{{Name: "SSL_CERT_DIR", Value: "/etc/ssl/certs:" + strings.Join(folders, ":")}}
}

// storeVolumes mount the user's Secrets. One that is missing keeps no Pod from starting: the
// database runs without its archive, and says so.
func storeVolumes(store v1.StoreSpec) (volumes []corev1.Volume, mounts []corev1.VolumeMount) {
	credentials, authority := storeSecrets(store)
	return mountSecrets(
		userSecret{volumeStore, credentials, naming.PathStore},
		userSecret{volumeStoreCA, authority, naming.PathStoreCA},
	)
}

// userSecret is a Secret of the user's, "" for none, with the volume that it becomes and where that is mounted.
type userSecret struct{ volume, secret, path string }

// mountSecrets mount those of the Secrets that are named.
func mountSecrets(all ...userSecret) (volumes []corev1.Volume, mounts []corev1.VolumeMount) {
	for _, s := range all {
		if s.secret != "" {
			volumes = append(volumes, optionalSecret(s.volume, s.secret))
			mounts = append(mounts, corev1.VolumeMount{Name: s.volume, MountPath: s.path, ReadOnly: true})
		}
	}
	return volumes, mounts
}

// optionalSecret is a user's Secret that may be missing: the program says so better than the kubelet.
func optionalSecret(name, secret string) corev1.Volume {
	optional := true
	volume := secretVolume(name, secret)
	volume.Secret.Optional = &optional
	return volume
}
