package desired

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/change/upgrade"
)

func TestStrategyFacts(t *testing.T) {
	controls := true
	for want, edit := range map[string]func(*v1.SampleDB){
		"":                         func(*v1.SampleDB) {},
		upgrade.SourceTooOld:       func(db *v1.SampleDB) { db.Status.Major = 15 },
		upgrade.WithoutArchive:     func(db *v1.SampleDB) { db.Spec.Backup = &v1.BackupSpec{None: true} },
		upgrade.NameTooLong:        func(db *v1.SampleDB) { db.Name = "a-name-of-thirty-five-characters-is" },
		upgrade.WithPooler:         func(db *v1.SampleDB) { db.Spec.Pooler = &v1.PoolerSpec{} },
		upgrade.WithReaders:        func(db *v1.SampleDB) { db.Spec.Readers = &v1.ReadersSpec{Count: 1} },
		upgrade.WithRelay:          func(db *v1.SampleDB) { db.Spec.Service.Route = v1.RouteRelay },
		upgrade.WithOwnCertificate: func(db *v1.SampleDB) { db.Spec.TLS.SecretName = "mine" },
		upgrade.OfPostgreSQL: func(db *v1.SampleDB) {
			db.OwnerReferences = []metav1.OwnerReference{{Kind: "PostgreSQL", Name: "all", Controller: &controls}}
		},
	} {
		db := &v1.SampleDB{ObjectMeta: metav1.ObjectMeta{Name: "a-name-of-34-characters-is-allowed"}}
		db.Status.Major, db.Spec.Version = 17, 18
		edit(db)
		if got, why := upgrade.StrategyRefusal(StrategyFacts(db)); got != want {
			t.Errorf("it is refused by %q, not %q: %s", got, want, why)
		}
	}
}
