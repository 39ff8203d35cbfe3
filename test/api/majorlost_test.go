package api

import (
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/protocol"
)

// works is an upgrade whose Pod upgrades the data, while no instance runs.
func (m *majors) works() (*v1.SampleDB, *corev1.Pod) {
	m.Helper()
	db, pod := m.prepared(m.upgradable())
	db = m.closes(db)
	m.stops(db)
	db = m.reconcile(db)
	if len(m.pods.begun) != 1 {
		m.Fatalf("the Pod was told %q", m.pods.begun)
	}
	return db, pod
}

// answers says whether the Pods of upgrades answer from now on, and with which result.
func (p *upgradePods) answers(answer bool, result *protocol.UpgradeResult) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.silent, p.result = !answer, result
}

// lose has the node of a Pod be lost: its containers run, by what the kubelet has said last, and the node's controller
// says that it is not ready.
func (m *majors) lose(pod *corev1.Pod) {
	m.Helper()
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: naming.ContainerUpgrade, Image: "x", ImageID: "x",
		State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
	}}
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse}}
	m.must(m.api.Status().Update(m.Context(), pod))
}

// looks is how much time passes with each look of the operator.
const looks = 10 * time.Second

// passes has time pass while the operator looks again and again, and an upgrade stay at a step.
func (m *majors) passes(db *v1.SampleDB, long, every time.Duration, step string) *v1.SampleDB {
	m.Helper()
	for end := m.now.Add(long); m.now.Before(end); {
		m.now = m.now.Add(every - looks)
		db = m.reconcile(db)
		m.at(db, step)
	}
	return db
}

// A node that is lost while its Pod upgrades the data: the former version starts again on the instances that are there.
// What that Pod does from then on counts for nothing, and no other try begins before it is known to have ended.
func TestAMajorUpgradeWhoseNodeIsLost(t *testing.T) {
	m := newMajors(t)
	db, pod := m.works()
	m.pods.answers(false, nil)
	m.lose(pod)
	db = m.reconcile(db)
	db = m.passes(db, 50*time.Second, looks, v1.UpgradeUpgrading)
	if set, _ := m.template(db); *set.Spec.Replicas != 0 {
		t.Errorf("%d instances are to run before that is given up", *set.Spec.Replicas)
	}
	db = m.reconcile(db)
	m.at(db, v1.UpgradeFailed)
	if _, jobs := m.upgradeJobs(db); len(jobs) > 0 {
		t.Errorf("there are still the Jobs %v", jobs)
	}
	if set, _ := m.template(db); *set.Spec.Replicas != 0 {
		t.Errorf("%d instances are to run before that is on record", *set.Spec.Replicas)
	}
	m.startsAsBefore(db)
	m.pods.answers(true, &protocol.UpgradeResult{To: "18.1", SystemIdentifier: newIdentifier})
	db = m.reconcile(m.reconcile(db))
	m.failed(db, "on the volume of x-0 has not answered for 1m0s, and Kubernetes does not know what has become of it "+
		"(node worker0 does not answer)")
	if told := m.agents.told(); told.Upgraded != "" || told.Closed || told.Major != 17 || db.Status.Major != 17 {
		t.Errorf("the agents are told %+v", told)
	}
	m.triesAgain(db, pod)
}

// startsAsBefore has the instances start with the former version.
func (m *majors) startsAsBefore(db *v1.SampleDB) {
	m.Helper()
	db = m.reconcile(db)
	if set, c := m.template(db); *set.Spec.Replicas != 2 || c.Image != formerImage || upgradedID(c) != "" {
		m.Errorf("%d instances start with %s and %q", *set.Spec.Replicas, c.Image, upgradedID(c))
	}
	m.kubelet(db, "")
}

// triesAgain asks for another try, of which nothing is made before the Pod of the one before has gone.
func (m *majors) triesAgain(db *v1.SampleDB, before *corev1.Pod) {
	m.Helper()
	db = m.reconcile(m.edit(db, func(db *v1.SampleDB) {
		metav1.SetMetaDataAnnotation(&db.ObjectMeta, naming.AnnotationUpdate, "now")
	}))
	for looked := 0; db.Status.Upgrade.Step != v1.UpgradeChecking && looked < 10; looked++ {
		if db.Status.Upgrade.Step == v1.UpgradePulling {
			m.pullsAgain(db)
		}
		db = m.reconcile(db)
	}
	db = m.reconcile(db)
	u := m.at(db, v1.UpgradeChecking)
	if checks, jobs := m.upgradeJobs(db); len(checks)+len(jobs) > 0 ||
		!strings.Contains(u.Message, before.Name+" of the try before has ended, on node worker0") {
		m.Errorf("beside the Pod of the try before: %v, %v, %+v", checks, jobs, u)
	}
	m.must(m.api.Delete(m.Context(), before, client.GracePeriodSeconds(0)))
	db = m.reconcile(db)
	if checks, _ := m.upgradeJobs(db); len(checks) != 1 {
		m.Errorf("there are the checks %v", checks)
	}
}

// pullsAgain plays the nodes, where they are to get the image once more.
func (m *majors) pullsAgain(db *v1.SampleDB) {
	m.Helper()
	for ordinal := range 2 {
		job := &batchv1.Job{}
		if !m.find(naming.PullJob(db.Name, ordinal), job) || job.DeletionTimestamp != nil ||
			m.find(job.Name+"-"+string(job.UID[:5]), &corev1.Pod{}) {
			continue
		}
		m.imagePodOf(job, majorImage, &protocol.ImageResult{Version: "18.1"})
	}
}

// A Pod that answers has all the time that it needs. One that can't be reached, though its node is there, may be out of
// reach for minutes, and not for longer.
func TestAMajorUpgradeWhosePodIsOutOfReach(t *testing.T) {
	m := newMajors(t)
	db, _ := m.works()
	db = m.passes(db, 5*time.Hour, 20*time.Minute, v1.UpgradeUpgrading)
	m.pods.answers(false, nil)
	m.now = m.now.Add(time.Hour) // in which nobody has asked
	db = m.reconcile(db)
	db = m.passes(db, 9*time.Minute, time.Minute, v1.UpgradeUpgrading)
	m.pods.answers(true, nil)
	db = m.passes(db, 2*time.Minute, time.Minute, v1.UpgradeUpgrading)
	m.pods.answers(false, nil)
	db = m.reconcile(db)
	db = m.passes(db, 9*time.Minute, time.Minute, v1.UpgradeUpgrading)
	m.now = m.now.Add(time.Minute - looks)
	db = m.reconcile(db)
	m.at(db, v1.UpgradeFailed)
	m.startsAsBefore(db)
	m.failed(m.reconcile(m.reconcile(db)), "has not answered for 10m0s")
}
