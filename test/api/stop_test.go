package api

import (
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/cli/servers"
	"toban.dev/internal/cli/status"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/desired"
	"toban.dev/internal/protocol"
)

func stopped(db *v1.SampleDB) { db.Spec.Stopped = true }
func started(db *v1.SampleDB) { db.Spec.Stopped = false }

// stopStep checks how far a stop is, and returns what it says.
func (w *world) stopStep(db *v1.SampleDB, step string) string {
	w.Helper()
	if db.Status.Stop == nil || db.Status.Stop.Step != step {
		w.Fatalf("the stop is %+v, expected the step %s", db.Status.Stop, step)
	}
	return db.Status.Stop.Message
}

// sentAway has the agents of two instances say that no client is there any more, and where the WAL ends.
func (w *world) sentAway() {
	w.agents.change("10.1.0.1", func(s *protocol.Status) { s.Closed, s.End, s.LSN = true, "0/6000148", "0/6000200" })
	w.agents.change("10.1.0.2", func(s *protocol.Status) { s.Closed, s.LSN = true, "0/6000100" })
}

// archivedTo has the primary say up to where the archive goes, and the standby that it has all.
func (w *world) archivedTo(lsn string) {
	w.agents.change("10.1.0.1", func(s *protocol.Status) { s.Archive = &protocol.ArchiveStatus{LSN: lsn} })
	w.agents.change("10.1.0.2", func(s *protocol.Status) { s.LSN = "0/6000200" })
}

// resting is a SampleDB whose archive works, and with which nothing is under way.
func (w *world) resting(name string, modify ...func(*v1.SampleDB)) (*taker, *v1.SampleDB) {
	w.Helper()
	k, db := w.ready(name, modify...)
	k.finishJobs(db)
	return k, db
}

// stop stops a SampleDB of two instances whose archive works.
func (w *world) stop(db *v1.SampleDB) *v1.SampleDB {
	w.Helper()
	db = w.edit(db, stopped)
	w.sentAway()
	w.archivedTo("0/6000148")
	for range 6 {
		db = w.reconcile(db)
		if db.Status.Stop.Step == v1.StopStopping {
			w.playCluster(db)
		}
	}
	w.stopStep(db, v1.StopStopped)
	return db
}

func TestASampleDBIsStoppedAndStarted(t *testing.T) {
	k, db := newWorld(t).resting("x")
	db = k.edit(db, stopped)
	k.stopStep(db, v1.StopClosing)
	db = k.reconcile(db)
	if told := k.agents.told(); !told.Closed || told.Archive.MaxLag != 0 {
		t.Errorf("clients are let in, or the archive may wait: %+v", told)
	}
	k.expect(db, v1.ConditionAvailable, metav1.ConditionFalse, v1.ReasonStopping)
	k.sentAway()
	db = k.reconcile(db)
	k.stopStep(db, v1.StopProving)
	db = k.reconcile(db)
	if says := k.stopStep(db, v1.StopProving); !strings.Contains(says, "0/5000000") || !strings.Contains(says, "x-1") {
		t.Errorf("it says %q", says)
	}
	k.archivedTo("0/6000148")
	db = k.reconcile(db)
	k.stopStep(db, v1.StopStopping)
	k.expectInstances(db, 2, "") // how many there were is on record first
	db = k.reconcile(db)
	k.expectInstances(db, 0, "")
	if !k.find(naming.Archive("x"), &appsv1.Deployment{}) {
		t.Error("the archive's server has ended before the instances")
	}
	k.playCluster(db)
	for range 2 {
		db = k.reconcile(db)
	}
	k.stopStep(db, v1.StopStopped)
	k.restsStopped(db)
	k.waitsForTheStart(db)

	// With fewer instances those with the votes start first.
	db = k.edit(db, instances(1))
	k.stopStep(db, v1.StopStopped)
	db = k.edit(db, started)
	k.stopStep(db, v1.StopStarting)
	k.expect(db, v1.ConditionAvailable, metav1.ConditionFalse, v1.ReasonStarting)
	k.expectInstances(db, 2, "")
	db = k.reconcile(db)
	k.playCluster(db)
	db = k.reconcile(db)
	if told := k.agents.told(); told.Closed || len(told.Members) != 2 {
		t.Errorf("the agents are told %+v", told)
	}
	k.expectEvent("Started", "x-0 takes writes")
	for range 3 {
		db = k.reconcile(db)
		k.playCluster(db)
	}
	k.expectInstances(db, 1, "")
	k.expect(db, v1.ConditionReady, metav1.ConditionTrue, v1.ReasonReady)
	if db.Status.Stop != nil || !k.find(naming.Archive("x"), &appsv1.Deployment{}) {
		t.Errorf("after the start there is %+v, or no server of the archive", db.Status.Stop)
	}
}

// restsStopped checks what a stopped SampleDB says and keeps, and that nothing is written about it.
func (w *world) restsStopped(db *v1.SampleDB) {
	w.Helper()
	s := db.Status.Stop
	if s.Archive != v1.StopArchiveComplete || s.LSN != "0/6000148" || s.Instances != 2 || len(s.Behind) > 0 ||
		db.Status.Phase != "Stopped" {
		w.Errorf("it is %s: %+v", db.Status.Phase, s)
	}
	w.expect(db, v1.ConditionReady, metav1.ConditionFalse, v1.ReasonStopped)
	w.expect(db, v1.ConditionAvailable, metav1.ConditionFalse, v1.ReasonStopped)
	if m := w.expect(db, v1.ConditionArchiving, metav1.ConditionTrue, v1.ReasonStopped); !strings.Contains(m, s.LSN) {
		w.Errorf("of the archive it says %q", m)
	}
	w.expect(db, v1.ConditionDurable, metav1.ConditionUnknown, v1.ReasonStopped)
	w.expect(db, v1.ConditionConfigurationApplied, metav1.ConditionUnknown, v1.ReasonStopped)
	w.expect(db, v1.ConditionInitialized, metav1.ConditionTrue, v1.ReasonInitialized)
	w.expectEvent("Stopped", "the archive is complete")
	if w.find(naming.Archive("x"), &appsv1.Deployment{}) {
		w.Error("the archive's server runs")
	}
	for name, object := range map[string]client.Object{
		"data-x-0": &corev1.PersistentVolumeClaim{}, "data-x-1": &corev1.PersistentVolumeClaim{},
		naming.Archive("x"): &corev1.PersistentVolumeClaim{}, naming.AppSecret("x"): &corev1.Secret{},
		"x": &corev1.Service{},
	} {
		if !w.find(name, object) {
			w.Errorf("%s is gone", name)
		}
	}
	w.writes.take()
	w.reconcile(db)
	if writes := w.writes.take(); len(writes) > 0 {
		w.Errorf("at rest it writes %v", writes)
	}
}

// waitsForTheStart checks that what needs a server waits, and says why.
func (k *taker) waitsForTheStart(db *v1.SampleDB) {
	k.Helper()
	b := k.ask("late", db.Name)
	if m := k.expectComplete(b, metav1.ConditionFalse, v1.ReasonArchiveNotReady, "Pending"); !strings.Contains(m,
		"is stopped") {
		k.Errorf("a backup says %q", m)
	}
	d := k.askBack("back", db.Name)
	if m := k.expectBack(d, metav1.ConditionFalse, v1.ReasonArchiveNotReady, "Pending"); !strings.Contains(m,
		"is stopped") {
		k.Errorf("what is to come back says %q", m)
	}
	k.must(k.api.Delete(k.Context(), b))
	k.must(k.api.Delete(k.Context(), d))
}

// The archive may be away: the database stops all the same, and says what is on the volumes only.
func TestAStopWithoutTheArchiveEnds(t *testing.T) {
	k, db := newWorld(t).resting("x")
	db = k.edit(db, stopped)
	k.sentAway()
	k.agents.change("10.1.0.1", func(s *protocol.Status) {
		s.Archive = &protocol.ArchiveStatus{LSN: "0/5000000", Reason: protocol.ArchiveFailing, Error: "no route"}
	})
	for range 12 { // two minutes
		db = k.reconcile(db)
		if db.Status.Stop.Step == v1.StopStopping {
			k.playCluster(db)
		}
	}
	k.stopStep(db, v1.StopStopped)
	if s := db.Status.Stop; s.Archive != v1.StopArchiveIncomplete || s.ArchivedLSN != "0/5000000" ||
		len(s.Behind) != 1 {
		t.Errorf("the proof is %+v", s)
	}
	m := k.expect(db, v1.ConditionArchiving, metav1.ConditionFalse, v1.ReasonArchiveIncomplete)
	if !strings.Contains(m, "up to 0/5000000") || !strings.Contains(m, "on the volumes") {
		t.Errorf("it says %q", m)
	}
}

// What is under way is not cut off, and the stop can be taken back at any step.
func TestAStopWaitsForABackupAndCanBeTakenBack(t *testing.T) {
	k, db := newWorld(t).resting("x")
	b := k.take(k.ask("now", "x"))
	pod := k.pod(b, "x-now-a")
	db = k.edit(db, stopped)
	if says := k.stopStep(db, v1.StopWaiting); !strings.Contains(says, "Job ") {
		t.Errorf("it says %q", says)
	}
	k.expect(db, v1.ConditionReady, metav1.ConditionFalse, v1.ReasonStopping)
	k.expect(db, v1.ConditionAvailable, metav1.ConditionTrue, v1.ReasonPrimaryReady)
	db = k.edit(db, started)
	k.expect(db, v1.ConditionReady, metav1.ConditionTrue, v1.ReasonReady)
	db = k.edit(db, stopped)
	k.phase(pod, corev1.PodSucceeded, &taken)
	k.finishJobs(db)
	db = k.reconcile(db)
	k.stopStep(db, v1.StopClosing)
	db = k.reconcile(db)
	db = k.edit(db, started)
	db = k.reconcile(db)
	if told := k.agents.told(); told.Closed || db.Status.Stop != nil {
		t.Errorf("taken back, clients are let in: %t; the stop is %+v", !told.Closed, db.Status.Stop)
	}
	k.expect(db, v1.ConditionReady, metav1.ConditionTrue, v1.ReasonReady)
}

// A database that is deleted while it is stopped starts once more, closed, for its last backup.
func TestAStoppedSampleDBIsDeletedWithALastBackup(t *testing.T) {
	k, db := newWorld(t).resting("x")
	db = k.stop(db)
	db = k.goes(db)
	for range 3 {
		db = k.reconcile(db)
		k.playCluster(db)
	}
	k.expectInstances(db, 2, "")
	k.waiting(db, "sessions of clients")
	if !k.agents.told().Closed {
		t.Error("clients are let in")
	}
	k.letGo()
	k.archivedTo("0/6000200")
	db = k.reconcile(db)
	k.waiting(db, "the last backup, x-final-")
	b := k.take(k.final(db))
	k.phase(k.pod(b, "x-final-a"), corev1.PodSucceeded, &taken)
	k.take(b)
	k.gone(k.reconcile(db))
}

// With Retain nothing starts.
func TestAStoppedSampleDBIsDeletedWithoutABackup(t *testing.T) {
	k, db := newWorld(t).resting("x", func(db *v1.SampleDB) { db.Spec.DeletionPolicy = v1.DeletionRetain })
	db = k.stop(db)
	k.writes.take()
	k.must(k.api.Delete(k.Context(), db))
	for range 3 {
		if db = k.reconcile(db); db == nil {
			break
		}
	}
	if db != nil || !k.find("data-x-0", &corev1.PersistentVolumeClaim{}) {
		t.Errorf("it is still there, or its volume is gone: %+v", db)
	}
}

// What is created as stopped has no Pod before it is started.
func TestASampleDBIsCreatedStopped(t *testing.T) {
	w := newWorld(t)
	db := w.create("x", stopped, instances(2))
	for range 3 {
		db = w.reconcile(db)
	}
	w.stopStep(db, v1.StopStopped)
	w.expectInstances(db, 0, "")
	w.expect(db, v1.ConditionReady, metav1.ConditionFalse, v1.ReasonStopped)
	w.expect(db, v1.ConditionArchiving, metav1.ConditionFalse, v1.ReasonStopped)
	if jobs := w.jobs(db); len(jobs) > 0 {
		t.Errorf("there are Jobs: %v", jobs[0].Name)
	}
	db = w.edit(db, started)
	for range 5 {
		w.playCluster(db)
		db = w.reconcile(db)
	}
	w.expect(db, v1.ConditionReady, metav1.ConditionTrue, v1.ReasonReady)
}

// An upgrade and a restore that are asked for while it is stopped begin after the start.
func TestWhatIsAskedForWhileItIsStoppedWaits(t *testing.T) {
	k, db := newWorld(t).resting("x")
	db = k.stop(db)
	before := len(k.jobs(db))
	db = k.edit(db, func(db *v1.SampleDB) {
		db.Spec.Version = 18
		inPlace("oops", "x")(db)
	})
	for range 3 {
		db = k.reconcile(db)
	}
	k.stopStep(db, v1.StopStopped)
	for kind, reason := range map[string]string{
		v1.ConditionUpgraded: v1.ReasonUpgrading, v1.ConditionRestored: v1.ReasonStopped,
	} {
		m := k.expect(db, kind, metav1.ConditionFalse, reason)
		if !strings.Contains(m, "when the database is started") {
			t.Errorf("%s says %q", kind, m)
		}
	}
	if after := len(k.jobs(db)); after > before {
		t.Errorf("there are %d Jobs, and were %d", after, before)
	}
	db = k.edit(db, func(db *v1.SampleDB) { db.Spec.Version, db.Spec.Stopped = 17, false })
	for range 3 {
		db = k.reconcile(db)
		k.playCluster(db)
	}
	if !k.find(desired.InPlace(*db.Spec.Restore, 0).JobName(db), &batchv1.Job{}) {
		t.Error("after the start nothing is restored")
	}
}

// The verbs stop and start write what the operator should do, and show what it does.
func TestTheVerbsStopAndStart(t *testing.T) {
	k, db := newWorld(t).resting("x")
	out, err := k.command(t.Context(), servers.Stop(), "x", "--wait=false")
	k.must(err)
	k.read("x", db)
	if !db.Spec.Stopped || !strings.Contains(out, "spec.stopped is true") {
		t.Errorf("it is %t; %s", db.Spec.Stopped, out)
	}
	if out, err = k.command(t.Context(), servers.Stop(), "x", "--timeout", "1s"); err == nil ||
		!strings.Contains(err.Error(), "kubectl toban status x") {
		t.Errorf("while nobody does it: %v\n%s", err, out)
	}
	db = k.stop(db)
	out, err = k.command(t.Context(), servers.Stop(), "x")
	k.must(err)
	if !strings.Contains(out, "x: Stopped: the database is stopped") {
		t.Errorf("it says\n%s", out)
	}
	out, err = k.command(t.Context(), status.Status(), "x")
	k.must(err)
	if !strings.Contains(out, "Stopped, 0/2 ready") || !strings.Contains(out, "stop: Stopped") {
		t.Errorf("the status is\n%s", out)
	}
	_, err = k.command(t.Context(), servers.Start(), "x", "--wait=false")
	k.must(err)
	for range 4 {
		db = k.reconcile(db)
		k.playCluster(db)
	}
	out, err = k.command(t.Context(), servers.Start(), "x")
	k.must(err)
	if !strings.Contains(out, "x: x-0 takes writes") {
		t.Errorf("it says\n%s", out)
	}
}

// expectEvent checks that there was an event since it was last looked.
func (w *world) expectEvent(reason, words string) {
	w.Helper()
	for _, line := range strings.Split(w.drainEvents(), "\n") {
		if strings.Contains(line, " "+reason+" ") && strings.Contains(line, words) {
			return
		}
	}
	w.Errorf("there was no event %s with %q", reason, words)
}

func startedAt(moment string) func(*v1.SampleDB) {
	return func(db *v1.SampleDB) { metav1.SetMetaDataAnnotation(&db.ObjectMeta, naming.AnnotationStarted, moment) }
}

// A window stops a SampleDB, and starts it again; a person can start it before.
func TestASampleDBIsStoppedInItsWindows(t *testing.T) {
	w := newWorld(t)
	opens := w.now.Add(2 * time.Hour).UTC().Truncate(time.Minute)
	closes := opens.Add(3 * time.Hour)
	k, db := w.resting("x", func(db *v1.SampleDB) {
		db.Spec.StopWindows = []v1.Window{
			{Start: opens.Format("15:04"), Duration: metav1.Duration{Duration: time.Hour}},
			{Start: opens.Add(time.Hour).Format("15:04"), Duration: metav1.Duration{Duration: 2 * time.Hour}},
		}
	})
	if db.Status.Stop != nil {
		t.Fatalf("before the window: %+v", db.Status.Stop)
	}
	k.now = opens
	db = k.reconcile(db)
	k.stopStep(db, v1.StopClosing)
	k.sentAway()
	k.archivedTo("0/6000148")
	for range 6 {
		if db = k.reconcile(db); db.Status.Stop.Step == v1.StopStopping {
			k.playCluster(db)
		}
	}
	says := k.stopStep(db, v1.StopStopped)
	if !strings.Contains(says, closes.Format(time.RFC3339)) || !db.Status.Stop.Until.Time.Equal(closes) {
		t.Errorf("it says %q, until %s", says, db.Status.Stop.Until)
	}

	// A person starts it: the present window does not count any more, the next one does.
	db = k.edit(db, startedAt("soon"))
	if says := k.stopStep(db, v1.StopStopped); !strings.Contains(says, naming.AnnotationStarted) {
		t.Errorf("what can't be read changes nothing, and is told: %q", says)
	}
	db = k.edit(db, startedAt(k.now.Format(time.RFC3339)))
	k.stopStep(db, v1.StopStarting)
	k.now = opens.Add(time.Hour)
	db = k.reconcile(db)
	k.stopStep(db, v1.StopStopped)
	k.now = closes
	db = k.reconcile(db)
	k.stopStep(db, v1.StopStarting)
	for range 2 {
		k.playCluster(db)
		db = k.reconcile(db)
	}
	if db.Status.Stop != nil {
		t.Errorf("after the window: %+v", db.Status.Stop)
	}
}
