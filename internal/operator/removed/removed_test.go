package removed

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
)

// A whole archive that is gone takes with it what is known to have been complete there, and nothing that may lie
// elsewhere.
func TestWhatIsGoneWithAWholeArchive(t *testing.T) {
	store := func(bucket string) v1.StoreSpec { return v1.StoreSpec{S3: &v1.S3Store{Bucket: bucket}} }
	for name, c := range map[string]struct {
		all  bool
		edit func(*v1.DatabaseBackup)
		want bool
	}{
		"it was there":    {true, func(*v1.DatabaseBackup) {}, true},
		"not all is gone": {false, func(*v1.DatabaseBackup) {}, false},
		"it lies in another store": {true,
			func(b *v1.DatabaseBackup) { b.Status.Archive.Store = store("b") }, false},
		"it has never come to its end": {true, func(b *v1.DatabaseBackup) { b.Status.CompletedAt = nil }, false},
		"it has failed": {true,
			func(b *v1.DatabaseBackup) { b.Status.Conditions[0].Status = metav1.ConditionFalse }, false},
		"it is not known what became of it": {true, func(b *v1.DatabaseBackup) { b.Status.Conditions = nil }, false},
	} {
		b := &v1.DatabaseBackup{}
		b.Status.Archive = &v1.ArchiveReference{Path: "n/db", Store: store("a")}
		b.Status.CompletedAt = &metav1.Time{Time: time.Now()}
		b.Status.Conditions = []metav1.Condition{{Type: v1.ConditionComplete, Status: metav1.ConditionTrue}}
		c.edit(b)
		by := By{All: c.all, Archive: "n/db", Store: store("a")}
		if got := by.isIn(b) && by.all(b); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
