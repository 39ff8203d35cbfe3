package bluegreen

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/desired"
	"toban.dev/internal/operator/sampledb/world"
	"toban.dev/internal/operator/sampledb/world/worldtest"
	"toban.dev/internal/operator/scheme"
)

// Blue's data goes without a last backup of its own only where green has left one of all that it has written since it
// serves. One of an earlier upgrade, where blue has served in between, lacks that.
func TestWhichBackupIsTheLastOfTheSecondSide(t *testing.T) {
	served := time.Date(2026, 11, 20, 3, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		change func(*v1.DatabaseBackup, *v1.SampleDB)
		want   bool
	}{
		"taken while it serves": {func(*v1.DatabaseBackup, *v1.SampleDB) {}, true},
		"in the second in which it began to serve": {func(b *v1.DatabaseBackup, db *v1.SampleDB) {
			at := metav1.NewTime(served.Add(900 * time.Millisecond))
			b.CreationTimestamp, db.Status.Upgrade.CompletedAt = metav1.NewTime(served), &at
		}, true},
		"of an earlier upgrade": {func(b *v1.DatabaseBackup, _ *v1.SampleDB) {
			b.CreationTimestamp = metav1.NewTime(served.Add(-time.Second))
		}, false},
		"since when it serves is not known": {func(_ *v1.DatabaseBackup, db *v1.SampleDB) {
			db.Status.Upgrade.CompletedAt = nil
		}, false},
		"of another SampleDB's second side": {func(_ *v1.DatabaseBackup, db *v1.SampleDB) { db.UID = "v" }, false},
		"not the last": {func(b *v1.DatabaseBackup, _ *v1.SampleDB) {
			b.Name = "x-green-1"
		}, false},
		"made by somebody": {func(b *v1.DatabaseBackup, _ *v1.SampleDB) {
			delete(b.Labels, naming.LabelOwner)
		}, false},
		"not complete":              {func(b *v1.DatabaseBackup, _ *v1.SampleDB) { b.Status.Conditions = nil }, false},
		"where it is, is not known": {func(b *v1.DatabaseBackup, _ *v1.SampleDB) { b.Status.ID = "" }, false},
	} {
		at := metav1.NewTime(served)
		db := worldtest.OfTwoSides(v1.SidesChanged).DB
		db.UID, db.Status.Upgrade.CompletedAt = "u", &at
		b := &v1.DatabaseBackup{
			ObjectMeta: metav1.ObjectMeta{
				Name: naming.FinalBackup("x-green", "g"), Labels: map[string]string{naming.LabelOwner: "g"},
				CreationTimestamp: metav1.NewTime(served.Add(time.Hour)),
			},
			Status: v1.DatabaseBackupStatus{
				ID: "20261120T031500Z-3f2a", Archive: &v1.ArchiveReference{Path: "a"},
				Manifest: &runtime.RawExtension{
					Raw: []byte(`{"metadata":{"annotations":{"` + naming.AnnotationSideOf + `":"x/u"}}}`),
				},
				Conditions: []metav1.Condition{{Type: v1.ConditionComplete, Status: metav1.ConditionTrue}},
			},
		}
		c.change(b, db)
		if got := isLastOfGreen(b, db); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// Where the definition of PostgreSQLs goes, that of SampleDBs stays: a second side that serves is told that its volumes
// are to stay, as those of the first do.
func TestASecondSideThatServesIsSparedWithTheFirst(t *testing.T) {
	for serves, want := range map[string]v1.DeletionPolicy{
		v1.SideGreen: v1.DeletionRetain, v1.SideBlue: v1.DeletionDelete,
	} {
		a := worldtest.OfTwoSides(v1.SidesChanged)
		a.DB.Namespace, a.DB.UID, a.DB.Status.Upgrade.Sides.Serves = "shop", "u", serves
		a.DB.Spec.DeletionPolicy = v1.DeletionRetain // as it is from when the definition goes
		a.DeletionPolicy = world.DeletionPolicy{Reason: world.DeletionUninstalled}
		green := &v1.SampleDB{ObjectMeta: metav1.ObjectMeta{
			Name: "x-green", Namespace: "shop", OwnerReferences: []metav1.OwnerReference{desired.Owner(a.DB)},
		}}
		green.Spec.DeletionPolicy = v1.DeletionDelete
		known, err := scheme.New()
		if err != nil {
			t.Fatal(err)
		}
		a.Client = fake.NewClientBuilder().WithScheme(known).WithObjects(green).Build()
		s := topicsOn(a)
		s.Upgrade = a.DB.Status.Upgrade
		if waiting, err := s.end(t.Context()); err != nil || waiting != "" {
			t.Errorf("%s serves: it waits for %q, %v", serves, waiting, err)
		}
		if err := a.Client.Get(t.Context(), client.ObjectKeyFromObject(green), green); err != nil {
			t.Fatal(err)
		}
		if green.Spec.DeletionPolicy != want {
			t.Errorf("%s serves: the second side has the policy %s", serves, green.Spec.DeletionPolicy)
		}
	}
}
