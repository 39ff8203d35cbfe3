package sampledb

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/desired"
	"toban.dev/internal/protocol"
)

// backupOnVolume is the backup that movedArchive has.
const backupOnVolume = "x-20261120-030000"

// outside is the store into which the archive has moved.
var outside = v1.StoreSpec{S3: &v1.S3Store{Bucket: "outside"}}

// movedArchive is a SampleDB whose archive was on a volume, and is in a bucket since noon. Its last backup is of three
// in the morning, and is on the volume.
func movedArchive(schedule string, edit ...func(*v1.SampleDB)) *act {
	db := &v1.SampleDB{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "x", UID: "12345678-9"}}
	db.Spec.Backup = &v1.BackupSpec{Store: outside, Schedule: schedule}
	done, begun := metav1.NewTime(at("2026-11-20 03:05:00")), metav1.NewTime(at("2026-11-01 00:00:00"))
	db.Status.InitializedAt = &begun
	db.Status.Conditions = []metav1.Condition{{Type: v1.ConditionArchiving, Status: metav1.ConditionTrue,
		Reason: v1.ReasonArchiving, LastTransitionTime: begun}}
	s := actOf(core{
		db: db, now: at("2026-11-20 12:00:10"), outcomes: outcomes{initializedAt: &begun},
		config: protocol.Config{Major: 17, FirstMajor: 17, SystemIdentifier: "1"},
	})
	b := backupIn(v1.StoreSpec{}, backupOnVolume, "2026-11-20 03:00:00")
	db.Status.Backup = &v1.BackupStatus{
		Archive: s.archivePath(), Version: 17, ArchivedLSN: "0/9", LastBackup: b.Name, LastBackupAt: &done,
		Earliest: &done, Latest: &done, Windows: []v1.RestoreWindow{{Branch: 1, Earliest: &done}},
		Store: "PersistentVolumeClaim x-archive", LastVerified: b.Name, LastVerifiedAt: &done,
		Keys: []v1.ArchiveKey{{Recipient: "age1"}}, Scrub: &v1.ScrubStatus{At: &done},
	}
	for _, e := range edit {
		e(db)
	}
	s.backup, s.seen.backups = desired.Backup(db), []v1.DatabaseBackup{b}
	return s
}

// backupIn is a complete backup in a store.
func backupIn(store v1.StoreSpec, name, when string) v1.DatabaseBackup {
	done := metav1.NewTime(at(when).Add(5 * time.Minute))
	b := v1.DatabaseBackup{ObjectMeta: metav1.ObjectMeta{
		Name: name, CreationTimestamp: metav1.NewTime(at(when)),
		Labels: map[string]string{naming.LabelOwner: "12345678-9"},
	}}
	b.Status.ID, b.Status.CompletedAt, b.Status.Earliest = name, &done, &done
	b.Status.Archive = &v1.ArchiveReference{Store: store, Path: naming.ArchivePath("n", "x", "12345678-9")}
	b.Status.Conditions = []metav1.Condition{{Type: v1.ConditionComplete, Status: metav1.ConditionTrue}}
	return b
}

// noticed is the SampleDB after the operator has seen that the store is another one, some hours later.
func (s *scope) noticed() *scope {
	status := s.backupStatus()
	s.db.Status.Backup, s.now = status, s.now.Add(2*time.Hour)
	return s
}

// A base backup begins an archive in another store at once, whatever the schedule says.
func TestAnotherStoreBeginsWithABackup(t *testing.T) {
	noon := at("2026-11-20 12:00:10")
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
		}, []v1.DatabaseBackup{backupIn(outside, "x-20261120-060000", "2026-11-20 06:00:00")}, noon},
		"it was there before": {
			"none", nil, []v1.DatabaseBackup{backupIn(outside, "x-20261020-030000", "2026-10-20 03:00:00")}, noon,
		},
		"one is there": {
			"0 3 * * *", nil, []v1.DatabaseBackup{backupIn(outside, "x-20261120-120010", "2026-11-20 12:00:10")},
			time.Time{},
		},
		"other credentials": {"0 3 * * *", func(db *v1.SampleDB) {
			db.Spec.Backup.Store = v1.StoreSpec{Volume: &v1.VolumeStore{Size: "20Gi"}}
		}, nil, time.Time{}},
	} {
		s := scopeOn(movedArchive(c.schedule, func(db *v1.SampleDB) {
			if c.edit != nil {
				c.edit(db)
			}
		}))
		s.seen.backups = append(s.seen.backups, c.backups...)
		if plan, err := s.backupPlan().decide(); err != nil || !c.due.IsZero() && !plan.due.IsZero() {
			t.Errorf("%s: before the status says so, one is due at %s (%v)", name, plan.due, err)
		}
		plan, err := s.noticed().backupPlan().decide()
		if err != nil || !plan.due.Equal(c.due) || !plan.due.IsZero() && !plan.full {
			t.Errorf("%s: one is due at %s, full: %v (%s; %v), want %s", name, plan.due, plan.full, plan.reason, err,
				c.due)
		}
	}
}

// What the status says is about the store that is used now.
func TestTheStatusForgetsTheFormerStore(t *testing.T) {
	s := scopeOn(movedArchive("none")).noticed()
	is := s.backupStatus()
	if is.Store != "s3://outside" || is.StoreSince == nil || is.LastBackup != "" || is.Earliest != nil ||
		is.Latest != nil || len(is.Windows) > 0 || is.ArchivedLSN != "" || is.LastVerified != "" || len(is.Keys) > 0 ||
		is.Scrub != nil || len(is.Former) > 0 {
		t.Errorf("it says %+v", is)
	}
	again := s.noticed().backupStatus()
	if !again.StoreSince.Equal(is.StoreSince) {
		t.Errorf("since %s, and later since %s", is.StoreSince, again.StoreSince)
	}
	same := scopeOn(movedArchive("none", func(db *v1.SampleDB) { db.Spec.Backup.Store = v1.StoreSpec{} }))
	volume := same.noticed().db.Status.Backup
	if volume.StoreSince != nil || volume.LastBackup != backupOnVolume || len(volume.Windows) != 1 {
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
		s := scopeOn(movedArchive("none"))
		s.config.Archive = desired.Archive(s.db, "", desired.VersionsOf(s.config))
		s.seen.answers = map[string]protocol.Status{"x-0": {
			Role: protocol.RolePrimary, Ready: true, Archive: &protocol.ArchiveStatus{Place: c.place, LSN: "0/A"},
		}}
		if got := s.archiveState(); (got != nil) != c.heard {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// What is pinned stays, whichever store it was taken into: the store may be the same one by another name, or the second
// one has a copy.
func TestWhatIsPinnedStaysWhicheverStoreItWasTakenInto(t *testing.T) {
	s := scopeOn(movedArchive("none"))
	s.seen.backups = append(s.seen.backups, backupIn(outside, "x-here", "2026-11-20 12:00:10"))
	for i := range s.seen.backups {
		s.seen.backups[i].Spec.Keep = true
	}
	got := s.spared(s.archivePath()).Pinned
	if !slices.Contains(got, "x-here") || !slices.Contains(got, backupOnVolume) {
		t.Errorf("pinned are %v", got)
	}
}

// A restore in place reads the store that is used now. A backup of another one is not there, whatever its folder.
func TestARestoreInPlaceReadsTheStoreInUse(t *testing.T) {
	s, model := scopeOn(movedArchive("none")), newStory(t, newShared(t), 1)
	s.seen.backups = append(s.seen.backups, backupIn(outside, "x-here", "2026-11-20 12:00:10"))
	for i := range s.seen.backups {
		model.put(kindBackup, &s.seen.backups[i])
	}
	s.effects = model.reconciler.effects()
	source, err := s.ownSource(t.Context(), v1.RestoreSpec{Backup: "x-here"})
	if err != nil || source.Backup != "x-here" || source.Archive.Store.S3 == nil {
		t.Errorf("of one that is there it reads %+v (%v)", source, err)
	}
	_, err = s.ownSource(t.Context(), v1.RestoreSpec{Backup: backupOnVolume})
	var is *problem
	if !errors.As(err, &is) || is.reason != v1.ReasonRestoreSourceNotFound ||
		!strings.Contains(is.message, "is in another store") {
		t.Errorf("of one on the volume: %v", err)
	}
}
