package versions

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/operator/sampledb/world"
	"toban.dev/internal/protocol"
	"toban.dev/internal/work/maintenance"
)

// primarySays is what is known where the primary has found this about the order of texts, nil for nothing yet.
func primarySays(found *maintenance.Report) world.Core {
	return world.Core{
		DB:     &v1.SampleDB{ObjectMeta: metav1.ObjectMeta{Name: "x"}},
		Config: protocol.Config{Members: []protocol.Member{{Name: "x-0"}}},
		Seen: world.Observed{Answers: map[string]protocol.Status{"x-0": {
			Name: "x-0", Role: protocol.RolePrimary, Ready: true, ServerVersion: "17.7", Collations: found,
		}}},
	}
}

// Which change of the library was made by an act, so that a rebuild is due at once.
func TestWhatMakesARebuildDue(t *testing.T) {
	started := time.Unix(1e9, 0)
	versions := []maintenance.Version{{Database: "shop", Recorded: "2", Actual: "3"}}
	stale := &maintenance.Report{Indexes: 1, Databases: versions}
	from := &v1.RestoreSpec{SampleDB: "other"}
	for name, c := range map[string]struct {
		found    *maintenance.Report
		restored *v1.RestoreSpec
		sortedBy string
		before   *v1.FinishStatus
		after    time.Duration
		due      string
	}{
		"it was right under another image": {found: stale, sortedBy: "old", due: "from old to 17.7"},
		"it was so before":                 {found: stale},
		"a restore has brought it":         {found: stale, restored: from, due: "a restore"},
		"a restore of long ago":            {found: stale, restored: from, after: 25 * time.Hour},
		"after a restore it was rebuilt in vain": {
			found: stale, restored: from, before: &v1.FinishStatus{Step: v1.FinishDone},
		},
		"nothing has changed": {found: &maintenance.Report{}, restored: from, sortedBy: "old"},
		"it is not known":     {found: &maintenance.Report{Problem: "no"}, sortedBy: "old"},
		"nobody has looked":   {sortedBy: "old"},
	} {
		at := metav1.NewTime(started)
		core := primarySays(c.found)
		core.DB.Spec.RestoreFrom, core.Now = c.restored, started.Add(c.after)
		core.Outcomes = world.Outcomes{InitializedAt: &at}
		s := topicsOf(core)
		s.SortedBy, s.Finish = c.sortedBy, c.before
		s.noteSorting()
		due := ""
		if s.finishDue() {
			due = s.Finish.For
		}
		if due != c.due {
			t.Errorf("%s: due is %q, want %q", name, due, c.due)
		}
	}
}
