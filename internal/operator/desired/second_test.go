package desired

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
)

// withSecond gives a SampleDB a second store of each kind.
func withSecond(db *v1.SampleDB, second v1.SecondStoreSpec) *v1.SampleDB {
	if db.Spec.Backup == nil {
		db.Spec.Backup = &v1.BackupSpec{}
	}
	db.Spec.Backup.SecondStore = &second
	return db
}

func TestOnlyTheCopyHasTheSecondStore(t *testing.T) {
	key := v1.SecretReference{Name: "copier"}
	for name, db := range map[string]*v1.SampleDB{
		"S3": sampleDB("x", inS3),
		"GCS": withSecond(sampleDB("x", inS3), v1.SecondStoreSpec{
			GCS: &v1.SecondGCSStore{Bucket: "copies", Credentials: key}}),
		"Azure": withSecond(sampleDB("x", inS3), v1.SecondStoreSpec{
			Azure: &v1.SecondAzureStore{Account: "far", Container: "copies", Credentials: key}}),
		"of a volume": withSecond(sampleDB("x", onVolume), v1.SecondStoreSpec{
			S3: &v1.SecondS3Store{Bucket: "copies", Credentials: key}}),
	} {
		t.Run(name, func(t *testing.T) {
			for who, pod := range podsWithStore(t, db) {
				if mounts(pod, "copier") || mounts(pod, "copies-ca") {
					t.Errorf("%s has a Secret of the second store", who)
				}
			}
			pod := CopyJob(db, settings).Spec.Template.Spec
			credentials, _ := storeSecrets(storeOf(db))
			if secretAt(pod, naming.PathSecond) != "copier" || secretAt(pod, naming.PathStore) != credentials {
				t.Error("the Pod that copies lacks the credentials of a store")
			}
			if mounts(pod, "archive-key") || mounts(pod, "minio-remover") {
				t.Error("the Pod that copies can decrypt, or delete in the first store")
			}
			if hasAuthority := len(secretsOf(pod, naming.AuthoritySecret("x"))) > 0; hasAuthority != OnVolume(db) {
				t.Errorf("the Pod that copies has the authority: %v", hasAuthority)
			}
			settings := BackupSettings(db, Config(db, Known{}))
			if settings.Second == nil || settings.Second.Credentials != naming.PathSecond ||
				settings.Archive.Bucket.Credentials == naming.PathSecond {
				t.Errorf("the settings say %+v", settings.Second)
			}
		})
	}
}

// mounts says that a Pod has a Secret.
func mounts(pod corev1.PodSpec, secret string) bool { return len(secretsOf(pod, secret)) > 0 }

// secretsOf are the volumes of a Pod that have a Secret, alone or among others.
func secretsOf(pod corev1.PodSpec, secret string) (names []string) {
	for _, v := range pod.Volumes {
		if v.Secret != nil && v.Secret.SecretName == secret {
			names = append(names, v.Name)
		}
		if v.Projected == nil {
			continue
		}
		for _, source := range v.Projected.Sources {
			if source.Secret != nil && source.Secret.Name == secret {
				names = append(names, v.Name)
			}
		}
	}
	return names
}

func TestACopyHasAPlaceAndAJobOfItsOwn(t *testing.T) {
	key := v1.SecretReference{Name: "copier"}
	for want, second := range map[string]v1.SecondStoreSpec{
		"s3://copies/far/shop/x": {S3: &v1.SecondS3Store{Bucket: "copies", Prefix: "/far/", Credentials: key}},
		"https://minio:9000/copies/shop/x": {
			S3: &v1.SecondS3Store{Bucket: "copies", Endpoint: "https://minio:9000/", Credentials: key}},
		"gs://copies/shop/x": {GCS: &v1.SecondGCSStore{Bucket: "copies", Credentials: key}},
		"https://far.blob.core.windows.net/copies/shop/x": {
			Azure: &v1.SecondAzureStore{Account: "far", Container: "copies", Credentials: key}},
	} {
		db := withSecond(sampleDB("x"), second)
		if got := CopyPlace(db, "shop/x"); got != want {
			t.Errorf("it is %s, want %s", got, want)
		}
		other := withSecond(sampleDB("x"), v1.SecondStoreSpec{
			S3: &v1.SecondS3Store{Bucket: "another", Credentials: key}})
		if CopyJobName(db) == CopyJobName(other) {
			t.Error("a Job of a former second store is taken for one of this")
		}
	}
	if CopyPlace(sampleDB("x"), "shop/x") != "" || CopyPlace(sampleDB("x", withoutBackup), "shop/x") != "" {
		t.Error("there is a copy without a second store")
	}
}
