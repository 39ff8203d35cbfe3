package api

import (
	"testing"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/protocol"
)

// Where the primary's volume has no room for an upgrade, or none any more, no client is sent away, and it is said how
// much is needed.
func TestAMajorUpgradeWithoutRoom(t *testing.T) {
	const gib = int64(1) << 30
	uses := func(m *majors, used int64) {
		m.agents.change("10.1.0.1", func(s *protocol.Status) { s.Room = &protocol.Room{Size: 10 * gib, Used: used} })
	}
	t.Run("for a copy", func(t *testing.T) {
		m := newMajors(t)
		db := m.edit(m.upgradable(), func(db *v1.SampleDB) {
			db.Spec.Upgrade = &v1.UpgradeSpec{Method: v1.UpgradeCopy}
		})
		uses(m, 8*gib)
		db = m.wants(db)
		checks, _ := m.upgradeJobs(db)
		m.podOf(checks[0], `{"from":"17.6","to":"18.1","bytes":3221225472,"catalogs":20971520}`)
		db = m.reconcile(m.reconcile(db))
		m.at(db, v1.UpgradeFailed)
		m.failed(db, "the volume of x-0 has no room: 2.0Gi are free")
	})
	t.Run("any more", func(t *testing.T) {
		m := newMajors(t)
		db := m.upgradable()
		uses(m, 8*gib)
		db, _ = m.prepared(db)
		uses(m, 10*gib-390<<20)
		db = m.reconcile(db)
		m.at(db, v1.UpgradeFailed)
		m.failed(db, "the volume of x-0 has no room: 390Mi are free")
	})
}
