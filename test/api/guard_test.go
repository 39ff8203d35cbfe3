package api

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	pgv1 "toban.dev/api/postgresql/v1"
	v1 "toban.dev/api/v1"
)

// guard puts the example's policy into force in the namespace of the test, and waits until it is.
func (w *world) guard() {
	w.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "config", "examples", "guard.yaml"))
	w.must(err)
	parts := strings.Split(string(text), "\n---\n")
	policy, binding := &admissionv1.ValidatingAdmissionPolicy{}, &admissionv1.ValidatingAdmissionPolicyBinding{}
	w.must(yaml.UnmarshalStrict([]byte(parts[0]), policy))
	w.must(yaml.UnmarshalStrict([]byte(parts[1]), binding))
	binding.Spec.MatchResources = &admissionv1.MatchResources{NamespaceSelector: &metav1.LabelSelector{
		MatchLabels: map[string]string{"kubernetes.io/metadata.name": w.namespace},
	}}
	for _, object := range []client.Object{policy, binding} {
		w.must(w.api.Create(w.Context(), object))
		w.Cleanup(func() { _ = w.api.Delete(context.WithoutCancel(w.Context()), object) })
	}
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if w.tried(w.sampleDB("x", func(db *v1.SampleDB) { db.Spec.Image = "elsewhere/x" })) != nil {
			return
		}
	}
	w.Fatal("the policy is not in force after a minute")
}

// tried is what the API server says to an object, which it does not keep.
func (w *world) tried(object client.Object) error {
	return w.api.Create(w.Context(), object, client.DryRunAll)
}

// Who edits databases names no Secrets and no images but those that the example's policy allows.
func TestTheGuardOfTheExamples(t *testing.T) {
	w := newWorld(t)
	w.guard()
	secret := func(name string) *v1.SecretReference { return &v1.SecretReference{Name: name} }
	recipient := "age1" + strings.Repeat("q", 58)
	db := func(name string) *v1.SampleDB {
		return w.sampleDB("shop", func(db *v1.SampleDB) {
			db.Spec.Image = "registry.example.com/postgres:17"
			db.Spec.Init = &v1.InitSpec{SQL: []v1.SQLSource{
				{ConfigMap: &v1.KeySelector{Name: "any", Key: "k"}}, {Secret: &v1.KeySelector{Name: name, Key: "k"}},
			}}
		})
	}
	inStore := func(store v1.StoreSpec) *v1.SampleDB {
		return w.sampleDB("shop", func(db *v1.SampleDB) { db.Spec.Backup = &v1.BackupSpec{Store: store} })
	}
	encrypted := func(name string) *v1.SampleDB {
		return w.sampleDB("shop", func(db *v1.SampleDB) {
			db.Spec.Backup = &v1.BackupSpec{Encryption: &v1.EncryptionSpec{Recipient: recipient, Key: *secret(name)}}
		})
	}
	restored := func(name string) *v1.SampleDB {
		return w.sampleDB("shop", func(db *v1.SampleDB) {
			db.Spec.RestoreFrom = &v1.RestoreSpec{Archive: &v1.ArchiveReference{
				Path: "shop/x", Store: v1.StoreSpec{GCS: &v1.GCSStore{Bucket: "backups", Credentials: secret(name)}},
			}}
		})
	}
	pg := func(password pgv1.SecretName, roles ...pgv1.Role) *pgv1.PostgreSQL {
		return &pgv1.PostgreSQL{
			ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "foodb"},
			Spec:       pgv1.PostgreSQLSpec{DB: "foo", User: "foo", Password: password, Roles: roles},
		}
	}
	certified := func(name string) *v1.SampleDB {
		return w.sampleDB("shop", func(db *v1.SampleDB) { db.Spec.TLS.SecretName = name })
	}
	for name, object := range map[string]client.Object{
		"nothing named":  w.sampleDB("shop"),
		"SQL of its own": db("shop-sql"),
		"a store of its own": inStore(v1.StoreSpec{
			S3: &v1.S3Store{Bucket: "backups", Credentials: secret("shop-s3")},
		}),
		"a key of its own":         encrypted("shop-age"),
		"a certificate of its own": certified("shop-tls"),
		"an archive of its own":    restored("shop-gcs"),
		"the article's manifest":   pg("foodb-password"),
		"a role with one of ours":  pg("foodb-password", pgv1.Role{Name: "r", Password: "foodb-reader"}),
	} {
		if err := w.tried(object); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, object := range map[string]client.Object{
		"a foreign image":    w.sampleDB("shop", func(db *v1.SampleDB) { db.Spec.Image = "docker.io/x" }),
		"foreign SQL":        db("payment"),
		"foreign S3":         inStore(v1.StoreSpec{S3: &v1.S3Store{Bucket: "backups", Credentials: secret("payment")}}),
		"a foreign CA":       inStore(v1.StoreSpec{S3: &v1.S3Store{Bucket: "backups", CA: secret("payment")}}),
		"a foreign key":      encrypted("payment"),
		"a foreign TLS":      certified("payment-tls"),
		"a foreign archive":  restored("payment"),
		"a foreign password": pg("payment"),
		"a role's password":  pg("foodb-password", pgv1.Role{Name: "r", Password: "payment"}),
		"foreign Azure": inStore(v1.StoreSpec{Azure: &v1.AzureStore{
			Account: "account", Container: "backups", DeletionCredentials: secret("payment"),
		}}),
	} {
		if err := w.tried(object); err == nil || !strings.Contains(err.Error(), "toban-guard") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
