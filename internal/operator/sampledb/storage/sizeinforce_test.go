package storage

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/operator/desired"
	"toban.dev/internal/operator/desired/volumes"
	"toban.dev/internal/operator/sampledb/world"
)

// claimOf is a claim of a size that has noted another, "" for none.
func claimOf(has, noted string) *corev1.PersistentVolumeClaim {
	claim := &corev1.PersistentVolumeClaim{}
	claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(has)}
	if noted != "" {
		volumes.NoteStorage(claim, "1 "+noted)
	}
	return claim
}

// The size in force is the former one until it is decided that the data fits, and what a claim notes is for that one.
func TestTheSizeInForceOfSmallerVolumes(t *testing.T) {
	for name, c := range map[string]struct {
		size, status string // of the spec, and in the status, "" for none
		grows        bool
		claims       string // of each what it has, and has noted
		want, note   string
		undecided    bool
	}{
		"as ever":                   {"20Gi", "", false, "20Gi:20Gi 20Gi:20Gi", "20Gi", "20Gi", false},
		"of an earlier release":     {"10Gi", "", false, "20Gi: 20Gi:", "10Gi", "10Gi", false},
		"lowered":                   {"10Gi", "", false, "20Gi:20Gi 20Gi:20Gi", "20Gi", "20Gi", true},
		"lowered, and looked at":    {"10Gi", "20Gi", false, "20Gi:20Gi 20Gi:20Gi", "20Gi", "20Gi", true},
		"decided":                   {"10Gi", "10Gi", false, "20Gi:20Gi 20Gi:20Gi", "10Gi", "10Gi", false},
		"one is smaller":            {"10Gi", "10Gi", false, "20Gi:20Gi 10Gi:10Gi", "10Gi", "10Gi", false},
		"and the status is lost":    {"10Gi", "", false, "20Gi:20Gi 10Gi:10Gi", "10Gi", "10Gi", false},
		"lowered again":             {"8Gi", "10Gi", false, "20Gi:20Gi 10Gi:10Gi", "10Gi", "10Gi", true},
		"taken back":                {"20Gi", "10Gi", false, "20Gi:20Gi 10Gi:10Gi", "20Gi", "20Gi", false},
		"grown, and lowered":        {"10Gi", "40Gi", true, "40Gi:20Gi 40Gi:20Gi", "40Gi", "40Gi", true},
		"grown, lowered, decided":   {"10Gi", "10Gi", true, "40Gi:20Gi 40Gi:20Gi", "10Gi", "10Gi", false},
		"the new ones have grown":   {"10Gi", "12Gi", true, "40Gi:20Gi 12Gi:10Gi", "12Gi", "10Gi", false},
		"grown, and not lowered":    {"10Gi", "40Gi", true, "40Gi:10Gi 40Gi:10Gi", "40Gi", "10Gi", false},
		"grown, and grow removed":   {"10Gi", "40Gi", false, "40Gi:10Gi 40Gi:10Gi", "40Gi", "10Gi", false},
		"of two sizes, and lowered": {"10Gi", "", false, "40Gi:20Gi 20Gi:20Gi", "20Gi", "20Gi", true},
	} {
		db := &v1.SampleDB{ObjectMeta: metav1.ObjectMeta{Name: "x", UID: "1"}}
		db.Spec.Instances, db.Spec.Storage.Size = 2, c.size
		if c.status != "" {
			db.Status.Storage = &v1.StorageStatus{Size: c.status}
		}
		if c.grows {
			db.Spec.Storage.Grow = &v1.GrowSpec{Limit: "100Gi"}
		}
		s := topicsOf(world.Core{DB: db, Seen: world.Observed{Claims: map[int]*corev1.PersistentVolumeClaim{}}})
		for n, words := range strings.Fields(c.claims) {
			has, noted, _ := strings.Cut(words, ":")
			s.Seen.Claims[n] = claimOf(has, noted)
		}
		s.TakeSizeInForce()
		if got := s.DB.Spec.Storage.Size; got != c.want {
			t.Errorf("%s: %s is in force, want %s", name, got, c.want)
		}
		// After another write the spec is as the API server has it; that must change nothing.
		if size, err := desired.Size(s.DB); err != nil || size.String() != c.want {
			t.Errorf("%s: objects get %s, want %s: %v", name, size.String(), c.want, err)
		}
		if got, want := s.StorageNote(), "1 "+c.note; got != want {
			t.Errorf("%s: a claim notes %q, want %q", name, got, want)
		}
		if got := s.KeepsFormerSize(); got != c.undecided {
			t.Errorf("%s: undecided is %v", name, got)
		}
		for n, claim := range s.Seen.Claims { // what is in force is never more than what a volume keeps
			tooSmall, err := tooSmall(s.DB, desired.DataVolume, claim)
			if err != nil || tooSmall && s.Wrote.Smaller(claim) {
				t.Errorf("%s: volume %d is to be smaller, and would grow", name, n)
			}
		}
	}
}
