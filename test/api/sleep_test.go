package api

import (
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/protocol"
)

// poolers answers for the Pods of poolers, by their addresses.
type poolers struct {
	tells map[string]protocol.PoolTells
	// asked are the hosts that were asked last.
	asked []string
}

func (p *poolers) Waiting(_ types.UID, hosts []string, _ protocol.Config) map[string]protocol.PoolTells {
	p.asked = slices.Clone(hosts)
	out := map[string]protocol.PoolTells{}
	for _, host := range hosts {
		if tells, known := p.tells[host]; known {
			out[host] = tells
		}
	}
	return out
}

// sleeper is a world with a SampleDB that may sleep, and its poolers.
type sleeper struct {
	*taker
	poolers *poolers
}

// mayHalfHour has a SampleDB sleep when nobody has used it for half an hour.
func mayHalfHour(db *v1.SampleDB) { db.Spec.SleepAfter = "30m" }

// napping is a SampleDB of two instances, and of two poolers that answer, of which nobody has done anything for long.
func napping(t *testing.T) (*sleeper, *v1.SampleDB) {
	t.Helper()
	k, db := newWorld(t).resting("x", pooler, mayHalfHour)
	s := &sleeper{k, &poolers{tells: map[string]protocol.PoolTells{}}}
	s.reconciler.Poolers = s.poolers
	db = s.settlePooler(db)
	for i, name := range []string{"x-pool-a", "x-pool-b"} {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name, Labels: naming.Common("x")},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{
				Name: naming.ContainerPooler, Image: "registry.example/pooler:1",
			}}},
		}
		pod.Labels[naming.LabelComponent] = naming.ComponentPooler
		s.must(s.api.Create(t.Context(), pod))
		pod.Status.PodIP, pod.Status.Phase = []string{"10.9.0.1", "10.9.0.2"}[i], corev1.PodRunning
		s.must(s.api.Status().Update(t.Context(), pod))
		s.poolers.tells[pod.Status.PodIP] = protocol.PoolTells{}
	}
	s.idle(time.Minute)
	return s, s.reconcile(db)
}

// idle has both agents say for how long no client has done anything.
func (s *sleeper) idle(lasts time.Duration) {
	for _, host := range []string{"10.1.0.1", "10.1.0.2"} {
		s.agents.change(host, func(a *protocol.Status) { a.Idle = &lasts })
	}
}

// tell has both poolers say something.
func (s *sleeper) tell(tells protocol.PoolTells) {
	s.poolers.tells["10.9.0.1"], s.poolers.tells["10.9.0.2"] = tells, tells
}

// fallAsleep has a SampleDB go to sleep, from the moment in which it begins to.
func (s *sleeper) fallAsleep(db *v1.SampleDB) *v1.SampleDB {
	s.Helper()
	s.now = s.now.Add(time.Hour)
	s.idle(time.Hour)
	db = s.reconcile(db)
	s.stopStep(db, v1.StopWaiting)
	return s.stopsAsleep(db)
}

// stopsAsleep has the poolers hold, and plays the stop.
func (s *sleeper) stopsAsleep(db *v1.SampleDB) *v1.SampleDB {
	s.Helper()
	s.tell(protocol.PoolTells{Held: true})
	s.sentAway()
	s.now = s.now.Add(-9 * time.Second) // the poolers are given ten seconds
	s.archivedTo("0/6000148")
	for range 6 {
		db = s.reconcile(db)
		if db.Status.Stop.Step == v1.StopStopping {
			s.playCluster(db)
		}
	}
	s.stopStep(db, v1.StopStopped)
	return db
}

// poolerPods is how many the Deployment of the poolers asks for.
func (s *sleeper) poolerPods() int {
	d := &appsv1.Deployment{}
	s.read(naming.Pool("x"), d)
	return int(*d.Spec.Replicas)
}

// A database that nobody uses goes to sleep by the steps of a stop, keeps its poolers, and wakes for a client of them.
func TestASampleDBSleepsAndWakes(t *testing.T) {
	s, db := napping(t)
	s.expect(db, v1.ConditionReady, metav1.ConditionTrue, v1.ReasonReady)
	if told := s.agents.told(); !told.Idles || told.Holds || len(s.poolers.asked) > 0 {
		t.Errorf("used a minute ago: the agents look for clients: %t, hold: %t; the poolers %v are asked", told.Idles,
			told.Holds, s.poolers.asked)
	}
	s.now = s.now.Add(time.Hour)
	s.idle(time.Hour)
	db = s.reconcile(db)
	s.stopStep(db, v1.StopWaiting)
	s.expect(db, v1.ConditionAvailable, metav1.ConditionTrue, v1.ReasonPrimaryReady)
	s.now = s.now.Add(-9 * time.Second)
	db = s.reconcile(db)
	s.stopStep(db, v1.StopWaiting) // the poolers do not hold yet
	if told := s.agents.told(); !told.Holds || told.Closed {
		t.Errorf("before it sleeps the agents hold: %t, are closed: %t", told.Holds, told.Closed)
	}
	db = s.stopsAsleep(db)
	s.expectEvent("Sleeping", "the archive is complete")
	for _, kind := range []string{v1.ConditionReady, v1.ConditionAvailable} {
		if says := s.expect(db, kind, metav1.ConditionFalse, v1.ReasonSleeping); !strings.Contains(says, "wakes it") {
			t.Errorf("%s says %q", kind, says)
		}
	}
	s.expect(db, v1.ConditionPoolerReady, metav1.ConditionTrue, v1.ReasonPoolerServes)
	if db.Status.Stop.Asleep == "" || db.Status.Phase != "Sleeping" || s.poolerPods() != 2 ||
		len(s.poolers.asked) != 2 {
		t.Errorf("it is %s: %+v; %d poolers, asked are %v", db.Status.Phase, db.Status.Stop, s.poolerPods(),
			s.poolers.asked)
	}
	s.writes.take()
	delete(s.poolers.tells, "10.9.0.1") // what can't be heard does not wake it
	db = s.reconcile(db)
	if writes := s.writes.take(); len(writes) > 0 {
		t.Errorf("asleep it writes %v", writes)
	}
	s.poolers.tells["10.9.0.2"] = protocol.PoolTells{Held: true, Waiting: 1}
	db = s.reconcile(db)
	s.stopStep(db, v1.StopStarting)
	s.wakes(db)
}

// wakes plays the cluster until the database takes writes.
func (s *sleeper) wakes(db *v1.SampleDB) *v1.SampleDB {
	s.Helper()
	s.tell(protocol.PoolTells{Active: 1})
	for range 4 {
		db = s.reconcile(db)
		s.playCluster(db)
		s.idle(0)
	}
	s.expectEvent("Woken", "x-0 takes writes")
	s.expect(db, v1.ConditionReady, metav1.ConditionTrue, v1.ReasonReady)
	if told := s.agents.told(); told.Holds || told.Closed || db.Status.Stop != nil {
		s.Errorf("awake, the agents hold: %t, are closed: %t: %+v", told.Holds, told.Closed, db.Status.Stop)
	}
	return db
}

// What is not known, or is used, does not go to sleep, and a client that comes meanwhile takes it back.
func TestASampleDBThatIsUsedDoesNotSleep(t *testing.T) {
	s, db := napping(t)
	awake := func(when string) {
		t.Helper()
		if db = s.reconcile(db); db.Status.Stop != nil {
			t.Fatalf("%s: it goes to sleep: %+v", when, db.Status.Stop)
		}
	}
	s.now = s.now.Add(time.Hour)
	s.idle(time.Hour)
	s.agents.change("10.1.0.2", func(a *protocol.Status) { a.Idle = nil })
	awake("a standby does not say whether it is used")
	s.idle(time.Hour)
	delete(s.poolers.tells, "10.9.0.2")
	awake("a pooler does not answer")
	s.tell(protocol.PoolTells{Active: 1})
	awake("a client has a server connection")
	s.tell(protocol.PoolTells{})
	b := s.take(s.ask("now", "x"))
	s.pod(b, "x-now-a")
	awake("a backup is being taken")
	s.finishJobs(db)

	db = s.reconcile(db)
	s.stopStep(db, v1.StopWaiting)
	s.poolers.tells["10.9.0.1"] = protocol.PoolTells{Held: true, Waiting: 1}
	awake("a client waits")
	awake("it has been taken back")
	if told := s.agents.told(); told.Holds {
		t.Error("taken back, the poolers hold")
	}
	s.expect(db, v1.ConditionReady, metav1.ConditionTrue, v1.ReasonReady)
}

// An order is stronger than sleep: nothing wakes a database that is to be stopped, and its poolers go.
func TestAnOrderIsStrongerThanSleep(t *testing.T) {
	s, db := napping(t)
	db = s.fallAsleep(db)
	db = s.edit(db, stopped)
	s.tell(protocol.PoolTells{Held: true, Waiting: 3})
	for range 2 {
		db = s.reconcile(db)
	}
	if db.Status.Stop == nil || db.Status.Stop.Asleep != "" || s.poolerPods() != 0 || len(s.poolers.asked) > 0 {
		t.Errorf("stopped it is %+v, with %d poolers; asked are %v", db.Status.Stop, s.poolerPods(), s.poolers.asked)
	}
}

// A person wakes it, and it stays awake for as long as is said.
func TestASampleDBThatSleepsIsStarted(t *testing.T) {
	s, db := napping(t)
	db = s.fallAsleep(db)
	until := s.now.Add(3 * time.Hour)
	db = s.edit(db, startedAt(until.UTC().Format(time.RFC3339)))
	s.stopStep(db, v1.StopStarting)
	db = s.wakes(db)
	s.now = s.now.Add(2 * time.Hour)
	s.idle(2 * time.Hour)
	s.tell(protocol.PoolTells{})
	if db = s.reconcile(db); db.Status.Stop != nil {
		t.Errorf("kept awake until %s, at %s it is %+v", until, s.now, db.Status.Stop)
	}
	s.now = until.Add(20 * time.Minute)
	s.idle(4 * time.Hour)
	if db = s.reconcile(db); db.Status.Stop != nil {
		t.Errorf("twenty minutes after that it is %+v", db.Status.Stop)
	}
	s.now = until.Add(31 * time.Minute)
	db = s.reconcile(db)
	s.stopStep(db, v1.StopWaiting)
}

// Sleep needs a pooler, and a time that is long enough.
func TestSleepThatCanNotBeIsRefused(t *testing.T) {
	w := newWorld(t)
	for name, modify := range map[string][]func(*v1.SampleDB){
		"no pooler":     {mayHalfHour},
		"half a minute": {pooler, func(db *v1.SampleDB) { db.Spec.SleepAfter = "30s" }},
		"no duration":   {pooler, func(db *v1.SampleDB) { db.Spec.SleepAfter = "tonight" }},
	} {
		err := w.api.Create(t.Context(), w.sampleDB("x", modify...))
		if err == nil || !strings.Contains(err.Error(), "sleepAfter") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
