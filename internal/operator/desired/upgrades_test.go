package desired_test

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/operator/desired"
	"toban.dev/internal/operator/desired/upgrades"
	"toban.dev/internal/protocol"
)

func init() { desired.UpgradeObjects = upgradeObjects }

// upgradeObjects are those that come with an upgrade to another major version.
func upgradeObjects(t *testing.T, db *v1.SampleDB, config protocol.Config) []client.Object {
	t.Helper()
	settings := desired.TestSettings
	u := upgrades.Upgrade{ID: "18-0a1b2c", From: 17, To: 18, Image: desired.WantedImage(db, settings), Node: "worker1"}
	told, err := upgrades.ConfigMap(db, upgrades.Settings(db, config, u))
	if err != nil {
		t.Fatal(err)
	}
	out := []client.Object{
		upgrades.Policy(db, settings), told, upgrades.CheckJob(db, settings, u), upgrades.Job(db, settings, u),
		upgrades.Backup(db, u.ID),
	}
	if desired.Backup(db) == nil {
		return out
	}
	backup := upgrades.Backup(db, u.ID)
	backup.Status.ID = "20261120T030000Z-3f2a"
	rehearsal, err := upgrades.RehearsalJob(db, settings, u, backup)
	if err != nil {
		t.Fatal(err)
	}
	return append(out, rehearsal)
}
