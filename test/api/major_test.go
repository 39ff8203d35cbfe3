package api

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/cli/upgrade"
	"toban.dev/internal/naming"
	"toban.dev/internal/protocol"
)

// majorImage is what postgres:18 is.
const majorImage = "docker.io/library/postgres@sha256:88"

// newIdentifier is the system identifier of the upgraded data.
const newIdentifier = "7588888888888888888"

// upgradePods plays the Pods of upgrades: they wait to be told to begin.
type upgradePods struct {
	mu    sync.Mutex
	waits bool
	// silent has them answer nothing.
	silent bool
	begun  []string
	// result is what they say that they have made.
	result *protocol.UpgradeResult
}

func (p *upgradePods) Progress(
	context.Context, string, string, protocol.Config,
) (protocol.BackupProgress, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.silent {
		return protocol.BackupProgress{}, errors.New("no route to host")
	}
	if p.waits {
		return protocol.BackupProgress{Step: protocol.StepAwaitsBegin}, nil
	}
	return protocol.BackupProgress{Step: "upgrades the data", Upgrade: p.result}, nil
}

func (p *upgradePods) Begin(
	_ context.Context, _, _ string, _ protocol.Config, begin protocol.UpgradeBegin,
) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.begun, p.waits = append(p.begun, begin.ID), false
	return nil
}

func (replaying) Begin(context.Context, string, string, protocol.Config, protocol.UpgradeBegin) error {
	return nil
}

func (p *backupPods) Begin(context.Context, string, string, protocol.Config, protocol.UpgradeBegin) error {
	return nil
}

// majors is a world in which a SampleDB of 17 is to become one of 18.
type majors struct {
	*world
	pods *upgradePods
}

func newMajors(t *testing.T) *majors {
	t.Helper()
	m := &majors{newWorld(t), &upgradePods{waits: true}}
	m.reconciler.Pods = m.pods
	return m
}

// upgradable is a SampleDB of two instances whose image is on record, without an archive.
func (m *majors) upgradable() *v1.SampleDB {
	m.Helper()
	return m.recorded(withoutBackup)
}

// at expects an upgrade to be at a step.
func (m *majors) at(db *v1.SampleDB, step string) *v1.UpgradeStatus {
	m.Helper()
	if db.Status.Upgrade == nil || db.Status.Upgrade.Step != step {
		m.Fatalf("expected the step %s, the upgrade is %+v", step, db.Status.Upgrade)
	}
	return db.Status.Upgrade
}

// upgradeJobs are the Jobs of upgrades, those of checks and those that upgrade the data.
func (m *majors) upgradeJobs(db *v1.SampleDB) (checks, upgrades []batchv1.Job) {
	m.Helper()
	for _, job := range m.jobs(db) {
		switch {
		case job.Labels[naming.LabelComponent] != naming.ComponentUpgrade || job.DeletionTimestamp != nil:
		case strings.Contains(job.Name, "-upgrade-check-"):
			checks = append(checks, job)
		default:
			upgrades = append(upgrades, job)
		}
	}
	return checks, upgrades
}

// podOf makes the Pod of a Job, which runs; with a result it has ended with that.
func (m *majors) podOf(job batchv1.Job, result string) *corev1.Pod {
	m.Helper()
	pod := &corev1.Pod{ObjectMeta: *job.Spec.Template.ObjectMeta.DeepCopy(), Spec: *job.Spec.Template.Spec.DeepCopy()}
	pod.Namespace, pod.Name = m.namespace, job.Name+"-pod"
	pod.OwnerReferences = []metav1.OwnerReference{
		*metav1.NewControllerRef(&job, batchv1.SchemeGroupVersion.WithKind("Job")),
	}
	m.must(m.api.Create(m.Context(), pod))
	pod.Status.Phase, pod.Status.PodIP = corev1.PodRunning, "10.9.0.3"
	pod.Status.PodIPs = []corev1.PodIP{{IP: "10.9.0.3"}}
	m.must(m.api.Status().Update(m.Context(), pod))
	if result != "" {
		m.end(pod, result)
	}
	return pod
}

// end has a Pod of an upgrade end with a result.
func (m *majors) end(pod *corev1.Pod, result string) {
	m.Helper()
	pod.Status.Phase = corev1.PodSucceeded
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: naming.ContainerUpgrade, Image: "x", ImageID: "x",
		State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Message: result}},
	}}
	m.must(m.api.Status().Update(m.Context(), pod))
}

// wants raises the version, and plays the nodes, which pull the image.
func (m *majors) wants(db *v1.SampleDB) *v1.SampleDB {
	m.Helper()
	db = m.reconcile(m.edit(db, func(db *v1.SampleDB) { db.Spec.Version = 18 }))
	db = m.reconcile(db)
	return m.pulls(db)
}

// pulls plays the nodes, which pull the image by its tag, and then by the digest that it has.
func (m *majors) pulls(db *v1.SampleDB) *v1.SampleDB {
	m.Helper()
	for range 2 {
		m.at(db, v1.UpgradePulling)
		db = m.reconcile(db)
		for ordinal := range 2 {
			job := &batchv1.Job{}
			m.read(naming.PullJob(db.Name, ordinal), job)
			if got := job.Spec.Template.Spec.Containers[0].Command; got[len(got)-1] != "18" {
				m.Errorf("it is looked for %q", got)
			}
			m.imagePodOf(job, majorImage, &protocol.ImageResult{Version: "18.1"})
		}
		db = m.reconcile(m.reconcile(db))
	}
	return db
}

// prepared is an upgrade whose Pod waits to be told to begin.
func (m *majors) prepared(db *v1.SampleDB) (*v1.SampleDB, *corev1.Pod) {
	m.Helper()
	db = m.wants(db)
	m.at(db, v1.UpgradeChecking)
	checks, _ := m.upgradeJobs(db)
	if len(checks) != 1 {
		m.Fatalf("there are the checks %v", checks)
	}
	m.podOf(checks[0], `{"from":"17.6","to":"18.1","warnings":[{"reason":"SortingMayDiffer","message":"Texts may be `+
		`sorted otherwise","objects":["app"],"more":2}]}`)
	db = m.reconcile(m.reconcile(db))
	m.at(db, v1.UpgradePreparing)
	_, jobs := m.upgradeJobs(db)
	if len(jobs) != 1 {
		m.Fatalf("there are the Jobs %v", jobs)
	}
	return db, m.podOf(jobs[0], "")
}

// closes has every instance say that no client is there any more.
func (m *majors) closes(db *v1.SampleDB) *v1.SampleDB {
	m.Helper()
	db = m.reconcile(db)
	m.at(db, v1.UpgradeClosing)
	db = m.reconcile(db)
	m.at(db, v1.UpgradeClosing)
	if !m.agents.told().Closed {
		m.Error("the agents are not told to let no client in")
	}
	m.agents.change("10.1.0.1", func(s *protocol.Status) { s.Closed = true })
	db = m.reconcile(db)
	m.at(db, v1.UpgradeUpgrading)
	return m.reconcile(db)
}

// template is the StatefulSet with the container of PostgreSQL.
func (m *majors) template(db *v1.SampleDB) (*appsv1.StatefulSet, corev1.Container) {
	m.Helper()
	set := &appsv1.StatefulSet{}
	m.read(naming.StatefulSet(db.Name), set)
	return set, set.Spec.Template.Spec.Containers[0]
}

func upgradedID(c corev1.Container) string {
	for _, e := range c.Env {
		if e.Name == naming.EnvUpgraded {
			return e.Value
		}
	}
	return ""
}

// The whole of an upgrade: the database serves with the former version until all is prepared, then all instances stop,
// the Pod is told to begin, and they start with the new version's image and the new data.
func TestAMajorUpgrade(t *testing.T) {
	m := newMajors(t)
	db, pod := m.prepared(m.upgradable())
	m.expectPrepared(db, pod)
	db = m.closes(db)
	db = m.upgradesData(db, func() {
		m.pods.mu.Lock()
		defer m.pods.mu.Unlock()
		m.pods.result = &protocol.UpgradeResult{
			From: "17.6", To: "18.1", Method: protocol.MethodLink, SystemIdentifier: newIdentifier,
		}
	})
	m.startsAnew(db, newIdentifier)
	db = m.reconcile(db)
	m.at(db, v1.UpgradeUpgraded)
	db = m.reconcile(db)
	m.expectOpened(db)
	db = m.reconcile(db)
	m.expect(db, v1.ConditionReady, metav1.ConditionTrue, v1.ReasonReady)
	m.expectAccepted(db)
}

// expectPrepared expects the database to serve as before, while the Pod of the upgrade waits.
func (m *majors) expectPrepared(db *v1.SampleDB, pod *corev1.Pod) {
	m.Helper()
	u := m.at(db, v1.UpgradePreparing)
	if u.From != 17 || u.To != 18 || u.Instance != "x-0" || u.Image != majorImage || u.WayBack != v1.WayBackCancel {
		m.Errorf("the upgrade is %+v", u)
	}
	if !slices.Equal(u.Warnings, []string{"Texts may be sorted otherwise: app, and 2 more"}) {
		m.Errorf("it warns of %q", u.Warnings)
	}
	if pod.Spec.NodeName != "worker0" {
		m.Errorf("its Pod goes to %q", pod.Spec.NodeName)
	}
	if text := m.expect(db, v1.ConditionUpgraded, metav1.ConditionFalse, v1.ReasonUpgrading); !strings.Contains(text,
		"once PostgreSQL 18 has started, there is no way back: there is no archive") {
		m.Errorf("of the way back it says %q", text)
	}
	m.expect(db, v1.ConditionAvailable, metav1.ConditionTrue, v1.ReasonPrimaryReady)
	if _, c := m.template(db); c.Image != formerImage {
		m.Errorf("meanwhile the template has %s", c.Image)
	}
	if replaced := m.kubelet(db, ""); len(replaced) > 0 {
		m.Errorf("meanwhile %q are replaced", replaced)
	}
}

// An operator that was away while the Pod of the upgrade could be asked finds what that has left.
func TestAMajorUpgradeWhosePodHasEnded(t *testing.T) {
	m := newMajors(t)
	db, pod := m.prepared(m.upgradable())
	m.upgradesData(m.closes(db), func() {
		m.end(pod, `{"from":"17.6","to":"18.1","method":"link","systemIdentifier":"`+newIdentifier+`"}`)
	})
}

// upgradesData has the instances stop, the Pod upgrade the data and say so, and the instances be asked to start with
// it.
func (m *majors) upgradesData(db *v1.SampleDB, says func()) *v1.SampleDB {
	m.Helper()
	id := db.Status.Upgrade.ID
	if set, _ := m.template(db); *set.Spec.Replicas != 0 || len(m.pods.begun) > 0 {
		m.Errorf("%d instances are to run, and the Pod was told %q", *set.Spec.Replicas, m.pods.begun)
	}
	m.stops(db)
	db = m.reconcile(db)
	if len(m.pods.begun) != 1 || m.pods.begun[0] != id {
		m.Errorf("the Pod was told %q", m.pods.begun)
	}
	m.at(db, v1.UpgradeUpgrading)
	says()
	db = m.reconcile(db)
	m.at(db, v1.UpgradeStarting)
	if db.Status.Major != 18 || db.Status.SystemIdentifier != newIdentifier {
		m.Errorf("the data is of %d, %s", db.Status.Major, db.Status.SystemIdentifier)
	}
	db = m.reconcile(db)
	set, c := m.template(db)
	if c.Image != majorImage || upgradedID(c) != id || *set.Spec.Replicas != 2 {
		m.Errorf("%d instances start with %s and %q", *set.Spec.Replicas, c.Image, upgradedID(c))
	}
	return db
}

// expectOpened expects clients to be let in, and the condition to say for how long they were not.
func (m *majors) expectOpened(db *v1.SampleDB) {
	m.Helper()
	told := m.agents.told()
	if told.Closed || told.Major != 18 || told.Upgraded != db.Status.Upgrade.ID || told.RemoveUpgraded != "" {
		m.Errorf("the agents are told %+v", told)
	}
	if words := m.expect(db, v1.ConditionUpgraded, metav1.ConditionTrue, v1.ReasonUpgraded); !strings.Contains(words,
		"PostgreSQL 18.1, from 17; no client was let in for ") {
		m.Errorf("it says %q", words)
	}
}

// expectAccepted accepts the upgrade, and expects the former data to be removed, and nothing to be written at rest.
func (m *majors) expectAccepted(db *v1.SampleDB) {
	m.Helper()
	db = m.reconcile(m.edit(db, func(db *v1.SampleDB) {
		metav1.SetMetaDataAnnotation(&db.ObjectMeta, naming.AnnotationAcceptUpgrade, "yes")
	}))
	if told := m.agents.told(); told.RemoveUpgraded != db.Status.Upgrade.ID ||
		db.Annotations[naming.AnnotationAcceptUpgrade] != "" {
		m.Errorf("accepted, the agents are told %+v", told)
	}
	m.writes.take()
	for range 3 {
		db = m.reconcile(db)
	}
	if writes := m.writes.take(); len(writes) > 0 {
		m.Errorf("at rest it writes: %v", writes)
	}
}

// hostOf is the address of an instance.
func hostOf(db *v1.SampleDB, ordinal int) string {
	return address(&appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: db.Name}}, ordinal)
}

// stops ends the Pods.
func (m *majors) stops(db *v1.SampleDB) {
	m.Helper()
	for ordinal := range 2 {
		pod := &corev1.Pod{}
		if m.find(naming.Instance(db.Name, ordinal), pod) {
			m.must(m.api.Delete(m.Context(), pod, client.GracePeriodSeconds(0)))
		}
	}
	set, _ := m.template(db)
	set.Status.ObservedGeneration, set.Status.Replicas = set.Generation, 0
	m.must(m.api.Status().Update(m.Context(), set))
}

// startsAnew makes the Pods with the new version.
func (m *majors) startsAnew(db *v1.SampleDB, identifier string) {
	m.Helper()
	m.kubelet(db, "")
	for ordinal := range 2 {
		m.agents.change(hostOf(db, ordinal), func(s *protocol.Status) {
			s.ServerVersion, s.SystemIdentifier, s.Closed = "18.1", identifier, false
		})
	}
	m.publishRoles(db)
}

// What the check has found, an upgrade that fails and one that takes too long: the former version serves on, or again,
// and the version can be set back.
func TestAMajorUpgradeThatFails(t *testing.T) {
	t.Run("the check", func(t *testing.T) {
		m := newMajors(t)
		db := m.wants(m.upgradable())
		checks, _ := m.upgradeJobs(db)
		m.podOf(checks[0],
			`{"refusals":[{"reason":"PreparedTransactions","message":"app has a prepared transaction",`+
				`"objects":["left"]}]}`)
		db = m.reconcile(m.reconcile(db))
		m.at(db, v1.UpgradeFailed)
		m.failed(db, "app has a prepared transaction: left")
		if _, jobs := m.upgradeJobs(db); len(jobs) > 0 {
			t.Error("the data is upgraded all the same")
		}
		db = m.edit(db, func(db *v1.SampleDB) {
			metav1.SetMetaDataAnnotation(&db.ObjectMeta, naming.AnnotationUpdate, "now")
		})
		if db = m.reconcile(db); db.Status.Upgrade.Step == v1.UpgradeFailed {
			t.Errorf("it is not tried again: %+v", db.Status.Upgrade)
		}
		db = m.reconcile(m.edit(db, func(db *v1.SampleDB) { db.Spec.Version = 17 }))
		if db = m.reconcile(db); db.Status.Upgrade != nil || db.Status.Major != 17 {
			t.Errorf("given up it is %+v", db.Status.Upgrade)
		}
		m.expect(db, v1.ConditionReady, metav1.ConditionTrue, v1.ReasonReady)
	})
	t.Run("the check leaves nothing", func(t *testing.T) {
		m := newMajors(t)
		db := m.wants(m.upgradable())
		checks, _ := m.upgradeJobs(db)
		m.podOf(checks[0], "Killed")
		db = m.reconcile(m.reconcile(db))
		m.at(db, v1.UpgradeFailed)
		m.failed(db, "the Pod has left no result")
	})
	t.Run("the data", func(t *testing.T) {
		m := newMajors(t)
		db, pod := m.prepared(m.upgradable())
		db = m.closes(db)
		m.stops(db)
		db = m.reconcile(db)
		m.end(pod, `{"error":"no room on the volume"}`)
		db = m.reconcile(db)
		m.at(db, v1.UpgradeFailed)
		db = m.reconcile(db)
		if set, c := m.template(db); *set.Spec.Replicas != 2 || c.Image != formerImage || upgradedID(c) != "" {
			t.Errorf("%d instances start with %s and %q", *set.Spec.Replicas, c.Image, upgradedID(c))
		}
		m.kubelet(db, "")
		if db = m.reconcile(m.reconcile(db)); m.agents.told().Closed {
			t.Error("no client is let in")
		}
		m.failed(db, "no room on the volume")
		if db.Status.Major != 17 || db.Status.SystemIdentifier != identifier {
			t.Errorf("the data is of %d, %s", db.Status.Major, db.Status.SystemIdentifier)
		}
	})
	t.Run("an instance does not answer", func(t *testing.T) {
		m := newMajors(t)
		db, _ := m.prepared(m.upgradable())
		db = m.reconcile(m.reconcile(db))
		m.at(db, v1.UpgradeClosing)
		m.now = m.now.Add(3 * time.Minute)
		db = m.reconcile(db)
		m.at(db, v1.UpgradeFailed)
		if db = m.reconcile(db); m.agents.told().Closed {
			t.Error("no client is let in")
		}
		m.failed(db, "not every instance had said")
	})
}

// failed expects the former version to serve, and the condition to say why.
func (m *majors) failed(db *v1.SampleDB, words string) {
	m.Helper()
	text := m.expect(db, v1.ConditionUpgraded, metav1.ConditionFalse, v1.ReasonUpgradeFailed)
	if !strings.Contains(text, words) || !strings.Contains(text, "PostgreSQL 17 runs as before") {
		m.Errorf("it says %q", text)
	}
	m.expect(db, v1.ConditionReady, metav1.ConditionFalse, v1.ReasonUpgradeFailed)
	m.expect(db, v1.ConditionAvailable, metav1.ConditionTrue, v1.ReasonPrimaryReady)
}

// The version of the data is a lower bound, and nothing else can be set back.
func TestAVersionBelowThatOfTheDataIsRefused(t *testing.T) {
	m := newMajors(t)
	db := m.upgradable()
	db.Spec.Version = 16
	err := m.api.Update(m.Context(), db)
	if err == nil || !strings.Contains(err.Error(), "can't go below the major version of the data") {
		t.Errorf("it says %v", err)
	}
}

// The command asks for an upgrade, shows why one has failed, and accepts one that has ended well.
func TestTheUpgradeVerb(t *testing.T) {
	m := newMajors(t)
	db := m.upgradable()
	run := func(words string, args ...string) {
		t.Helper()
		out, err := m.command(t.Context(), upgrade.UpgradeTo(), append([]string{"x"}, args...)...)
		if err != nil {
			out += err.Error()
		}
		if !strings.Contains(out, words) {
			t.Errorf("with %q it says %q, want %q", args, out, words)
		}
	}
	run("say either to which version")
	run("there is no upgrade of x to accept", "--accept")
	run("it runs PostgreSQL 17.6 already", "--to", "17")
	run("can't go below the major version of the data", "--to", "16")
	run("the upgrade to PostgreSQL 18 is asked for", "--to", "18", "--wait=false")
	db = m.wants(db)
	checks, _ := m.upgradeJobs(db)
	m.podOf(checks[0], `{"refusals":[{"reason":"PreparedTransactions","message":"app has a prepared transaction"}]}`)
	m.at(m.reconcile(m.reconcile(db)), v1.UpgradeFailed)
	run("because app has a prepared transaction", "--to", "18")
}
