package api

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/cli/upgrade"
	"toban.dev/internal/naming"
	"toban.dev/internal/protocol"
)

// rehearsals is a world in which a SampleDB of 17 with an archive is to become one of 18.
type rehearsals struct {
	*majors
	k *taker
}

func newRehearsals(t *testing.T) *rehearsals {
	t.Helper()
	m := newMajors(t)
	return &rehearsals{m, m.taker()}
}

// archived is a SampleDB of two instances with a backup.
func (m *rehearsals) archived(modify ...func(*v1.SampleDB)) *v1.SampleDB {
	m.Helper()
	db := m.recorded(append(modify, archived)...)
	state := works
	db = m.reconcile(m.archive(db, &state))
	first := &v1.DatabaseBackup{}
	m.read(m.backups()[0], first)
	m.k.complete(first)
	m.drainEvents()
	return m.reconcile(db)
}

// backedUp is an upgrade that is checked, and has its backup.
func (m *rehearsals) backedUp(db *v1.SampleDB) *v1.SampleDB {
	m.Helper()
	db = m.wants(db)
	m.at(db, v1.UpgradeChecking)
	checks, _ := m.upgradeJobs(db)
	m.podOf(checks[0], `{"from":"17.6","to":"18.1"}`)
	db = m.reconcile(m.reconcile(db))
	u := m.at(db, v1.UpgradeBackingUp)
	if jobs := m.rehearsalJobs(); len(jobs) > 0 {
		m.Errorf("it is rehearsed before there is a backup: %v", jobs)
	}
	before := &v1.DatabaseBackup{}
	m.read(naming.UpgradeBackup(db.Name, u.ID), before)
	result := taken
	result.ID = "20261122T031500Z-beef"
	m.k.completeWith(before, result)
	return m.reconcile(m.reconcile(db))
}

// rehearsalJobs are the Jobs of rehearsals that are not being deleted.
func (m *rehearsals) rehearsalJobs() (found []batchv1.Job) {
	m.Helper()
	var all batchv1.JobList
	m.must(m.api.List(m.Context(), &all, client.InNamespace(m.namespace)))
	for _, job := range all.Items {
		if job.Labels[naming.LabelComponent] == naming.ComponentRehearse && job.DeletionTimestamp == nil {
			found = append(found, job)
		}
	}
	return found
}

// rehearsing expects one Job, and makes its Pod, which restores.
func (m *rehearsals) rehearsing() (batchv1.Job, *corev1.Pod) {
	m.Helper()
	jobs := m.rehearsalJobs()
	if len(jobs) != 1 {
		m.Fatalf("there are the Jobs %v", jobs)
	}
	pod := m.podOf(jobs[0], "")
	pod.Status.Phase = corev1.PodPending
	pod.Status.InitContainerStatuses = []corev1.ContainerStatus{{
		Name: naming.ContainerRestore, Image: "x", ImageID: "x",
		State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
	}}
	m.must(m.api.Status().Update(m.Context(), pod))
	return jobs[0], pod
}

// found ends the Pod of a rehearsal with a result, and the Job where the exit code is one that ends it.
func (m *rehearsals) found(job batchv1.Job, pod *corev1.Pod, code int32, result protocol.RehearsalResult) {
	m.Helper()
	text, err := json.Marshal(result)
	m.must(err)
	pod.Status.Phase, pod.Status.InitContainerStatuses = corev1.PodSucceeded, nil
	if code != 0 {
		pod.Status.Phase = corev1.PodFailed
	}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: naming.ContainerUpgrade, Image: "x", ImageID: "x",
		State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			ExitCode: code, Message: string(text),
		}}}}
	m.must(m.api.Status().Update(m.Context(), pod))
	if code == 0 {
		return
	}
	now, at := &batchv1.Job{}, metav1.Now()
	m.read(job.Name, now)
	now.Status.StartTime, now.Status.Failed = &at, 1
	for _, kind := range []batchv1.JobConditionType{batchv1.JobFailureTarget, batchv1.JobFailed} {
		now.Status.Conditions = append(now.Status.Conditions, batchv1.JobCondition{Type: kind,
			Status: corev1.ConditionTrue, Reason: "PodFailurePolicy", Message: "exit code", LastTransitionTime: at})
	}
	m.must(m.api.Status().Update(m.Context(), now))
}

var sound = protocol.RehearsalResult{
	From: "17.6", To: "18.1", Method: "link", WithoutWrites: 9.2, Bytes: 25 << 20,
	Steps: []protocol.VerifyStep{{Name: "upgrade", Seconds: 8}, {Name: "amcheck", Skipped: "the image has none"}},
}

// The backup that was just taken is restored and upgraded before anything stops, and the condition says what came of
// it. Then the upgrade goes on, and what the rehearsal needed is gone.
func TestAnUpgradeIsRehearsed(t *testing.T) {
	m := newRehearsals(t)
	db := m.backedUp(m.archived())
	m.at(db, v1.UpgradeRehearsing)
	job, pod := m.rehearsing()
	m.expectRehearsalJob(job)
	db = m.reconcile(db)
	if words := m.expect(db, v1.ConditionUpgraded, metav1.ConditionFalse, v1.ReasonUpgrading); !strings.Contains(words,
		"step Rehearsing: The upgrade is rehearsed on a copy: the copy: ") {
		t.Errorf("meanwhile it says %q", words)
	}
	m.expectSpared("20261122T031500Z-beef")
	if _, upgrades := m.upgradeJobs(db); len(upgrades) > 0 || db.Status.Upgrade.ClosedAt != "" {
		t.Error("it goes on without the rehearsal")
	}
	m.drainEvents()
	m.found(job, pod, 0, sound)
	db = m.reconcile(db)
	u := m.at(db, v1.UpgradePreparing)
	r := u.Rehearsal
	m.expectPassed(u)
	const sentence = "would take 9 s without writes, 0 problems"
	if words := m.expect(db, v1.ConditionUpgraded, metav1.ConditionFalse, v1.ReasonUpgrading); !strings.Contains(words,
		"; rehearsed at ") || !strings.Contains(words, sentence) {
		t.Errorf("then it says %q", words)
	}
	if events := m.drainEvents(); !strings.Contains(events,
		"Normal Rehearsed from PostgreSQL 17 to 18: rehearsed at ") {
		t.Errorf("the events are %s", events)
	}
	db = m.reconcile(m.reconcile(db))
	if jobs := m.rehearsalJobs(); len(jobs) > 0 {
		t.Errorf("its Job is kept: %v", jobs)
	}
	if again := m.at(db, v1.UpgradePreparing).Rehearsal; !again.Time.Equal(r.Time) {
		t.Errorf("it is rehearsed again: %+v", again)
	}
	_, upgrades := m.upgradeJobs(db)
	m.podOf(upgrades[0], "")
	m.closes(db)
}

// expectSpared expects retention to leave a backup alone.
func (m *rehearsals) expectSpared(id string) {
	m.Helper()
	settings := &corev1.ConfigMap{}
	m.read("x-backup", settings)
	told, err := backupSettings(settings)
	m.must(err)
	if !slices.Contains(told.Keep.InUse, id) {
		m.Errorf("retention may remove the backup: in use are %v", told.Keep.InUse)
	}
}

// expectPassed expects what the sound result says in the status.
func (m *rehearsals) expectPassed(u *v1.UpgradeStatus) {
	m.Helper()
	r := u.Rehearsal
	if r == nil || r.Result != v1.RehearsalPassed || r.Backup != u.Backup || r.Time == nil || len(r.Steps) != 2 ||
		r.WithoutWrites.Duration != 9200*time.Millisecond || r.Method != "link" || r.Bytes != 25<<20 {
		m.Fatalf("it says of the rehearsal %+v", r)
	}
}

// expectRehearsalJob expects the backup to be restored with the former image, and the new one to have no Secret.
func (m *rehearsals) expectRehearsalJob(job batchv1.Job) {
	m.Helper()
	pod := job.Spec.Template.Spec
	restore := pod.InitContainers[len(pod.InitContainers)-1]
	if words := strings.Join(restore.Command, " "); restore.Image != formerImage ||
		!strings.Contains(words, "--backup 20261122T031500Z-beef --without-scrub") {
		m.Errorf("%s restores: %s", restore.Image, words)
	}
	if c := pod.Containers[0]; c.Image != majorImage || len(pod.Containers) != 1 {
		m.Errorf("%s is rehearsed", c.Image)
	}
	secret := map[string]bool{}
	for _, v := range pod.Volumes {
		secret[v.Name] = v.Secret != nil || v.Projected != nil || v.Name == "run"
	}
	for _, mount := range pod.Containers[0].VolumeMounts {
		if secret[mount.Name] {
			m.Errorf("what runs SQL has %s", mount.Name)
		}
	}
}

// What a rehearsal has found ends the upgrade with its sentences, and nothing has stopped. It is rehearsed again when
// somebody asks for another try.
func TestWhatARehearsalFindsEndsTheUpgrade(t *testing.T) {
	m := newRehearsals(t)
	db := m.backedUp(m.archived())
	first, pod := m.rehearsing()
	result := sound
	result.Problems = []string{`btree index "app.public.items_n" is damaged`, "the assertion orders: it gives f"}
	m.found(first, pod, 0, result)
	db = m.reconcile(m.reconcile(db))
	u := m.at(db, v1.UpgradeFailed)
	m.failed(db, `the rehearsal on a copy has found: btree index "app.public.items_n" is damaged; the assertion orders`)
	if r := u.Rehearsal; r.Result != v1.RehearsalProblems || len(r.Problems) != 2 || !strings.Contains(r.Message,
		"would take 9 s without writes, 2 problems: btree index") {
		t.Errorf("it says of the rehearsal %+v", r)
	}
	if _, upgrades := m.upgradeJobs(db); len(upgrades) > 0 || u.ClosedAt != "" || len(m.rehearsalJobs()) > 0 {
		t.Errorf("there are the Jobs %v and %v, closed at %q", upgrades, m.rehearsalJobs(), u.ClosedAt)
	}
	db = m.reconcile(m.reconcile(db))
	m.at(db, v1.UpgradeFailed)
	db = m.asks(db, "now")
	if db = m.reconcile(db); db.Status.Upgrade.Rehearsal != nil {
		t.Errorf("tried again, it is %+v", db.Status.Upgrade)
	}
	db = m.checkedAgain(db)
	m.at(db, v1.UpgradeRehearsing)
	if again, _ := m.rehearsing(); again.Name == first.Name {
		t.Errorf("the Job is %s again", again.Name)
	}
}

// checkedAgain plays the Pods of pulls and of the check of another try.
func (m *rehearsals) checkedAgain(db *v1.SampleDB) *v1.SampleDB {
	m.Helper()
	for range 6 {
		db = m.reconcile(db)
		switch db.Status.Upgrade.Step {
		case v1.UpgradePulling:
			for ordinal := range 2 {
				job := &batchv1.Job{}
				if m.find(naming.PullJob("x", ordinal), job) && job.DeletionTimestamp == nil {
					m.imagePodOf(job, majorImage, &protocol.ImageResult{Version: "18.1"})
				}
			}
		case v1.UpgradeChecking:
			if checks, _ := m.upgradeJobs(db); len(checks) == 1 {
				m.podOf(checks[0], `{"from":"17.6","to":"18.1"}`)
			}
		case v1.UpgradeRehearsing:
			return m.reconcile(db)
		}
	}
	return db
}

// That it is not known whether there are problems is told with another reason, and ends the upgrade too, until somebody
// decides to do without.
func TestARehearsalThatCannotBeDone(t *testing.T) {
	m := newRehearsals(t)
	db := m.backedUp(m.archived())
	job, pod := m.rehearsing()
	m.found(job, pod, naming.ExitRefused, protocol.RehearsalResult{Error: "no room on the scratch volume"})
	db = m.reconcile(m.reconcile(db))
	u := m.at(db, v1.UpgradeFailed)
	words := m.expect(db, v1.ConditionUpgraded, metav1.ConditionFalse, v1.ReasonNotRehearsed)
	if !strings.Contains(words, "could not be rehearsed: no room on the scratch volume") ||
		!strings.Contains(words, "spec.upgrade.rehearse to Never") {
		t.Errorf("it says %q", words)
	}
	m.expect(db, v1.ConditionReady, metav1.ConditionFalse, v1.ReasonNotRehearsed)
	m.expect(db, v1.ConditionAvailable, metav1.ConditionTrue, v1.ReasonPrimaryReady)
	if r := u.Rehearsal; r.Result != v1.RehearsalNotDone || len(r.Problems) > 0 || u.ClosedAt != "" {
		t.Errorf("it says of the rehearsal %+v", r)
	}
	db = m.edit(db, func(db *v1.SampleDB) { db.Spec.Upgrade = &v1.UpgradeSpec{Rehearse: v1.RehearseNever} })
	db = m.checkedAgain(db)
	u = m.at(db, v1.UpgradePreparing)
	if r := u.Rehearsal; r.Result != v1.RehearsalSkipped || len(m.rehearsalJobs()) > 0 {
		t.Errorf("without one it is %+v, %v", r, m.rehearsalJobs())
	}
}

// A Pod that no node takes is waited for, but not for ever.
func TestARehearsalWhosePodDoesNotRun(t *testing.T) {
	m := newRehearsals(t)
	db := m.backedUp(m.archived())
	_, pod := m.rehearsing()
	pod.Status.InitContainerStatuses = nil
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse,
		Reason: corev1.PodReasonUnschedulable, Message: "no volume to bind"}}
	m.must(m.api.Status().Update(t.Context(), pod))
	m.now = pod.CreationTimestamp.Add(9 * time.Minute)
	db = m.reconcile(db)
	if words := m.at(db, v1.UpgradeRehearsing).Message; !strings.Contains(words, "no volume to bind") {
		t.Errorf("meanwhile it says %q", words)
	}
	m.now = pod.CreationTimestamp.Add(11 * time.Minute)
	db = m.reconcile(db)
	m.at(db, v1.UpgradeFailed)
	words := m.expect(db, v1.ConditionUpgraded, metav1.ConditionFalse, v1.ReasonNotRehearsed)
	if !strings.Contains(words, "does not run for 10m0s") {
		t.Errorf("then it says %q", words)
	}
}

// Without an archive there is nothing to rehearse with: that is told, and is the end only where the spec asks for one.
func TestARehearsalWithoutAnArchive(t *testing.T) {
	m := newMajors(t)
	db, _ := m.prepared(m.upgradable())
	if r := m.at(db, v1.UpgradePreparing).Rehearsal; r == nil || r.Result != v1.RehearsalSkipped ||
		!strings.Contains(db.Status.Upgrade.Message, "not rehearsed: there is no archive") {
		t.Errorf("it says of the rehearsal %+v", r)
	}
	db = m.edit(db, func(db *v1.SampleDB) { db.Spec.Upgrade = &v1.UpgradeSpec{Rehearse: v1.RehearseAlways} })
	db = m.reconcile(db)
	m.at(db, v1.UpgradeFailed)
	m.expect(db, v1.ConditionUpgraded, metav1.ConditionFalse, v1.ReasonNotRehearsed)
}

// wantsOnly asks for a rehearsal and nothing else.
func (m *rehearsals) wantsOnly(db *v1.SampleDB, what string) *v1.SampleDB {
	m.Helper()
	return m.edit(db, func(db *v1.SampleDB) {
		metav1.SetMetaDataAnnotation(&db.ObjectMeta, naming.AnnotationRehearse, what)
	})
}

// A rehearsal that is asked for alone upgrades nothing, and its result is in the status, of each request anew.
func TestARehearsalAlone(t *testing.T) {
	m := newRehearsals(t)
	db := m.archived()
	for n, problems := range [][]string{nil, {"an index is damaged"}} {
		db = m.reconcile(m.wantsOnly(db, "18"))
		job, pod := m.rehearsing()
		if c := job.Spec.Template.Spec.Containers[0]; !strings.HasSuffix(c.Image, "postgres:18") {
			t.Errorf("it is rehearsed with %s", c.Image)
		}
		if db = m.reconcile(db); db.Status.Rehearsal == nil || db.Status.Rehearsal.Result != v1.RehearsalRunning {
			t.Fatalf("meanwhile it is %+v", db.Status.Rehearsal)
		}
		m.expect(db, v1.ConditionReady, metav1.ConditionTrue, v1.ReasonReady)
		result := sound
		result.Problems = problems
		m.found(job, pod, 0, result)
		db = m.reconcile(db)
		if r := db.Status.Rehearsal; len(r.Problems) != n || r.To != 18 || r.From != 17 || r.Backup != m.backups()[0] ||
			!strings.Contains(r.Message, "would take 9 s without writes") {
			t.Errorf("it says of the rehearsal %+v", r)
		}
		asked := db
		db = m.reconcileBehind(m.reconcile(db), asked)
		if db.Annotations[naming.AnnotationRehearse] != "" || len(m.rehearsalJobs()) > 0 ||
			!db.Status.Rehearsal.Ended() {
			t.Errorf("it goes on: %q, %v, %+v", db.Annotations, m.rehearsalJobs(), db.Status.Rehearsal)
		}
		m.must(client.IgnoreNotFound(m.api.Delete(t.Context(), pod, client.GracePeriodSeconds(0))))
		if db.Status.Upgrade != nil || db.Status.Major != 17 {
			t.Errorf("it is upgraded: %+v", db.Status.Upgrade)
		}
	}
	m.rests(db)
}

// A request that could not be taken away when the rehearsal was done is taken away later, and begins no other.
func TestARehearsalWhoseRequestIsTakenAwayLater(t *testing.T) {
	m := newRehearsals(t)
	db := m.reconcile(m.wantsOnly(m.archived(), "18"))
	job, pod := m.rehearsing()
	m.found(job, pod, 0, sound)
	db = m.reconcile(db)
	done, refused := db.Status.Rehearsal, false
	m.reconciler.Client = raced{m.reconciler.Client, naming.AnnotationRehearse, &refused}
	for range 4 {
		db = m.reconcile(db)
	}
	if !refused || db.Annotations[naming.AnnotationRehearse] != "" || len(m.rehearsalJobs()) > 0 {
		t.Errorf("refused: %v; %v, %v", refused, db.Annotations, m.rehearsalJobs())
	}
	if r := db.Status.Rehearsal; !r.Ended() || !r.Time.Equal(done.Time) {
		t.Errorf("it was %+v, and is %+v", done, r)
	}
}

// What can't be rehearsed is refused with a sentence; a request that is taken back ends what was begun.
func TestARehearsalThatIsRefused(t *testing.T) {
	m := newRehearsals(t)
	db := m.archived()
	for what, words := range map[string]string{
		"17": "17 is not newer", "soon": "is no major version", "99": "is no major version",
	} {
		db = m.reconcile(m.wantsOnly(db, what))
		if r := db.Status.Rehearsal; r == nil || r.Result != v1.RehearsalNotDone ||
			!strings.Contains(r.Message, words) || db.Annotations[naming.AnnotationRehearse] != "" {
			t.Errorf("%s: it is %+v, %v", what, r, db.Annotations)
		}
	}
	db = m.reconcile(m.wantsOnly(db, "18 own.example/postgresql:18"))
	if c := m.rehearsalJobs()[0].Spec.Template.Spec.Containers[0]; c.Image != "own.example/postgresql:18" {
		t.Errorf("it is rehearsed with %s", c.Image)
	}
	db = m.edit(db, func(db *v1.SampleDB) { delete(db.Annotations, naming.AnnotationRehearse) })
	if db = m.reconcile(db); db.Status.Rehearsal != nil || len(m.rehearsalJobs()) > 0 {
		t.Errorf("taken back, it is %+v, %v", db.Status.Rehearsal, m.rehearsalJobs())
	}
}

// The command asks for a rehearsal alone, and shows what came of it.
func TestTheRehearseFlag(t *testing.T) {
	m := newRehearsals(t)
	db := m.archived()
	run := func(args ...string) string {
		out, err := m.command(t.Context(), upgrade.UpgradeTo(), append([]string{"x", "--to", "18"}, args...)...)
		if err != nil {
			out += err.Error()
		}
		return out
	}
	for _, args := range [][]string{{"--rehearse", "--now"}, {"--image", "own"}} {
		if out := run(args...); !strings.Contains(out, "--rehearse upgrades nothing") {
			t.Errorf("with %q it says %q", args, out)
		}
	}
	for _, c := range []struct {
		problems []string
		want     string
	}{
		{nil, "would take 9 s without writes, 0 problems"},
		{[]string{"an index is damaged"}, "1 problem: an index is damaged"},
	} {
		said := make(chan string, 1)
		go func() { said <- run("--rehearse") }()
		m.until("it is asked for", func() bool {
			now := &v1.SampleDB{}
			m.read("x", now)
			return now.Annotations[naming.AnnotationRehearse] == "18"
		})
		db = m.reconcile(m.reconcile(db))
		job, pod := m.rehearsing()
		if out := run("--rehearse"); !strings.Contains(out, "a rehearsal of x is under way") {
			t.Errorf("asked twice, it says %q", out)
		}
		result := sound
		result.Problems = c.problems
		m.found(job, pod, 0, result)
		for range 3 {
			db = m.reconcile(db)
		}
		m.must(client.IgnoreNotFound(m.api.Delete(t.Context(), pod, client.GracePeriodSeconds(0))))
		if out := <-said; !strings.Contains(out, c.want) {
			t.Errorf("it says %q, want %q", out, c.want)
		}
	}
	if db.Status.Upgrade != nil {
		t.Errorf("it is upgraded: %+v", db.Status.Upgrade)
	}
}
