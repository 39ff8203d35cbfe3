package desired

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pgv1 "toban.dev/api/postgresql/v1"
	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
)

func foodb(modify func(*pgv1.PostgreSQL)) *pgv1.PostgreSQL {
	pg := &pgv1.PostgreSQL{
		ObjectMeta: metav1.ObjectMeta{Name: "foodb", Namespace: "shop", UID: "0b5f"},
		Spec:       pgv1.PostgreSQLSpec{DB: "foo", User: "foo", Password: "foodb-password"},
	}
	modify(pg)
	return pg
}

func TestObjectsOfAPostgreSQLAreAsInTheGoldenFiles(t *testing.T) {
	three, version := int32(3), int32(18)
	from := base{"postgresql", objectsOf(foodb(func(*pgv1.PostgreSQL) {})), "foodb"}
	whole(t, from.file, from.objects)
	for name, pg := range map[string]*pgv1.PostgreSQL{
		"postgresql-full": foodb(func(pg *pgv1.PostgreSQL) {
			pg.Spec.Instances, pg.Spec.Version, pg.Spec.Storage = &three, &version, &v1.StorageSpec{Size: "20Gi"}
			pg.Spec.Backup, pg.Spec.Service = &v1.BackupSpec{Schedule: "@daily"}, &v1.ServiceSpec{Type: "LoadBalancer"}
			pg.Spec.Network = &v1.NetworkSpec{From: []v1.NetworkPeer{{IPBlock: &v1.IPBlock{CIDR: "10.0.0.0/8"}}}}
			pg.Spec.RestoreFrom = &v1.RestoreSpec{Backup: "foodb-final-1"}
			pg.Spec.Resources = &corev1.ResourceRequirements{
				Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")},
			}
			pg.Spec.Pooler, pg.Spec.Update = &v1.PoolerSpec{Instances: 2}, &v1.UpdateSpec{None: true}
			pg.Spec.Upgrade = &v1.UpgradeSpec{Backup: v1.UpgradeBackupNone}
			pg.Spec.Roles = []pgv1.Role{
				{Name: "r", Password: "reader.password"}, {Name: "s", Password: "foodb-password"},
			}
			pg.Annotations = map[string]string{naming.AnnotationReload: "1"}
		}),
		"postgresql-longest": foodb(func(pg *pgv1.PostgreSQL) { pg.Name = longest }),
	} {
		t.Run(name, func(t *testing.T) {
			from.different(t, name, objectsOf(pg))
		})
	}
}

func objectsOf(pg *pgv1.PostgreSQL) []client.Object {
	db := Server(pg, nil)
	return []client.Object{
		db, PasswordsJob(pg, settings, "PUBLIC-KEY", nil), SecretRevision(pg, "0123456789"),
		DatabaseSecret(pg, db, `p@ss:w\rd`, []byte("CERT")),
	}
}

func TestThePasswordsAreReadAnewWhenThatIsAskedFor(t *testing.T) {
	name := func(modify func(*pgv1.PostgreSQL)) string {
		return PasswordsJob(foodb(modify), settings, "PUBLIC-KEY", nil).Name
	}
	same := name(func(*pgv1.PostgreSQL) {})
	for what, change := range map[string]func(*pgv1.PostgreSQL){
		"reload": func(pg *pgv1.PostgreSQL) { pg.Annotations = map[string]string{naming.AnnotationReload: "1"} },
		"secret": func(pg *pgv1.PostgreSQL) { pg.Spec.Password = "other" },
		"role":   func(pg *pgv1.PostgreSQL) { pg.Spec.Roles = []pgv1.Role{{Name: "r", Password: "other"}} },
	} {
		if name(change) == same {
			t.Errorf("%s: the Job is the same", what)
		}
	}
	if PasswordsJob(foodb(func(*pgv1.PostgreSQL) {}), settings, "PUBLIC-KEY",
		map[string]string{"foodb-password": "12"}).Name == same {
		t.Error("another version of the Secret: the Job is the same")
	}
	if name(func(pg *pgv1.PostgreSQL) { pg.Spec.DB = "bar" }) != same {
		t.Error("what has nothing to do with passwords replaces the Job")
	}
}

// A newer release may have other defaults, and a user may take a field out again: what can't be changed stays.
func TestAServerThatIsThereKeepsWhatCannotBeChanged(t *testing.T) {
	class, later := "fast", int32(18)
	have := Server(foodb(func(*pgv1.PostgreSQL) {}), nil)
	have.Spec.Version = 16
	have.Spec.Storage = v1.StorageSpec{Size: "20Gi", StorageClassName: &class}
	kept := Server(foodb(func(*pgv1.PostgreSQL) {}), have)
	if kept.Spec.Version != 16 || kept.Spec.Storage.Size != "20Gi" || *kept.Spec.Storage.StorageClassName != class {
		t.Errorf("it becomes version %d with %+v", kept.Spec.Version, kept.Spec.Storage)
	}
	asked := Server(foodb(func(pg *pgv1.PostgreSQL) {
		pg.Spec.Version, pg.Spec.Storage = &later, &v1.StorageSpec{Size: "30Gi"}
	}), have)
	if asked.Spec.Version != later || asked.Spec.Storage.Size != "30Gi" {
		t.Errorf("what the spec says becomes version %d with %+v", asked.Spec.Version, asked.Spec.Storage)
	}
}
