package api

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/limits"
	"toban.dev/internal/operator/order"
	"toban.dev/internal/operator/order/databasebackup"
	"toban.dev/internal/protocol"
)

func archived(db *v1.SampleDB) {
	if b := db.Spec.Backup; b == nil || b.None {
		db.Spec.Backup = &v1.BackupSpec{}
	}
}

func withoutBackup(db *v1.SampleDB) { db.Spec.Backup = &v1.BackupSpec{None: true} }

func daily(schedule string) func(*v1.SampleDB) {
	return func(db *v1.SampleDB) { db.Spec.Backup = &v1.BackupSpec{Schedule: schedule} }
}

// works is what a primary says of an archive that works.
var works = protocol.ArchiveStatus{LSN: "0/5000000"}

// archive lets the primary of a SampleDB say how its archive is.
func (w *world) archive(db *v1.SampleDB, state *protocol.ArchiveStatus) *v1.SampleDB {
	w.Helper()
	w.agents.change("10.1.0.1", func(s *protocol.Status) { s.Archive = state })
	return w.reconcile(db)
}

// backupPods answers for the Pods of backups.
type backupPods struct{ progress *protocol.BackupProgress }

func (p *backupPods) Progress(context.Context, string, string, protocol.Config) (protocol.BackupProgress, error) {
	if p.progress == nil {
		return protocol.BackupProgress{}, errors.New("nobody listens")
	}
	return *p.progress, nil
}

// taker is the operator's other half, made anew for each reconcile: what it knows is what it reads.
type taker struct {
	*world
	pods *backupPods
	// turns bounds how many run at once, nil for any number.
	turns *limits.Turns
	// cuts is told that snapshots are cut.
	cuts *cutter
}

func (w *world) taker() *taker { return &taker{world: w, pods: &backupPods{}} }

// base is what the controllers of orders have in common.
func (w *world) base() order.Base {
	return order.Base{
		Client: w.reconciler.Client, Reader: w.reconciler.Reader, Settings: w.reconciler.Settings, Events: w.events,
		Now: func() time.Time { return w.now },
	}
}

func (k *taker) take(b *v1.DatabaseBackup) *v1.DatabaseBackup {
	k.Helper()
	k.now = k.now.Add(10 * time.Second)
	_, err := k.controller().Reconcile(k.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(b)})
	k.must(err)
	now := &v1.DatabaseBackup{}
	k.read(b.Name, now)
	return now
}

func (k *taker) controller() *databasebackup.Reconciler {
	return &databasebackup.Reconciler{
		Base:        k.base(),
		Pods:        k.pods,
		Credentials: k.reconciler.Credentials,
		Turns:       k.turns,
		Cutter:      k.cuts,
	}
}

// ask creates a DatabaseBackup and reconciles it once.
func (k *taker) ask(name, db string, modify ...func(*v1.DatabaseBackup)) *v1.DatabaseBackup {
	k.Helper()
	b := &v1.DatabaseBackup{
		ObjectMeta: metav1.ObjectMeta{Namespace: k.namespace, Name: name},
		Spec:       v1.DatabaseBackupSpec{SampleDB: db, Deadline: metav1.Duration{Duration: 24 * time.Hour}},
	}
	for _, m := range modify {
		m(b)
	}
	k.must(k.api.Create(k.Context(), b))
	return k.take(b)
}

func (k *taker) expectComplete(b *v1.DatabaseBackup, status metav1.ConditionStatus, reason, phase string) string {
	k.Helper()
	c := meta.FindStatusCondition(b.Status.Conditions, v1.ConditionComplete)
	if c == nil || c.Status != status || c.Reason != reason || b.Status.Phase != phase {
		k.Fatalf("the backup is %s: %+v, want %s for %s", b.Status.Phase, c, status, reason)
	}
	return c.Message
}

// pod makes a Pod of the backup's Job, as Kubernetes does.
func (k *taker) pod(b *v1.DatabaseBackup, name string) *corev1.Pod {
	k.Helper()
	job := &batchv1.Job{}
	k.read(b.Name, job)
	pod := &corev1.Pod{ObjectMeta: *job.Spec.Template.ObjectMeta.DeepCopy(), Spec: *job.Spec.Template.Spec.DeepCopy()}
	pod.Namespace, pod.Name = k.namespace, name
	pod.OwnerReferences = []metav1.OwnerReference{
		*metav1.NewControllerRef(job, batchv1.SchemeGroupVersion.WithKind("Job")),
	}
	k.must(k.api.Create(k.Context(), pod))
	k.phase(pod, corev1.PodRunning, nil)
	return pod
}

// phase sets a Pod's phase; with a result it has ended and left that.
func (k *taker) phase(pod *corev1.Pod, phase corev1.PodPhase, result *protocol.BackupResult) {
	k.Helper()
	pod.Status.Phase, pod.Status.PodIP = phase, "10.9.0.1"
	pod.Status.PodIPs = []corev1.PodIP{{IP: "10.9.0.1"}}
	if result != nil {
		text, err := json.Marshal(result)
		k.must(err)
		code := int32(0)
		if result.Error != "" {
			code = 1
		}
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
			Name: naming.ContainerBackup, Image: "x", ImageID: "x",
			State: corev1.ContainerState{
				Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Message: string(text)},
			},
		}}
	}
	k.must(k.api.Status().Update(k.Context(), pod))
}

// failJob ends a Job as Kubernetes does when no more Pods are tried.
func (k *taker) failJob(name, reason string) {
	k.Helper()
	k.failAt(name, reason, metav1.Now())
}

// failLater has a Job fail at a moment.
func (k *taker) failLater(name string, at time.Time) {
	k.Helper()
	k.failAt(name, "BackoffLimitExceeded", metav1.NewTime(at).Rfc3339Copy())
}

func (k *taker) failAt(name, reason string, now metav1.Time) {
	k.Helper()
	job := &batchv1.Job{}
	k.read(name, job)
	job.Status.StartTime, job.Status.Failed = &now, 4
	job.Status.Conditions = []batchv1.JobCondition{
		{Type: batchv1.JobFailureTarget, Status: corev1.ConditionTrue, Reason: reason},
		{Type: batchv1.JobFailed, Status: corev1.ConditionTrue, Reason: reason, LastTransitionTime: now},
	}
	k.must(k.api.Status().Update(k.Context(), job))
}

var taken = protocol.BackupResult{
	ID: "20261120T031500Z-3f2a", Instance: "x-1", StartLSN: "0/4000028", StopLSN: "0/4000100", ServerVersion: "17.6",
	SystemIdentifier: identifier, Bytes: 25 << 20, Stored: 4 << 20,
	Earliest: time.Date(2026, 11, 1, 3, 0, 0, 0, time.UTC),
}

func TestAnArchiveIsMadeUnlessTheSpecDoesWithout(t *testing.T) {
	w := newWorld(t)
	without := w.started("plain", withoutBackup)
	w.expect(without, v1.ConditionArchiving, metav1.ConditionFalse, v1.ReasonNoArchive)
	w.expect(without, v1.ConditionReady, metav1.ConditionTrue, v1.ReasonReady)
	for name, object := range map[string]client.Object{
		"plain-backup":  &corev1.ConfigMap{},
		"plain-archive": &appsv1.Deployment{},
	} {
		if w.find(name, object) {
			t.Errorf("there is a %T %s with backup.none", object, name)
		}
	}
	db := w.started("x")
	for _, object := range []client.Object{
		&appsv1.Deployment{}, &corev1.Service{}, &corev1.PersistentVolumeClaim{}, &networkingv1.NetworkPolicy{},
	} {
		w.read("x-archive", object)
		if _, isClaim := object.(*corev1.PersistentVolumeClaim); isClaim == metav1.IsControlledBy(object, db) {
			t.Errorf("%T goes with the SampleDB: %v", object, !isClaim)
		}
	}
	w.read("x-backup", &corev1.ConfigMap{})
	last := w.agents.configs[len(w.agents.configs)-1]
	if a := last.Archive; a == nil || a.Owner != string(db.UID) || a.Bucket.CA == "" ||
		!strings.HasPrefix(a.Path, w.namespace+"/x-") {
		t.Errorf("the agents were told %+v", a)
	}
	w.expect(db, v1.ConditionArchiving, metav1.ConditionFalse, v1.ReasonArchiveStarting)
	if m := w.expect(db, v1.ConditionScheduled, metav1.ConditionTrue,
		v1.ReasonScheduled); !strings.Contains(m, "* * *") {
		t.Errorf("it does not say when backups are taken: %s", m)
	}
	// Taken away, the server goes and the volume stays.
	db = w.edit(db, withoutBackup)
	if w.find("x-archive", &appsv1.Deployment{}) {
		t.Error("the server still runs")
	}
	w.read("x-archive", &corev1.PersistentVolumeClaim{})
	w.expect(db, v1.ConditionArchiving, metav1.ConditionFalse, v1.ReasonNoArchive)
	if meta.FindStatusCondition(db.Status.Conditions, v1.ConditionScheduled) != nil || db.Status.Backup != nil {
		t.Errorf("the status still speaks of an archive: %+v", db.Status)
	}
}

func TestArchivingSaysWhatThePrimarySays(t *testing.T) {
	w := newWorld(t)
	db := w.started("x", archived)
	for _, c := range []struct {
		state  protocol.ArchiveStatus
		status metav1.ConditionStatus
		reason string
		words  string
	}{
		{works, metav1.ConditionTrue, v1.ReasonArchiving, ""},
		{
			protocol.ArchiveStatus{LSN: "0/6000000", LagSeconds: 100, LagBytes: 1 << 30}, metav1.ConditionFalse,
			v1.ReasonArchiveBehind, "70 s",
		},
		{
			protocol.ArchiveStatus{Reason: protocol.ArchiveFailing, Error: "access denied"}, metav1.ConditionFalse,
			v1.ReasonArchiveFailing, "access denied",
		},
		{
			protocol.ArchiveStatus{Reason: protocol.ArchiveFull, Error: "no space left"}, metav1.ConditionFalse,
			v1.ReasonArchiveFull, "spec.backup.retention",
		},
		{
			protocol.ArchiveStatus{Reason: protocol.ArchiveTaken, Error: "it is y's"}, metav1.ConditionFalse,
			v1.ReasonArchiveTaken, "it is y's",
		},
		{
			protocol.ArchiveStatus{Reason: protocol.ArchiveAhead, Error: "it has more"},
			metav1.ConditionFalse, v1.ReasonArchiveAhead, "kubectl toban restore x --to latest",
		},
		{
			protocol.ArchiveStatus{Reason: protocol.ArchiveUnfit, Error: "it ignores If-None-Match"},
			metav1.ConditionFalse, v1.ReasonArchiveStoreUnfit, "If-None-Match",
		},
		{
			protocol.ArchiveStatus{LSN: "0/7000000", Gap: "from 0/6000000 to 0/6800000"}, metav1.ConditionFalse,
			v1.ReasonArchiveGap, "from 0/6000000",
		},
		{protocol.ArchiveStatus{}, metav1.ConditionFalse, v1.ReasonArchiveStarting, ""},
	} {
		db = w.archive(db, &c.state)
		if words := w.expect(db, v1.ConditionArchiving, c.status, c.reason); !strings.Contains(words, c.words) {
			t.Errorf("%s says %q", c.reason, words)
		}
		w.expect(db, v1.ConditionReady, metav1.ConditionTrue, v1.ReasonReady)
	}
	if b := db.Status.Backup; b.ArchivedLSN != "0/7000000" || b.Latest == nil ||
		!strings.HasPrefix(b.Archive, w.namespace+"/x-") {
		t.Errorf("the status has %+v", b)
	}
	w.agents.answers = map[string]protocol.Status{}
	db = w.reconcile(db)
	w.expect(db, v1.ConditionArchiving, metav1.ConditionUnknown, v1.ReasonUnknown)
}

func (w *world) backups() []string {
	w.Helper()
	var all v1.DatabaseBackupList
	w.must(w.api.List(w.Context(), &all, client.InNamespace(w.namespace)))
	var names []string
	for _, b := range all.Items {
		names = append(names, b.Name)
	}
	slices.Sort(names)
	return names
}

// The first backup is made once, whatever happens between making and noting it.
func TestTheFirstBackupIsTakenAsSoonAsTheArchiveWorks(t *testing.T) {
	w := newWorld(t)
	db := w.started("x", archived)
	if got := w.backups(); len(got) > 0 {
		t.Fatalf("before the archive works there are %v", got)
	}
	state := works
	db = w.archive(db, &state)
	db = w.reconcile(db)
	first := w.backups()
	if len(first) != 1 || !strings.HasPrefix(first[0], "x-20") {
		t.Fatalf("there are %v", first)
	}
	b := &v1.DatabaseBackup{}
	w.read(first[0], b)
	if len(b.OwnerReferences) > 0 || b.Labels[naming.LabelOwner] != string(db.UID) {
		t.Errorf("it would go with the SampleDB: %+v", b.ObjectMeta)
	}
	w.rests(db)
	if got := w.backups(); !slices.Equal(got, first) {
		t.Errorf("there are %v", got)
	}
}

func TestMissedRunsAreCaughtUpOnce(t *testing.T) {
	w := newWorld(t)
	k := w.taker()
	db := w.started("x", daily("@hourly"))
	state := works
	db = w.archive(db, &state)
	db = w.reconcile(db)
	b := &v1.DatabaseBackup{}
	w.read(w.backups()[0], b)
	k.complete(b)
	db = w.reconcile(db)
	if s := db.Status.Backup; s.LastBackup != b.Name || s.LastBackupAt == nil ||
		s.Earliest == nil || s.NextBackupAt == nil {
		t.Errorf("the status has %+v", s)
	}
	w.expect(db, v1.ConditionScheduled, metav1.ConditionTrue, v1.ReasonScheduled)
	w.now = w.now.Add(50 * time.Hour) // the operator was away
	for range 3 {
		db = w.reconcile(db)
	}
	if got := w.backups(); len(got) != 2 {
		t.Errorf("after two days there are %v", got)
	}
}

// SampleDBs with one schedule do not begin in the same second, each has its own time, and one may ask for exact times.
func TestBackupsOfOneScheduleAreSpread(t *testing.T) {
	w := newWorld(t)
	db := w.started("x", daily("0 3 * * *"))
	state := works
	db = w.archive(db, &state)
	db = w.reconcile(db)
	next := db.Status.Backup.NextBackupAt.Time
	run, own := next.Truncate(time.Hour), next.UTC().Format("15:04:05")
	if run.Hour() != 3 || next.Sub(run) >= 15*time.Minute {
		t.Fatalf("the next one is at %s", next)
	}
	w.taker().complete(w.backup(w.backups()[0]))
	w.now = next.Add(-time.Minute)
	db = w.reconcile(db)
	if got := w.backups(); len(got) != 1 {
		t.Errorf("before its time there are %v", got)
	}
	w.now = next
	db = w.reconcile(db)
	if got := w.backups(); !slices.Contains(got, naming.ScheduledBackup("x", next)) {
		t.Errorf("at %s there are %v", next, got)
	}
	db = w.edit(db, func(db *v1.SampleDB) { db.Spec.Backup.Spread = &metav1.Duration{} })
	if got := db.Status.Backup.NextBackupAt.UTC().Format("15:04:05"); got != "03:00:00" {
		t.Errorf("with spread: 0s the next one is at %s", got)
	}
	apart := false
	for _, name := range []string{"a", "b"} {
		other := w.started(name, daily("0 3 * * *"))
		apart = apart || other.Status.Backup.NextBackupAt.UTC().Format("15:04:05") != own
	}
	if !apart {
		t.Errorf("three SampleDBs begin at %s", own)
	}
}

// A schedule that is not kept is told, with why, until a backup is complete.
func TestABackupThatIsOverdueIsTold(t *testing.T) {
	w := newWorld(t)
	k := w.taker()
	db := w.started("x", daily("@hourly"))
	state := works
	db = w.archive(db, &state)
	db = w.reconcile(db)
	k.complete(w.backup(w.backups()[0]))
	w.now = w.now.Add(75 * time.Minute)
	db = w.reconcile(db)
	second := w.backup(w.backups()[1])
	w.expect(db, v1.ConditionScheduled, metav1.ConditionTrue, v1.ReasonScheduled)
	second = k.take(second)
	k.phase(k.pod(second, "a"), corev1.PodFailed, nil)
	job := &batchv1.Job{}
	w.read(second.Name, job)
	now := metav1.Now()
	job.Status.StartTime = &now
	for _, kind := range []batchv1.JobConditionType{batchv1.JobFailureTarget, batchv1.JobFailed} {
		job.Status.Conditions = append(job.Status.Conditions, batchv1.JobCondition{
			Type: kind, Status: corev1.ConditionTrue,
			Reason: batchv1.JobReasonBackoffLimitExceeded, Message: "no route",
		})
	}
	w.must(w.api.Status().Update(t.Context(), job))
	k.take(second)
	w.now = w.now.Add(2 * time.Hour)
	db = w.reconcile(db)
	words := w.expect(db, v1.ConditionScheduled, metav1.ConditionFalse, v1.ReasonBackupOverdue)
	if !strings.Contains(words, second.Name+" has failed") {
		t.Errorf("it says %q", words)
	}
	w.expect(db, v1.ConditionReady, metav1.ConditionTrue, v1.ReasonReady)
	if events := w.drainEvents(); !strings.Contains(events, "BackupOverdue") {
		t.Errorf("events: %s", events)
	}
	names := w.backups()
	k.complete(w.backup(names[len(names)-1]))
	db = w.reconcile(db)
	w.expect(db, v1.ConditionScheduled, metav1.ConditionTrue, v1.ReasonScheduled)
}

func (w *world) backup(name string) *v1.DatabaseBackup {
	w.Helper()
	b := &v1.DatabaseBackup{}
	w.read(name, b)
	return b
}

func TestAGapAsksForABackup(t *testing.T) {
	w := newWorld(t)
	k := w.taker()
	db := w.started("x", archived)
	state := works
	db = w.archive(db, &state)
	db = w.reconcile(db)
	b := &v1.DatabaseBackup{}
	w.read(w.backups()[0], b)
	k.complete(b)
	w.now = w.now.Add(time.Hour)
	db = w.archive(db, &protocol.ArchiveStatus{LSN: "0/7000000", Gap: "from 0/5000000 to 0/6000000"})
	db = w.reconcile(db)
	db = w.reconcile(db)
	names := w.backups()
	if len(names) != 2 {
		t.Fatalf("there are %v", names)
	}
	w.read(names[1], b)
	later := taken
	later.StartLSN, later.StopLSN = "0/7000028", "0/7000100"
	k.completeWith(b, later)
	db = w.reconcile(db)
	w.expect(db, v1.ConditionArchiving, metav1.ConditionTrue, v1.ReasonArchiving)
}

func TestABadScheduleIsToldAndLocksNothing(t *testing.T) {
	w := newWorld(t)
	db := w.started("x", daily("@daily"))
	db = w.edit(db, daily("every day"))
	state := works
	db = w.archive(db, &state)
	db = w.reconcile(db)
	words := w.expect(db, v1.ConditionScheduled, metav1.ConditionFalse, v1.ReasonScheduleInvalid)
	if !strings.Contains(words, `"every day"`) {
		t.Errorf("it says %q", words)
	}
	w.expect(db, v1.ConditionArchiving, metav1.ConditionTrue, v1.ReasonArchiving)
	w.expect(db, v1.ConditionReady, metav1.ConditionTrue, v1.ReasonReady)
	if len(w.backups()) != 1 {
		t.Errorf("there are %v", w.backups())
	}
	db = w.edit(db,
		func(db *v1.SampleDB) { db.Spec.Backup.Schedule, db.Spec.Backup.TimeZone = "0 3 * * *", "Asia/Tokyo" })
	w.expect(db, v1.ConditionScheduled, metav1.ConditionTrue, v1.ReasonScheduled)
	if events := w.drainEvents(); !strings.Contains(events, "ScheduleInvalid") {
		t.Errorf("events: %s", events)
	}
}

// complete plays a backup to its end.
func (k *taker) complete(b *v1.DatabaseBackup) *v1.DatabaseBackup { return k.completeWith(b, taken) }

func (k *taker) completeWith(b *v1.DatabaseBackup, result protocol.BackupResult) *v1.DatabaseBackup {
	k.Helper()
	b = k.take(b)
	k.expectComplete(b, metav1.ConditionFalse, v1.ReasonRunning, "Running")
	pod := k.pod(b, b.Name+"-a")
	k.phase(pod, corev1.PodSucceeded, &result)
	b = k.take(b)
	k.expectComplete(b, metav1.ConditionTrue, v1.ReasonCompleted, "Completed")
	return b
}

// ready is a SampleDB whose archive works, and whose first backup is over.
func (w *world) ready(name string, modify ...func(*v1.SampleDB)) (*taker, *v1.SampleDB) {
	w.Helper()
	k := w.taker()
	db := w.started(name, append(modify, instances(2), archived)...)
	state := works
	db = w.archive(db, &state)
	db = w.reconcile(db)
	first := &v1.DatabaseBackup{}
	w.read(w.backups()[0], first)
	k.complete(first)
	w.drainEvents()
	return k, db
}

// checkJob checks the Job of a backup that may take a day.
func (k *taker) checkJob(b *v1.DatabaseBackup) {
	k.Helper()
	job := &batchv1.Job{}
	k.read(b.Name, job)
	if !metav1.IsControlledBy(job, b) || *job.Spec.ActiveDeadlineSeconds > 24*3600 ||
		*job.Spec.ActiveDeadlineSeconds < 23*3600 {
		k.Errorf("the Job is %+v", job.Spec)
	}
}

// Each reconcile is of an operator that was just started: at every step.
func TestADatabaseBackupBecomesAJobAndItsResultTheStatus(t *testing.T) {
	w := newWorld(t)
	k, db := w.ready("x")
	b := k.ask("now", "x")
	k.expectComplete(b, metav1.ConditionFalse, v1.ReasonRunning, "Running")
	k.checkJob(b)
	if b.Status.Archive == nil || b.Status.Archive.Path != db.Status.Backup.Archive || b.Status.StartedAt == nil {
		t.Errorf("the status is %+v", b.Status)
	}
	pod := k.pod(b, "now-a")
	k.pods.progress = &protocol.BackupProgress{
		Instance: "x-1", Step: "copies the data of x-1", Done: 42, Total: 100, Rate: 7,
	}
	b = k.take(b)
	if words := k.expectComplete(b, metav1.ConditionFalse, v1.ReasonRunning,
		"Running"); words != "copies the data of x-1" {
		t.Errorf("it says %q", words)
	}
	if b.Status.Done != "42%" || b.Status.Instance != "x-1" || b.Status.Attempts != 1 {
		t.Errorf("the status is %+v", b.Status)
	}
	k.pods.progress = nil
	k.phase(pod, corev1.PodSucceeded, &taken)
	b = k.take(b)
	k.expectComplete(b, metav1.ConditionTrue, v1.ReasonCompleted, "Completed")
	if s := b.Status; s.ID != taken.ID || s.StopLSN != taken.StopLSN || s.Size != "25Mi" || s.StoredSize != "4Mi" ||
		s.CompletedAt == nil || s.Done != "100%" {
		t.Errorf("the status is %+v", s)
	}
	events := w.drainEvents()
	for _, e := range []string{"Started", "Completed"} {
		if strings.Count(events, "Normal "+e) != 1 {
			t.Errorf("%s is not told once: %s", e, events)
		}
	}
}

// Which one has all and which has what has changed, the Pod knows.
func TestAnIncrementalBackupSaysWhatItIsTheChangeFrom(t *testing.T) {
	w := newWorld(t)
	k, db := w.ready("x")
	db = w.edit(db, func(db *v1.SampleDB) { db.Spec.Backup.Incremental = &v1.IncrementalSpec{} })
	if n := db.Spec.Backup.Incremental.FullEvery; n != 7 {
		t.Errorf("by default one of %d is a full one", n)
	}
	if p := w.agents.told().Parameters["summarize_wal"]; p != "on" {
		t.Errorf("summarize_wal is %q", p)
	}
	settings := &corev1.ConfigMap{}
	w.read("x-backup", settings)
	if !strings.Contains(settings.Data[naming.KeyBackup], `"fullEvery": 7`) {
		t.Errorf("the Pods of backups are told %s", settings.Data[naming.KeyBackup])
	}
	result := taken
	result.Parent, result.Warning = "20261119T031500Z-0000", "older backups could not be removed"
	b := k.completeWith(k.ask("now", "x"), result)
	if b.Status.Type != v1.BackupIncremental || b.Status.Parent != result.Parent {
		t.Errorf("the status is %+v", b.Status)
	}
	b = k.completeWith(k.ask("all", "x", func(b *v1.DatabaseBackup) { b.Spec.Full = true }), taken)
	job := &batchv1.Job{}
	w.read("all", job)
	if !slices.Contains(job.Spec.Template.Spec.Containers[0].Command, "--full") ||
		b.Status.Type != v1.BackupFull || b.Status.Parent != "" {
		t.Errorf("it is %+v, by %v", b.Status, job.Spec.Template.Spec.Containers[0].Command)
	}
}

func TestABackupThatIsOverStaysAsItIs(t *testing.T) {
	w := newWorld(t)
	k, db := w.ready("x")
	b := k.complete(k.ask("now", "x"))
	job := &batchv1.Job{}
	w.read("now", job)
	w.writes.take()
	k.take(b)
	if writes := w.writes.take(); len(writes) > 0 {
		t.Errorf("it is over, and it writes %v", writes)
	}
	// The Job goes in time, and nothing begins anew.
	w.must(w.api.Delete(t.Context(), job, client.PropagationPolicy(metav1.DeletePropagationBackground)))
	k.expectComplete(k.take(b), metav1.ConditionTrue, v1.ReasonCompleted, "Completed")
	db = w.reconcile(db)
	if db.Status.Backup.LastBackup != "now" {
		t.Errorf("the SampleDB's last backup is %+v", db.Status.Backup)
	}
}

// The Job was created, and the operator ended before it could say so.
func TestAJobThatIsThereAlreadyIsTakenOn(t *testing.T) {
	w := newWorld(t)
	k, _ := w.ready("x")
	b := k.ask("now", "x")
	b.Status = v1.DatabaseBackupStatus{}
	w.must(w.api.Status().Update(t.Context(), b))
	w.writes.take()
	b = k.take(b)
	k.expectComplete(b, metav1.ConditionFalse, v1.ReasonRunning, "Running")
	if writes := w.writes.take(); len(writes) != 1 || !strings.HasSuffix(writes[0], "/status") {
		t.Errorf("it writes %v", writes)
	}
	if b.Status.Archive == nil || b.Status.StartedAt == nil {
		t.Errorf("the status is %+v", b.Status)
	}
}

func TestAFailedPodIsTriedAgainAndAFailedJobIsNot(t *testing.T) {
	w := newWorld(t)
	k, _ := w.ready("x")
	b := k.ask("now", "x")
	pod := k.pod(b, "now-a")
	b = k.take(b)
	k.phase(pod, corev1.PodFailed, &protocol.BackupResult{Error: "the standby was promoted"})
	b = k.take(b)
	if words := k.expectComplete(b, metav1.ConditionFalse, v1.ReasonRunning, "Running"); !strings.Contains(words,
		"the standby was promoted") {
		t.Errorf("it says %q", words)
	}
	second := k.pod(b, "now-b")
	b = k.take(b)
	if b.Status.Attempts != 2 {
		t.Errorf("attempts: %d", b.Status.Attempts)
	}
	k.phase(second, corev1.PodFailed, &protocol.BackupResult{Error: "access denied"})
	k.failJob("now", batchv1.JobReasonBackoffLimitExceeded)
	b = k.take(b)
	if words := k.expectComplete(b, metav1.ConditionFalse, v1.ReasonFailed, "Failed"); words != "access denied" {
		t.Errorf("it says %q", words)
	}
	if events := w.drainEvents(); !strings.Contains(events, "Warning Retried") ||
		!strings.Contains(events, "Warning Failed") {
		t.Errorf("events: %s", events)
	}
	if k.take(b).Status.CompletedAt == nil || !w.find("now", &batchv1.Job{}) {
		t.Error("the Job with the log is gone")
	}
}

func TestADeadlineStopsABackup(t *testing.T) {
	w := newWorld(t)
	k, _ := w.ready("x")
	short := func(b *v1.DatabaseBackup) { b.Spec.Deadline = metav1.Duration{Duration: 10 * time.Minute} }
	waiting := k.ask("waiting", "nobody", short)
	k.expectComplete(waiting, metav1.ConditionFalse, v1.ReasonSampleDBNotFound, "Pending")
	running := k.ask("running", "x", short)
	k.expectComplete(running, metav1.ConditionFalse, v1.ReasonRunning, "Running")
	w.now = w.now.Add(time.Hour)
	if words := k.expectComplete(k.take(waiting), metav1.ConditionFalse, v1.ReasonDeadlineExceeded,
		"Failed"); !strings.Contains(words, "no SampleDB") {
		t.Errorf("it says %q", words)
	}
	k.expectComplete(k.take(running), metav1.ConditionFalse, v1.ReasonDeadlineExceeded, "Failed")
	if w.lives("running") {
		t.Error("its Job goes on")
	}
}

func TestTheDeadlineOfTheJobIsTheBackups(t *testing.T) {
	w := newWorld(t)
	k, _ := w.ready("x")
	b := k.ask("now", "x")
	k.failJob("now", batchv1.JobReasonDeadlineExceeded)
	k.expectComplete(k.take(b), metav1.ConditionFalse, v1.ReasonDeadlineExceeded, "Failed")
}

// lives says that there is a Job that is not being deleted.
func (w *world) lives(name string) bool {
	w.Helper()
	job := &batchv1.Job{}
	return w.find(name, job) && job.DeletionTimestamp == nil
}

func (k *taker) cancel(b *v1.DatabaseBackup) *v1.DatabaseBackup {
	k.Helper()
	now := &v1.DatabaseBackup{}
	k.read(b.Name, now)
	now.Spec.Cancel = true
	k.must(k.api.Update(k.Context(), now))
	return k.take(now)
}

func TestCancelStopsABackupAndTheNextWaitsForItsPod(t *testing.T) {
	w := newWorld(t)
	k, _ := w.ready("x")
	first := k.ask("first", "x")
	pod := k.pod(first, "first-a")
	second := k.ask("second", "x")
	if words := k.expectComplete(second, metav1.ConditionFalse, v1.ReasonWaiting,
		"Pending"); !strings.Contains(words, "first") {
		t.Errorf("it says %q", words)
	}
	third := k.cancel(k.ask("third", "x"))
	k.expectComplete(third, metav1.ConditionFalse, v1.ReasonCancelled, "Cancelled")
	first = k.cancel(first)
	k.expectComplete(first, metav1.ConditionFalse, v1.ReasonCancelled, "Cancelled")
	if w.lives("first") {
		t.Error("its Job goes on")
	}
	// Its Pod is still ending: two at once would clean each other's pieces away.
	k.expectComplete(k.take(second), metav1.ConditionFalse, v1.ReasonWaiting, "Pending")
	k.phase(pod, corev1.PodFailed, &protocol.BackupResult{Error: "context canceled"})
	k.expectComplete(k.take(second), metav1.ConditionFalse, v1.ReasonRunning, "Running")
	if events := w.drainEvents(); strings.Count(events, "Normal Cancelled") != 2 {
		t.Errorf("events: %s", events)
	}
}

func TestABackupWaitsForWhatItNeeds(t *testing.T) {
	w := newWorld(t)
	k := w.taker()
	b := k.ask("early", "x")
	k.expectComplete(b, metav1.ConditionFalse, v1.ReasonSampleDBNotFound, "Pending")
	db := w.started("x", withoutBackup)
	b = k.take(b)
	if words := k.expectComplete(b, metav1.ConditionFalse, v1.ReasonArchiveNotReady,
		"Pending"); !strings.Contains(words, "spec.backup.none") {
		t.Errorf("it says %q", words)
	}
	db = w.edit(db, archived)
	db = w.archive(db, &protocol.ArchiveStatus{Reason: protocol.ArchiveFailing, Error: "no such bucket"})
	if words := k.expectComplete(k.take(b), metav1.ConditionFalse, v1.ReasonArchiveNotReady,
		"Pending"); !strings.Contains(words, "no such bucket") {
		t.Errorf("it says %q", words)
	}
	state := works
	w.archive(db, &state)
	k.expectComplete(k.take(b), metav1.ConditionFalse, v1.ReasonRunning, "Running")
}

func TestAJobOfSomebodyElseIsLeftAlone(t *testing.T) {
	w := newWorld(t)
	k, _ := w.ready("x")
	theirs := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "theirs"},
		Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "c", Image: "x"}},
		}}},
	}
	w.must(w.api.Create(t.Context(), theirs))
	b := k.ask("theirs", "x")
	k.expectComplete(b, metav1.ConditionFalse, v1.ReasonBackupNameTaken, "Pending")
	k.expectComplete(k.cancel(b), metav1.ConditionFalse, v1.ReasonCancelled, "Cancelled")
	if !w.lives("theirs") {
		t.Error("somebody's Job is gone")
	}
}

func TestDatabaseBackupsThatCantBeAreRefused(t *testing.T) {
	w := newWorld(t)
	for name, c := range map[string]struct {
		change func(*v1.DatabaseBackup)
		want   string
	}{
		"too long a name": {func(b *v1.DatabaseBackup) { b.Name = strings.Repeat("n", 58) }, "at most 57 characters"},
		"a short time": {
			func(b *v1.DatabaseBackup) { b.Spec.Deadline.Duration = time.Second }, "deadline must be from 1m",
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := &v1.DatabaseBackup{
				ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "x"},
				Spec:       v1.DatabaseBackupSpec{SampleDB: "x", Deadline: metav1.Duration{Duration: time.Hour}},
			}
			c.change(b)
			if err := w.api.Create(t.Context(), b); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("it says %v", err)
			}
		})
	}
}

// unseen is a cache that does not know yet which backups have begun, nor their Pods.
type unseen struct{ client.Client }

func (c unseen) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if _, pods := list.(*corev1.PodList); pods {
		return nil
	}
	err := c.Client.List(ctx, list, opts...)
	if backups, ok := list.(*v1.DatabaseBackupList); ok {
		backups.Items = nil
	}
	return err
}

// Backups that are asked for in one moment run one after the other, also where the cache shows none of the others: each
// takes the pieces of another that runs for what a former one has left.
func TestBackupsOfOneMomentRunOneAfterTheOther(t *testing.T) {
	w := newWorld(t)
	k := w.taker()
	db := w.started("x", daily("@daily"))
	state := works
	db = w.archive(db, &state)
	r := k.controller()
	r.Client = unseen{r.Client}
	var wait sync.WaitGroup
	for _, name := range []string{"c", "b", "a"} {
		b := &v1.DatabaseBackup{
			ObjectMeta: metav1.ObjectMeta{Namespace: k.namespace, Name: name},
			Spec:       v1.DatabaseBackupSpec{SampleDB: db.Name, Deadline: metav1.Duration{Duration: 24 * time.Hour}},
		}
		k.must(k.api.Create(t.Context(), b))
		wait.Go(func() {
			request := ctrl.Request{NamespacedName: client.ObjectKeyFromObject(b)}
			if _, err := r.Reconcile(t.Context(), request); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	began := 0
	for _, name := range []string{"a", "b", "c"} {
		b := &v1.DatabaseBackup{}
		k.read(name, b)
		if k.find(name, &batchv1.Job{}) {
			began++
			k.expectComplete(b, metav1.ConditionFalse, v1.ReasonRunning, "Running")
			continue
		}
		message := k.expectComplete(b, metav1.ConditionFalse, v1.ReasonWaiting, "Pending")
		if !strings.Contains(message, "of another backup to end") {
			t.Errorf("%s says %q", name, message)
		}
	}
	if began != 1 {
		t.Errorf("%d backups run", began)
	}
}
