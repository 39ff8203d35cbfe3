package plan

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/operator/desired"
	"toban.dev/internal/operator/desired/volumes"
)

// holds has the status say of each volume how full it is.
func holds(db *v1.SampleDB, size string, hundredths int32) *v1.SampleDB {
	for _, name := range instances(db) {
		db.Status.InstanceStatuses = append(db.Status.InstanceStatuses, v1.InstanceStatus{
			Name: name, Volume: &v1.VolumeStatus{Size: size, UsedPercent: hundredths},
		})
	}
	return db
}

func TestThePlanOfSmallerVolumesSaysWhetherTheDataFits(t *testing.T) {
	one := shop()
	one.Spec.Instances = 1
	smaller := func(db *v1.SampleDB) { db.Spec.Storage.Size = "5Gi" }
	restored, done := holds(shop(), "9.8Gi", 30), metav1.Now()
	restored.Status.Restore = &v1.RestoreStatus{ID: "mistake", Instance: "shop-2", CompletedAt: &done}
	for name, c := range map[string]struct {
		before *v1.SampleDB
		want   string
	}{
		"it does":            {holds(shop(), "9.8Gi", 30), "The data fits: volume data-shop-0 holds 2.9Gi"},
		"it does not":        {holds(shop(), "9.8Gi", 60), "As it is now, nothing is touched: the data does not fit"},
		"it is not known":    {shop(), "how full volume data-shop-0 is is not known"},
		"in a lone instance": {one, "Set instances to 2"},
		"one has what a restore has replaced": {
			restored, "nothing happens: the volume of shop-2 has the data that the restore mistake has replaced",
		},
	} {
		plan := of(t, c.before, Seen{}, smaller)
		if i := indexOf(plan.Steps, ReplaceVolumes); i < 0 || !strings.Contains(plan.Steps[i].Message, c.want) {
			t.Errorf("%s: %+v", name, plan.Steps)
		}
	}
}

// Volumes that are in the class already, whatever the spec says of it, are not replaced.
func TestThePlanLooksAtTheVolumes(t *testing.T) {
	db, seen, fast := shop(), Seen{}, "fast"
	for ordinal := range 3 {
		claim, err := desired.Claim(db, ordinal, nil)
		if err != nil {
			t.Fatal(err)
		}
		volumes.NoteStorage(claim, volumes.Asked(db).Note())
		if ordinal > 0 {
			claim.Spec.StorageClassName = &fast
		}
		seen.Claims = append(seen.Claims, *claim)
	}
	edit := func(db *v1.SampleDB) { db.Spec.Storage.StorageClassName = &fast }
	if got := of(t, db, seen, edit).short(); got != "ReplaceVolumes shop-0 GoOn: storage.storageClassName" {
		t.Errorf("the plan is\n%s", got)
	}
	seen.Claims = []corev1.PersistentVolumeClaim{}
	if got := of(t, db, seen, edit).short(); !strings.Contains(got, "shop-2,shop-0,shop-1") {
		t.Errorf("without claims the plan is\n%s", got)
	}
}
