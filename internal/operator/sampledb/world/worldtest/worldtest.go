// Package worldtest has SampleDBs for the tests of more than one topic.
package worldtest

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/desired"
	"toban.dev/internal/operator/sampledb/world"
	"toban.dev/internal/protocol"
)

// Act knows this, and can do nothing.
func Act(c world.Core) *world.Act { return &world.Act{World: world.New(&c), Effects: &world.Effects{}} }

// ThreeOf is a SampleDB of three instances whose Pods run, with what their agents answer; nil for one that does not.
func ThreeOf(answers ...*protocol.Status) *world.Act {
	s := Act(world.Core{DB: &v1.SampleDB{ObjectMeta: metav1.ObjectMeta{Name: "x"}}, Now: time.Unix(1e9, 0)})
	s.Seen.Answers, s.Seen.Pods = map[string]protocol.Status{}, map[int]*corev1.Pod{}
	for i, a := range answers {
		name := fmt.Sprintf("x-%d", i)
		s.Config.Members = append(s.Config.Members, protocol.Member{Name: name})
		s.Seen.Pods[i] = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.PodStatus{
			Phase: corev1.PodRunning, PodIP: "10.1.0.1",
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
		}}
		if a != nil {
			a.Name = name
			s.Seen.Answers[name] = *a
		}
	}
	return s
}

// Was gives the status a condition as it was since a time ago.
func Was(s *world.Act, kind string, status metav1.ConditionStatus, reason string, ago time.Duration) *world.Act {
	s.DB.Status.Conditions = append(s.DB.Status.Conditions, metav1.Condition{
		Type: kind, Status: status, Reason: reason, LastTransitionTime: metav1.NewTime(s.Now.Add(-ago)),
	})
	return s
}

// Slack is an agent that says how late things come.
func Slack(by time.Duration) *protocol.Status { return &protocol.Status{Slack: &by} }

// Emptied is a SampleDB x of one instance whose volume is new, with an archive.
func Emptied() *world.Act {
	s := Act(world.Core{DB: &v1.SampleDB{ObjectMeta: metav1.ObjectMeta{Name: "x"}}, Now: time.Unix(1e9, 0)})
	s.Backup = &v1.BackupSpec{
		WhenDataIsLost: v1.DataLostRestore, MaxLag: &metav1.Duration{Duration: 10 * time.Second},
	}
	at := metav1.NewTime(s.Now)
	s.Config = protocol.Config{
		SystemIdentifier: "7300000000000000001", Major: 17, Members: []protocol.Member{{Name: "x-0"}},
	}
	s.DB.Status.Backup = &v1.BackupStatus{
		Archive: s.ArchivePath(), Version: 17, LastBackup: "x-1", ArchivedLSN: "0/5000000", Latest: &at,
	}
	s.Seen.Claims = map[int]*corev1.PersistentVolumeClaim{
		0: {Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound}},
	}
	s.Seen.Pods = map[int]*corev1.Pod{0: {}}
	s.Seen.Answers = map[string]protocol.Status{
		"x-0": {Name: "x-0", Data: protocol.DataEmpty, Election: protocol.Election{Voter: "x-0.b"}},
	}
	return s
}

// BackupOnVolume is the backup that MovedArchive has.
const BackupOnVolume = "x-20261120-030000"

// Outside is the store into which the archive has moved.
var Outside = v1.StoreSpec{S3: &v1.S3Store{Bucket: "outside"}}

// MovedArchive is a SampleDB whose archive was on a volume, and is in a bucket since noon. Its last backup is of three
// in the morning, and is on the volume.
func MovedArchive(schedule string, edit ...func(*v1.SampleDB)) *world.Act {
	db := &v1.SampleDB{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "x", UID: "12345678-9"}}
	db.Spec.Backup = &v1.BackupSpec{Store: Outside, Schedule: schedule}
	done, begun := metav1.NewTime(At("2026-11-20 03:05:00")), metav1.NewTime(At("2026-11-01 00:00:00"))
	db.Status.InitializedAt = &begun
	db.Status.Conditions = []metav1.Condition{{Type: v1.ConditionArchiving, Status: metav1.ConditionTrue,
		Reason: v1.ReasonArchiving, LastTransitionTime: begun}}
	s := Act(world.Core{
		DB: db, Now: At("2026-11-20 12:00:10"), Outcomes: world.Outcomes{InitializedAt: &begun},
		Config: protocol.Config{Major: 17, FirstMajor: 17, SystemIdentifier: "1"},
	})
	b := BackupIn(v1.StoreSpec{}, BackupOnVolume, "2026-11-20 03:00:00")
	db.Status.Backup = &v1.BackupStatus{
		Archive: s.ArchivePath(), Version: 17, ArchivedLSN: "0/9", LastBackup: b.Name, LastBackupAt: &done,
		Earliest: &done, Latest: &done, Windows: []v1.RestoreWindow{{Branch: 1, Earliest: &done}},
		Store: "PersistentVolumeClaim x-archive", LastVerified: b.Name, LastVerifiedAt: &done,
		Keys: []v1.ArchiveKey{{Recipient: "age1"}}, Scrub: &v1.ScrubStatus{At: &done},
	}
	for _, e := range edit {
		e(db)
	}
	s.Backup, s.Seen.Backups = desired.Backup(db), []v1.DatabaseBackup{b}
	return s
}

// BackupIn is a complete backup in a store.
func BackupIn(store v1.StoreSpec, name, when string) v1.DatabaseBackup {
	done := metav1.NewTime(At(when).Add(5 * time.Minute))
	b := v1.DatabaseBackup{ObjectMeta: metav1.ObjectMeta{
		Name: name, CreationTimestamp: metav1.NewTime(At(when)),
		Labels: map[string]string{naming.LabelOwner: "12345678-9"},
	}}
	b.Status.ID, b.Status.CompletedAt, b.Status.Earliest = name, &done, &done
	b.Status.Archive = &v1.ArchiveReference{Store: store, Path: naming.ArchivePath("n", "x", "12345678-9")}
	b.Status.Conditions = []metav1.Condition{{Type: v1.ConditionComplete, Status: metav1.ConditionTrue}}
	return b
}

// At is a time in UTC.
func At(text string) time.Time {
	t, err := time.Parse("2006-01-02 15:04:05", text)
	if err != nil {
		panic(err)
	}
	return t
}

// OfTwoSides is a database that is in a step of a blue/green upgrade.
func OfTwoSides(step string) *world.Act {
	return Act(world.Core{DB: &v1.SampleDB{
		ObjectMeta: metav1.ObjectMeta{Name: "x"},
		Status: v1.SampleDBStatus{Upgrade: &v1.UpgradeStatus{
			To: 18, Step: step, Sides: &v1.SidesStatus{Step: step, Serves: v1.SideBlue},
		}},
	}, Config: protocol.Config{SystemIdentifier: "7300000000000000001", Major: 17}})
}

// Campaigned is an instance without a leader that has campaigned in vain.
func Campaigned(times int, reason string) *protocol.Status {
	return &protocol.Status{
		Role: protocol.RoleStandby, Data: protocol.DataPresent, InVain: times, Reason: reason, Message: "as it is",
	}
}
