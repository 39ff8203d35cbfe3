package plan

import (
	"strings"
	"testing"

	v1 "toban.dev/api/v1"
)

func TestWarnings(t *testing.T) {
	before := shop()
	for name, test := range map[string]struct {
		edit func(*v1.SampleDB)
		want string
	}{
		"async":     {func(db *v1.SampleDB) { db.Spec.Durability = v1.DurabilityAsync }, "durability: async"},
		"alone":     {func(db *v1.SampleDB) { db.Spec.Instances = 1 }, "one instance"},
		"noarchive": {func(db *v1.SampleDB) { db.Spec.Backup = &v1.BackupSpec{None: true} }, "backup.none"},
		"delete":    {func(db *v1.SampleDB) { db.Spec.DeletionPolicy = v1.DeletionDelete }, "deletionPolicy: Delete"},
		"volumes":   {func(db *v1.SampleDB) { db.Spec.Storage.WhenScaled = v1.ScaleDelete }, "storage.whenScaled"},
		"restore":   {func(db *v1.SampleDB) { db.Spec.Restore = &v1.InPlaceRestore{ID: "a"} }, "restore: "},
		"strategy": {func(db *v1.SampleDB) {
			db.Spec.Upgrade, db.Spec.Pooler = &v1.UpgradeSpec{Strategy: v1.StrategyBlueGreen}, &v1.PoolerSpec{}
		}, "upgrade.strategy: BlueGreen: A pooler does not know a second side yet"},
		"trial": {func(db *v1.SampleDB) { db.Spec.Upgrade = &v1.UpgradeSpec{Strategy: v1.StrategyBlueGreen} },
			"upgrade.strategy: BlueGreen: it is on trial"},
		"more": {func(db *v1.SampleDB) { db.Spec.Instances = 5 }, ""},
	} {
		got := of(t, before, running(t, before), test.edit).Warnings
		if (test.want == "") != (len(got) == 0) || test.want != "" && !strings.HasPrefix(got[0], test.want) {
			t.Errorf("%s: it warns %q", name, got)
		}
	}
}
