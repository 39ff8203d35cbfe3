package sides

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/change/bluegreen"
)

func TestStrategyFacts(t *testing.T) {
	controls := true
	for want, edit := range map[string]func(*v1.SampleDB){
		"":                           func(*v1.SampleDB) {},
		bluegreen.SourceTooOld:       func(db *v1.SampleDB) { db.Status.Major = 15 },
		bluegreen.WithoutArchive:     func(db *v1.SampleDB) { db.Spec.Backup = &v1.BackupSpec{None: true} },
		bluegreen.NameTooLong:        func(db *v1.SampleDB) { db.Name = "a-name-of-thirty-five-characters-is" },
		bluegreen.WithPooler:         func(db *v1.SampleDB) { db.Spec.Pooler = &v1.PoolerSpec{} },
		bluegreen.WithReaders:        func(db *v1.SampleDB) { db.Spec.Readers = &v1.ReadersSpec{Count: 1} },
		bluegreen.WithRelay:          func(db *v1.SampleDB) { db.Spec.Service.Route = v1.RouteRelay },
		bluegreen.WithOwnCertificate: func(db *v1.SampleDB) { db.Spec.TLS.SecretName = "mine" },
		bluegreen.OfPostgreSQL: func(db *v1.SampleDB) {
			db.OwnerReferences = []metav1.OwnerReference{{Kind: "PostgreSQL", Name: "all", Controller: &controls}}
		},
	} {
		db := &v1.SampleDB{ObjectMeta: metav1.ObjectMeta{Name: "a-name-of-34-characters-is-allowed"}}
		db.Status.Major, db.Spec.Version = 17, 18
		edit(db)
		if got, why := bluegreen.StrategyRefusal(StrategyFacts(db)); got != want {
			t.Errorf("it is refused by %q, not %q: %s", got, want, why)
		}
	}
}
