package upgrade

import (
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/cli/await"
	"toban.dev/internal/cli/cluster/clustertest"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/scheme"
)

func TestWhatUpgradeAsksFor(t *testing.T) {
	for name, test := range map[string]struct {
		o           upgradeToOptions
		patch, says string
	}{
		"a version": {upgradeToOptions{to: 18}, `{"spec":{"version":18}}`, ""},
		"blue-green, now": {upgradeToOptions{to: 18, strategy: "blue-green", now: true},
			`{"metadata":{"annotations":{"toban.dev/update":"now"}},` +
				`"spec":{"upgrade":{"strategy":"BlueGreen"},"version":18}}`, ""},
		"in-place": {upgradeToOptions{to: 18, strategy: "in-place"},
			`{"spec":{"upgrade":{"strategy":"InPlace"},"version":18}}`, ""},
		"nothing":            {upgradeToOptions{}, "", "say either"},
		"back and forth":     {upgradeToOptions{to: 18, back: true}, "", "say either"},
		"another strategy":   {upgradeToOptions{to: 18, strategy: "rolling"}, "", "in-place or blue-green"},
		"a strategy of what": {upgradeToOptions{back: true, strategy: "in-place"}, "", "goes with --to"},
		"a rehearsal of a way back": {upgradeToOptions{back: true, rehearse: true}, "",
			"--rehearse upgrades nothing"},
		"a rehearsal of a strategy": {upgradeToOptions{to: 18, rehearse: true, strategy: "blue-green"}, "",
			"--rehearse upgrades nothing"},
	} {
		err := test.o.check()
		if (err == nil) != (test.says == "") || err != nil && !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: it says %v, want %q", name, err, test.says)
		}
		if err != nil {
			continue
		}
		if patch, err := test.o.patch(); err != nil || string(patch) != test.patch {
			t.Errorf("%s: it asks for %s, %v", name, patch, err)
		}
	}
}

func TestAStrategyIsRefusedBeforeAnythingChanges(t *testing.T) {
	for name, test := range map[string]struct {
		strategy string
		edit     func(*v1.SampleDB)
		says     string
	}{
		"it can be":   {"blue-green", func(*v1.SampleDB) {}, ""},
		"it can't be": {"blue-green", func(db *v1.SampleDB) { db.Spec.Pooler = &v1.PoolerSpec{} }, "spec.pooler"},
		"it can be, in place": {
			"in-place", func(db *v1.SampleDB) { db.Spec.Pooler = &v1.PoolerSpec{} }, "",
		},
		"the spec has it": {"", func(db *v1.SampleDB) {
			db.Spec.Upgrade, db.Spec.Pooler = &v1.UpgradeSpec{Strategy: v1.StrategyBlueGreen}, &v1.PoolerSpec{}
		}, "spec.pooler"},
		"it runs that already": {"blue-green", func(db *v1.SampleDB) {
			db.Spec.Pooler, db.Status.Major = &v1.PoolerSpec{}, 18
		}, ""},
	} {
		db := clustertest.ThreeReady()
		db.Spec.Version, db.Status.Major = 17, 17
		test.edit(db)
		err := (&upgradeToOptions{to: 18, strategy: test.strategy}).refuseStrategy(db)
		if (err == nil) != (test.says == "") || err != nil && !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: it says %v, want %q", name, err, test.says)
		}
	}
}

func TestWhenTheStepsOfTwoSidesAreOver(t *testing.T) {
	failed := clustertest.OnSides(v1.UpgradeFailed, v1.SideBlue)
	again := clustertest.OnSides(v1.UpgradeFailed, v1.SideBlue)
	again.Annotations = map[string]string{naming.AnnotationUpdate: "now"}
	home := clustertest.OnSides(v1.SidesComingHome, v1.SideGreen)
	home.Status.Upgrade.Step = v1.UpgradeUpgraded
	for name, test := range map[string]struct {
		o    upgradeToOptions
		db   *v1.SampleDB
		told string
		over bool
		err  string
	}{
		"rows are compared": {upgradeToOptions{to: 18}, clustertest.OnSides(v1.SidesComparing, v1.SideBlue),
			"shop: Comparing: so it is\n", false, ""},
		"clients have moved": {upgradeToOptions{to: 18}, clustertest.OnSides(v1.SidesChanged, v1.SideGreen),
			"shop: Changed: so it is\n", true, ""},
		"it has failed":     {upgradeToOptions{to: 18}, failed, "", true, "so it is"},
		"it is tried again": {upgradeToOptions{to: 18}, again, "", false, ""},
		"it is cancelled":   {upgradeToOptions{to: 17}, failed, "shop: Failed: so it is\n", true, ""},
		"it is being undone": {upgradeToOptions{to: 17}, clustertest.OnSides(v1.SidesCancelling, v1.SideBlue),
			"shop: Cancelling: so it is\n", false, ""},
		"it is accepted": {upgradeToOptions{to: 18, accept: true}, clustertest.OnSides(v1.SidesChanged, v1.SideGreen),
			"shop: Changed: so it is\n", false, ""},
		"its own data is upgraded": {upgradeToOptions{to: 18, accept: true}, home,
			"shop: ComingHome, Upgraded: so it is\n", false, ""},
		"it is at home": {upgradeToOptions{to: 18, accept: true}, clustertest.OnSides(v1.UpgradeUpgraded, v1.SideBlue),
			"shop: Upgraded: so it is\n", true, ""},
	} {
		var out strings.Builder
		over, err := test.o.show(test.db, &await.Lines{Out: &out, Of: test.db.Name})
		if out.String() != test.told || over != test.over || (err == nil) != (test.err == "") {
			t.Errorf("%s: it tells %q, is over: %t, %v", name, out.String(), over, err)
		}
	}
}

// inPlace is a SampleDB on its way from 17 to 18 in place.
func inPlace(step, wayBack, backup string) *v1.SampleDB {
	db := clustertest.ThreeReady()
	db.Spec.Version, db.Status.Major = 18, 18
	db.Status.Upgrade = &v1.UpgradeStatus{
		ID: "18-0a", From: 17, To: 18, Step: step, WayBack: wayBack, Backup: backup, Instance: "shop-1",
		ClosedAt: "2026-11-27T12:00:00.000Z", OpenedAt: "2026-11-27T12:00:09.500Z",
	}
	return db
}

func withoutArchive(db *v1.SampleDB) *v1.SampleDB {
	db.Spec.Backup = &v1.BackupSpec{None: true}
	return db
}

// After an upgrade in place the act that leads back is told, and what it loses.
func TestTheWayBackAfterAnUpgradeInPlace(t *testing.T) {
	const restore = "shop is as it was before the upgrade, with PostgreSQL 17, in another SampleDB by\n" +
		"  kubectl toban restore shop --namespace default --into OTHER --to 2026-11-27T12:00:00.000Z\n"
	const loses = "What clients have written since 2026-11-27T12:00:00.000Z is not in it. shop itself stays as it is.\n"
	for want, db := range map[string]*v1.SampleDB{
		restore + loses: inPlace(v1.UpgradeUpgraded, v1.WayBackArchive, "shop-before-18-0a"),
		restore + "No backup was taken right before the upgrade: an earlier one must be in the archive.\n" +
			loses: inPlace(v1.UpgradeUpgraded, v1.WayBackNone, ""),
		"There is no archive (spec.backup).\nThe former data is whole, in the folder before-18-0a/data of the volume " +
			"of shop-1, until the upgrade is accepted: start a server of PostgreSQL 17 on a copy of it.\n" +
			loses: withoutArchive(inPlace(v1.UpgradeUpgraded, v1.WayBackFormerData, "")),
	} {
		db.Namespace = "default"
		var out strings.Builder
		o := &upgradeToOptions{back: true}
		if err := o.goBack(t.Context(), &out, nil, db); err != nil || out.String() != want {
			t.Errorf("it says %v,\n%s\nwant\n%s", err, out.String(), want)
		}
	}
}

func TestTheWayBackIsRefused(t *testing.T) {
	none := clustertest.ThreeReady()
	for words, db := range map[string]*v1.SampleDB{
		"no upgrade of":    none,
		"on PostgreSQL 17": clustertest.OnSides(v1.SidesComparing, v1.SideBlue),
		"is accepted":      clustertest.OnSides(v1.SidesComingHome, v1.SideGreen),
		"To cancel":        inPlace(v1.UpgradePreparing, v1.WayBackCancel, ""),
		"is no way back":   withoutArchive(inPlace(v1.UpgradeUpgraded, v1.WayBackNone, "")),
	} {
		o := &upgradeToOptions{back: true}
		if err := o.goBack(t.Context(), io.Discard, nil, db); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("it says %v, want %q", err, words)
		}
	}
}

// The way back is over when the former side serves and nothing is left of the other one; it was not taken if the
// request is gone and the other side serves still.
func TestTheWayBackIsWatched(t *testing.T) {
	for name, test := range map[string]struct {
		goOn func(*v1.SampleDB)
		says string
	}{
		"it was not taken": {func(*v1.SampleDB) {}, "the way back was not taken: so it is"},
		"it was": {func(db *v1.SampleDB) {
			db.Status.Upgrade.Sides = &v1.SidesStatus{Step: v1.UpgradeFailed, Serves: v1.SideBlue}
		}, ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			known, err := scheme.New()
			if err != nil {
				t.Fatal(err)
			}
			db := clustertest.OnSides(v1.SidesChanged, v1.SideGreen)
			api := fake.NewClientBuilder().WithScheme(known).WithObjects(db).WithStatusSubresource(db).Build()
			asked := make(chan bool, 1)
			go func() {
				time.Sleep(time.Minute)
				later := &v1.SampleDB{}
				if err := api.Get(t.Context(), client.ObjectKeyFromObject(db), later); err != nil {
					t.Error(err)
				}
				asked <- later.Annotations[naming.AnnotationUpgradeBack] != ""
				delete(later.Annotations, naming.AnnotationUpgradeBack)
				if err := api.Update(t.Context(), later); err != nil {
					t.Error(err)
				}
				test.goOn(later)
				if err := api.Status().Update(t.Context(), later); err != nil {
					t.Error(err)
				}
			}()
			o := &upgradeToOptions{back: true}
			o.Namespace, o.Wait, o.Timeout = db.Namespace, true, time.Hour
			err = o.goBack(t.Context(), io.Discard, api, db)
			if (err == nil) != (test.says == "") || err != nil && err.Error() != test.says {
				t.Errorf("%s: it says %v", name, err)
			}
			if !<-asked {
				t.Errorf("%s: nothing was asked for", name)
			}
		})
	}
}
