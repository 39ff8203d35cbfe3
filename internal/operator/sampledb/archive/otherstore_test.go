package archive

import (
	"slices"
	"testing"
	"time"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/operator/desired"
	"toban.dev/internal/operator/sampledb/world/worldtest"
	"toban.dev/internal/protocol"
)

// noticed is the SampleDB after the operator has seen that the store is another one, some hours later.
func (s *Topics) noticed() *Topics {
	status := s.BackupStatus()
	s.DB.Status.Backup, s.Now = status, s.Now.Add(2*time.Hour)
	return s
}

// A base backup begins an archive in another store at once, whatever the schedule says.
func TestAnotherStoreBeginsWithABackup(t *testing.T) {
	noon := worldtest.At("2026-11-20 12:00:10")
	for name, c := range map[string]struct {
		schedule string
		edit     func(*v1.SampleDB)
		backups  []v1.DatabaseBackup
		due      time.Time
	}{
		"one a day": {"0 3 * * *", nil, nil, noon},
		"none":      {"none", nil, nil, noon},
		"the status is of a former version": {
			"none", func(db *v1.SampleDB) { db.Status.Backup.Store = "" }, nil, noon,
		},
		"another prefix of the same bucket": {"none", func(db *v1.SampleDB) {
			db.Status.Backup.Store = "s3://outside"
			db.Spec.Backup.Store.S3 = &v1.S3Store{Bucket: "outside", Prefix: "anew"}
		}, []v1.DatabaseBackup{worldtest.BackupIn(worldtest.Outside, "x-20261120-060000", "2026-11-20 06:00:00")},
			noon},
		"it was there before": {
			"none", nil, []v1.DatabaseBackup{worldtest.BackupIn(worldtest.Outside, "x-20261020-030000",
				"2026-10-20 03:00:00")}, noon,
		},
		"one is there": {
			"0 3 * * *", nil, []v1.DatabaseBackup{worldtest.BackupIn(worldtest.Outside, "x-20261120-120010",
				"2026-11-20 12:00:10")},
			time.Time{},
		},
		"other credentials": {"0 3 * * *", func(db *v1.SampleDB) {
			db.Spec.Backup.Store = v1.StoreSpec{Volume: &v1.VolumeStore{Size: "20Gi"}}
		}, nil, time.Time{}},
	} {
		s := topicsOn(worldtest.MovedArchive(c.schedule, func(db *v1.SampleDB) {
			if c.edit != nil {
				c.edit(db)
			}
		}))
		s.Seen.Backups = append(s.Seen.Backups, c.backups...)
		if plan, err := s.backupPlan().decide(); err != nil || !c.due.IsZero() && !plan.Due.IsZero() {
			t.Errorf("%s: before the status says so, one is due at %s (%v)", name, plan.Due, err)
		}
		plan, err := s.noticed().backupPlan().decide()
		if err != nil || !plan.Due.Equal(c.due) || !plan.Due.IsZero() && !plan.Full {
			t.Errorf("%s: one is due at %s, full: %v (%s; %v), want %s", name, plan.Due, plan.Full, plan.Reason, err,
				c.due)
		}
	}
}

// What the status says is about the store that is used now.
func TestTheStatusForgetsTheFormerStore(t *testing.T) {
	s := topicsOn(worldtest.MovedArchive("none")).noticed()
	is := s.BackupStatus()
	if is.Store != "s3://outside" || is.StoreSince == nil || is.LastBackup != "" || is.Earliest != nil ||
		is.Latest != nil || len(is.Windows) > 0 || is.ArchivedLSN != "" || is.LastVerified != "" || len(is.Keys) > 0 ||
		is.Scrub != nil || len(is.Former) > 0 {
		t.Errorf("it says %+v", is)
	}
	again := s.noticed().BackupStatus()
	if !again.StoreSince.Equal(is.StoreSince) {
		t.Errorf("since %s, and later since %s", is.StoreSince, again.StoreSince)
	}
	same := topicsOn(worldtest.MovedArchive("none", func(db *v1.SampleDB) { db.Spec.Backup.Store = v1.StoreSpec{} }))
	volume := same.noticed().DB.Status.Backup
	if volume.StoreSince != nil || volume.LastBackup != worldtest.BackupOnVolume || len(volume.Windows) != 1 {
		t.Errorf("of the same store it says %+v", volume)
	}
}

// An agent that has just been told of another store still says how far it is in the former one.
func TestTheWordOfAnAgentIsAboutAnArchive(t *testing.T) {
	for name, c := range map[string]struct {
		place string
		heard bool
	}{
		"the former store": {"https://x-archive.n.svc:8443/n/x-12345678", false},
		"this one":         {"s3://outside/n/x-12345678", true},
		"a former release": {"", true},
	} {
		s := topicsOn(worldtest.MovedArchive("none"))
		s.Config.Archive = desired.Archive(s.DB, "", desired.VersionsOf(s.Config))
		s.Seen.Answers = map[string]protocol.Status{"x-0": {
			Role: protocol.RolePrimary, Ready: true, Archive: &protocol.ArchiveStatus{Place: c.place, LSN: "0/A"},
		}}
		if got := s.ArchiveState(); (got != nil) != c.heard {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// What is pinned stays, whichever store it was taken into: the store may be the same one by another name, or the second
// one has a copy.
func TestWhatIsPinnedStaysWhicheverStoreItWasTakenInto(t *testing.T) {
	s := topicsOn(worldtest.MovedArchive("none"))
	s.Seen.Backups = append(s.Seen.Backups, worldtest.BackupIn(worldtest.Outside, "x-here", "2026-11-20 12:00:10"))
	for i := range s.Seen.Backups {
		s.Seen.Backups[i].Spec.Keep = true
	}
	got := s.spared(s.ArchivePath()).Pinned
	if !slices.Contains(got, "x-here") || !slices.Contains(got, worldtest.BackupOnVolume) {
		t.Errorf("pinned are %v", got)
	}
}
