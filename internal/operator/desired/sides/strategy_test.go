package sides

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/change/bluegreen"
)

func TestStrategyFacts(t *testing.T) {
	for want, edit := range map[string]func(*v1.SampleDB){
		"":                           func(*v1.SampleDB) {},
		bluegreen.SourceTooOld:       func(db *v1.SampleDB) { db.Status.Major = 15 },
		bluegreen.WithoutArchive:     func(db *v1.SampleDB) { db.Spec.Backup = &v1.BackupSpec{None: true} },
		bluegreen.WithPooler:         func(db *v1.SampleDB) { db.Spec.Pooler = &v1.PoolerSpec{} },
		bluegreen.WithOwnCertificate: func(db *v1.SampleDB) { db.Spec.TLS.SecretName = "mine" },
	} {
		db := &v1.SampleDB{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}
		db.Status.Major, db.Spec.Version = 17, 18
		edit(db)
		if got, why := bluegreen.StrategyRefusal(StrategyFacts(db)); got != want {
			t.Errorf("it is refused by %q, not %q: %s", got, want, why)
		}
	}
}
