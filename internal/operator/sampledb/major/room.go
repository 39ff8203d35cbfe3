package major

import (
	v1 "toban.dev/api/v1"
	"toban.dev/internal/change/major"
	"toban.dev/internal/change/space"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/desired"
	"toban.dev/internal/operator/desired/upgrades"
	"toban.dev/internal/operator/jobs"
	"toban.dev/internal/operator/sampledb/world"
	"toban.dev/internal/protocol"
)

// upgradeRoom has a check fail that has found nothing else in the way, where the primary's volume has no room for the
// upgrade. What the volume has changes, so it is looked at until clients are sent away.
func (s *upgradeTopic) upgradeRoom(x upgrades.Upgrade, check major.Work) major.Work {
	run := jobs.Of(s.Job(x.CheckName(s.DB)), s.Seen.UpgradePods)
	found := jobs.Result[protocol.UpgradeCheck](run.Last(naming.ContainerUpgrade))
	if !check.Done || found == nil || s.Upgrade.Closed() {
		return check
	}
	primary, spec := s.Primary(), s.DB.Spec.Upgrade
	volumes := major.Room{
		Instance: primary, Copies: spec != nil && spec.Method == v1.UpgradeCopy,
		Databases: found.Bytes, Catalogs: found.Catalogs, Relations: int64(found.Relations),
		Count: int64(found.Databases),
		Data:  world.WithRoom(space.Volume{}, s.RoomOf(desired.DataVolume, primary)),
	}
	if s.DB.Spec.Storage.WAL != nil {
		wal := world.WithRoom(space.Volume{WAL: true}, s.RoomOf(desired.WALVolume, primary))
		volumes.WAL = &wal
	}
	if why := major.NoRoom(volumes); why != "" {
		return major.Work{Started: true, Failed: why}
	}
	return check
}
