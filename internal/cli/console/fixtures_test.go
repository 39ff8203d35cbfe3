package console

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
)

// begun is when the databases of the tests were created. All other times are after that.
var begun = time.Date(2026, 11, 20, 3, 0, 0, 0, time.UTC)

func after(d time.Duration) metav1.Time { return metav1.NewTime(begun.Add(d)) }

func afterp(d time.Duration) *metav1.Time {
	at := after(d)
	return &at
}

func said(kind, status, reason, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: metav1.ConditionStatus(status), Reason: reason, Message: message,
		LastTransitionTime: after(time.Hour)}
}

// database is one of three instances of which all is well, with changes.
func database(namespace, name string, changes ...func(*v1.SampleDB)) v1.SampleDB {
	db := v1.SampleDB{
		TypeMeta: metav1.TypeMeta{APIVersion: v1.GroupVersion.String(), Kind: "SampleDB"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(namespace + "/" + name),
			CreationTimestamp: after(0)},
		Spec: v1.SampleDBSpec{Version: 17, Instances: 3, Storage: v1.StorageSpec{Size: "10Gi"}},
		Status: v1.SampleDBStatus{
			Phase: "Ready", Ready: "3/3", Primary: name + "-0", Term: 4, Version: "17.12",
			InitializedAt: afterp(time.Minute),
			Conditions: []metav1.Condition{
				said("Ready", "True", "Ready", "all 3 instances are ready"),
				said("Available", "True", "PrimaryReady", name+"-0 takes writes"),
				said("Durable", "True", "Durable", "each commit is on 2 of 3 instances"),
				said("Archiving", "True", "Archiving", "the WAL is in the archive up to 0/5000000"),
				said("UpToDate", "True", "UpToDate", "17.12"),
			},
			Backup: &v1.BackupStatus{Version: 17, Earliest: afterp(time.Hour), Latest: afterp(48 * time.Hour),
				LastBackup: name + "-2", LastBackupAt: afterp(25 * time.Hour), LagSeconds: 3,
				ArchivedLSN: "0/5000000", Windows: []v1.RestoreWindow{{Branch: 1, Earliest: afterp(time.Hour)}}},
		},
	}
	for i := range 3 {
		db.Status.InstanceStatuses = append(db.Status.InstanceStatuses, v1.InstanceStatus{
			Name: fmt.Sprintf("%s-%d", name, i), Role: "standby", Ready: true, Voter: true, Version: "17.12",
			Zone: string(rune('a' + i)), Reason: "Ready", Message: "it does what its role asks",
			Volume: &v1.VolumeStatus{Size: "9.7Gi", UsedPercent: int32(40 + i)}})
	}
	db.Status.InstanceStatuses[0].Role = "primary"
	for _, change := range changes {
		change(&db)
	}
	return db
}

// becomes changes a condition, and the phase.
func becomes(phase, kind, status, reason, message string) func(*v1.SampleDB) {
	return func(db *v1.SampleDB) {
		db.Status.Phase = phase
		for i, c := range db.Status.Conditions {
			if c.Type == kind {
				db.Status.Conditions[i] = said(kind, status, reason, message)
				return
			}
		}
		db.Status.Conditions = append(db.Status.Conditions, said(kind, status, reason, message))
	}
}

// leaderless has no primary, and says why none is promoted.
func leaderless(db *v1.SampleDB) {
	db.Status.LastPrimary, db.Status.Primary, db.Status.Refusal = db.Status.Primary, "", "NoQuorum"
	db.Status.InstanceStatuses[0].Role, db.Status.InstanceStatuses[0].Ready = "", false
	becomes("Unavailable", "Available", "False", "NoPrimary", "1 of 3 instances answers, and 2 have to")(db)
	becomes("Unavailable", "Ready", "False", "NoPrimary", "1 of 3 instances answers, and 2 have to")(db)
}

// withAll has readers, poolers, a former version and a full volume.
func withAll(db *v1.SampleDB) {
	db.Spec.Pooler = &v1.PoolerSpec{Instances: 2, ReadOnly: &v1.ReadPoolSpec{Instances: 1}}
	db.Status.Pooler = &v1.PoolerStatus{Ready: 2, ReadOnlyReady: 1}
	db.Status.Readers = &v1.ReadersStatus{Desired: 1, Ready: 1, Instances: []v1.ReaderStatus{
		{Name: naming.Reader(db.Name, 0), Ready: true, Reason: "Ready"}}}
	db.Status.Backup.Former = []v1.FormerArchive{{Version: 16, Windows: []v1.RestoreWindow{
		{Branch: 1, Earliest: afterp(-48 * time.Hour), Latest: afterp(0)}}}}
	days := int32(5)
	db.Status.InstanceStatuses[2].Volume = &v1.VolumeStatus{Size: "9.7Gi", UsedPercent: 91, FullInDays: &days}
	becomes("Ready", "HasRoom", "False", "FillsSoon", "data-"+db.Name+"-2 is full in 5 days")(db)
	db.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubectl-edit", Time: afterp(30 * time.Hour),
		FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:storage":{}}}`)}}
}

// seenOf is what there is of a database: Pods, backups, a drill, a restore and events.
func seenOf(db v1.SampleDB) Seen {
	named := func(name string, d time.Duration) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: db.Namespace, Name: name, CreationTimestamp: after(d)}
	}
	backup := func(name string, d time.Duration, conditions ...metav1.Condition) v1.DatabaseBackup {
		return v1.DatabaseBackup{ObjectMeta: named(name, d), Spec: v1.DatabaseBackupSpec{SampleDB: db.Name},
			Status: v1.DatabaseBackupStatus{Phase: "Completed", StartedAt: afterp(d),
				CompletedAt: afterp(d + 90*time.Second), Type: v1.BackupFull, Size: "3.1Gi", StoredSize: "801Mi",
				Instance:   db.Name + "-1",
				Conditions: append(conditions, said("Complete", "True", "Completed", "in the archive"))}}
	}
	proved := backup(db.Name+"-1", time.Hour, said("Verified", "True", "Verified", "restored and checked"))
	proved.Status.Verification = &v1.VerificationStatus{CompletedAt: afterp(2 * time.Hour),
		RecoveryTime: &metav1.Duration{Duration: 2400 * time.Millisecond}}
	seen := Seen{Databases: []v1.SampleDB{db}, KnowsPods: true, KnowsBackups: true,
		Backups: []v1.DatabaseBackup{proved,
			backup(db.Name+"-2", 25*time.Hour)}}
	for _, i := range db.Status.InstanceStatuses {
		seen.Pods = append(seen.Pods, podOf(db, i.Name, naming.ComponentInstance, i.Role))
	}
	if db.Status.Readers != nil {
		seen.Pods = append(seen.Pods, podOf(db, naming.Reader(db.Name, 0), naming.ComponentReader, "standby"))
	}
	seen.Drills = []v1.FaultDrill{{ObjectMeta: named(db.Name+"-drill", 26*time.Hour),
		Spec: v1.FaultDrillSpec{SampleDB: db.Name, Fault: v1.FaultServerKilled},
		Status: v1.FaultDrillStatus{StruckAt: afterp(26 * time.Hour), CompletedAt: afterp(26*time.Hour + time.Minute),
			Instance: db.Name + "-0", Conditions: []metav1.Condition{said("Passed", "True", "ObjectivesMet",
				"1.1s without writes, nothing lost")}}}}
	seen.Restores = []v1.DatabaseRestore{{ObjectMeta: named(db.Name+"-restore", 27*time.Hour),
		Spec: v1.DatabaseRestoreSpec{SampleDB: db.Name},
		Status: v1.DatabaseRestoreStatus{CompletedAt: afterp(27 * time.Hour), Conditions: []metav1.Condition{
			said("Complete", "False", "Failed", "there is no table orders")}}}}
	event := func(reason, kind, message string, d time.Duration) corev1.Event {
		return corev1.Event{ObjectMeta: named(db.Name+"."+reason, d), Reason: reason, Type: kind, Message: message,
			InvolvedObject: corev1.ObjectReference{APIVersion: v1.GroupVersion.String(), Kind: "SampleDB",
				Namespace: db.Namespace, Name: db.Name, UID: db.UID}}
	}
	seen.Events = []corev1.Event{
		event("PrimaryChanged", "Normal", "from "+db.Name+"-1 to "+db.Name+"-0", 28*time.Hour),
		event("VolumeShort", "Warning", "data-"+db.Name+"-2 is full in 5 days", 29*time.Hour),
	}
	return seen
}

func podOf(db v1.SampleDB, name, component, role string) corev1.Pod {
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: db.Namespace, Name: name, Labels: map[string]string{
		naming.LabelSampleDB: db.Name, naming.LabelComponent: component}},
		Spec: corev1.PodSpec{NodeName: "node-1"}, Status: corev1.PodStatus{Phase: corev1.PodRunning}}
	if role != "" {
		pod.Labels[naming.LabelRole] = role
	}
	return pod
}

// fleetOf are databases of every level.
func fleetOf() []v1.SampleDB {
	return []v1.SampleDB{
		database("shop", "orders", withAll),
		database("shop", "carts", leaderless),
		database("blog", "posts", becomes("Ready", "UpToDate", "Unknown", "NotLooked", "nobody has looked yet")),
		database("blog", "archive", becomes("Updating", "Ready", "False", "Updating", "archive-1 is replaced next")),
		database("lab", "tiny", becomes("Stopped", "Available", "False", "Stopped", "it is stopped")),
		database("lab", "alone", becomes("Ready", "Durable", "False", "SingleInstance", "there is one instance")),
		database("lab", "old", becomes("Ready", "UpToDate", "False", "MinorOutdated", "the image has 17.13")),
		database("lab", "typo", becomes("Blocked", "Ready", "False", "ImageUnusable", "postgres:71 can't be pulled")),
	}
}
