package api

import (
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/ha"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/desired"
	"toban.dev/internal/protocol"
)

// whenLost is a SampleDB that says what to do when its data is lost.
func whenLost(do string) func(*v1.SampleDB) {
	return func(db *v1.SampleDB) { db.Spec.Backup.WhenDataIsLost = do }
}

// loseVolume has the Pod and the claim of an instance deleted.
func (k *taker) loseVolume(db *v1.SampleDB, ordinal int) {
	k.Helper()
	pod, claim := &corev1.Pod{}, &corev1.PersistentVolumeClaim{}
	k.read(naming.Instance(db.Name, ordinal), pod)
	k.must(k.api.Delete(k.Context(), pod))
	k.read(naming.Claim(db.Name, ordinal), claim)
	k.must(k.api.Delete(k.Context(), claim))
	if k.deleting(claim.Name) {
		k.protectionOff(claim.Name)
	}
}

// loseVolumes has the Pods and the claims of both instances deleted. Those that are made anew are empty.
func (k *taker) loseVolumes(db *v1.SampleDB) *v1.SampleDB {
	k.Helper()
	for ordinal := range 2 {
		k.loseVolume(db, ordinal)
	}
	db = k.reconcile(db) // which makes the claims
	k.playCluster(db)
	for _, host := range []string{"10.1.0.1", "10.1.0.2"} {
		k.empty(host)
	}
	return db
}

// empty has an agent say that its volume is a new one.
func (k *taker) empty(host string) {
	k.agents.change(host, func(s *protocol.Status) {
		*s = protocol.Status{
			Name: s.Name, Protocol: protocol.Version, Reason: "PrimaryUnknown", Data: protocol.DataEmpty,
			Election: protocol.Election{Voter: ha.NewVoter(s.Name, "new")},
		}
	})
}

// finishInPlace plays what follows when the Pod of a restore in place has succeeded.
func (k *taker) finishInPlace(db *v1.SampleDB) *v1.SampleDB {
	k.Helper()
	for range 8 {
		db = k.reconcile(db)
		k.playCluster(db)
	}
	return k.reconcile(db)
}

func TestASampleDBWhoseDataIsLostBeginsAgain(t *testing.T) {
	k, db := newWorld(t).ready("x")
	db = k.edit(db, whenLost(v1.DataLostRestore))
	db = k.edit(db, inPlace("oops", "x"))
	k.restorePod(k.inPlaceJob(db), "x-restore-a", &backRestored)
	db = k.finishInPlace(db)
	k.expectInstances(db, 2, "oops")
	state := works
	db = k.archive(db, &state)
	k.drainEvents()

	db = k.reconcile(k.loseVolumes(db))
	r := db.Status.Restore
	if r == nil || r.Cause != v1.CauseDataLost || r.ArchiveEnd != "0/5000000" || r.ArchiveEndAt == nil {
		t.Fatalf("it is not restored: %+v", r)
	}
	if events := k.drainEvents(); !strings.Contains(events, "DataLost") ||
		!strings.Contains(events, "at least to 0/5000000") {
		t.Errorf("the events are %s", events)
	}
	k.expect(db, v1.ConditionAvailable, metav1.ConditionFalse, v1.ReasonRestoring)
	name := desired.InPlace(*desired.LatestRestore(db, r.ID), 0).JobName(db)
	if k.find(name, &batchv1.Job{}) {
		t.Error("the Job is there before the instances are told")
	}
	db = k.reconcile(db)
	if config := k.agents.told(); !config.Prepares {
		t.Errorf("the agents are told %+v", config)
	}
	job, settings := &batchv1.Job{}, &corev1.ConfigMap{}
	k.read(name, job)
	k.read(naming.RestoreConfigMap("x"), settings)
	if text := settings.Data[naming.KeyRestore]; !strings.Contains(text, `"atLeast": "0/5000000"`) {
		t.Errorf("the Pod is told %s", text)
	}
	k.restorePod(job, "x-restore-b", &backRestored)
	db = k.finishInPlace(db)
	k.expect(db, v1.ConditionReady, metav1.ConditionTrue, v1.ReasonReady)
	k.expectInstances(db, 2, r.ID)
	words := k.expect(db, v1.ConditionRestored, metav1.ConditionTrue, v1.ReasonRestored)
	if !strings.Contains(words, "at least to 0/5000000") || !strings.Contains(words, "missing") {
		t.Errorf("it says %q", words)
	}
	if config := k.agents.told(); config.Prepares || config.RestoredBefore != "oops" {
		t.Errorf("the agents are told %+v", config)
	}
	k.now = k.now.Add(time.Hour)
	db = k.reconcile(db)
	if db.Status.Restore.ID != r.ID {
		t.Errorf("it is restored once more: %+v", db.Status.Restore)
	}
}

// An instance that is away, or whose volume is not known, is not lost: nothing begins.
func TestAnInstanceThatIsAwayIsNotLost(t *testing.T) {
	for name, play := range map[string]func(k *taker, db *v1.SampleDB){
		"both are away": func(k *taker, _ *v1.SampleDB) {
			k.agents.remove("10.1.0.1")
			k.agents.remove("10.1.0.2")
		},
		"one is away, and the other is new": func(k *taker, _ *v1.SampleDB) {
			k.agents.remove("10.1.0.1")
			k.empty("10.1.0.2")
		},
		"one has data, and the other is new": func(k *taker, _ *v1.SampleDB) {
			k.agents.change("10.1.0.1", func(s *protocol.Status) {
				s.Role, s.Ready = protocol.RoleStandby, false
				s.Reason, s.Refusal = "LeaderUnknown", ha.RefusedNoMajority
			})
			k.empty("10.1.0.2")
		},
		"a volume is not there yet": func(k *taker, db *v1.SampleDB) {
			k.loseVolume(db, 0)
			k.agents.remove("10.1.0.1")
			k.empty("10.1.0.2")
		},
	} {
		t.Run(name, func(t *testing.T) {
			k, db := newWorld(t).ready("x")
			db = k.edit(db, whenLost(v1.DataLostRestore))
			play(k, db)
			for range 4 {
				k.now = k.now.Add(time.Minute)
				db = k.reconcile(db)
			}
			if db.Status.Restore != nil {
				t.Errorf("it is restored: %+v", db.Status.Restore)
			}
			for _, c := range db.Status.Conditions {
				if c.Reason == v1.ReasonDataLost {
					t.Errorf("%s says %s", c.Type, c.Message)
				}
			}
		})
	}
}

// remove lets no agent listen at an address any more.
func (a *agents) remove(host string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.answers, host)
}

// Without the permission of the spec it waits, and the command that it names brings it back.
func TestLostDataComesBackByTheCommandThatIsNamed(t *testing.T) {
	k, db := newWorld(t).ready("x")
	db = k.reconcile(k.loseVolumes(db))
	words := k.expect(db, v1.ConditionAvailable, metav1.ConditionFalse, v1.ReasonDataLost)
	if !strings.Contains(words, "kubectl toban restore x --to latest") || db.Status.Phase != "Blocked" {
		t.Errorf("the phase is %s, and it says %q", db.Status.Phase, words)
	}
	o := k.asks("", k.restores("x", backRestored, inPlaceJob), "x", "--to", "latest", "--yes")
	o.check(t, "", "It takes no writes now (DataLost)", "x: x-0 takes writes")
	if r := k.sample("x").Spec.Restore; r == nil || !r.Latest || r.Target != nil || r.Confirm != "x" {
		t.Errorf("it asks for %+v", r)
	}
}

// Where too few instances have their data, the command restores beside what is left of it.
func TestWhatIsLeftOfTheDataIsSetAside(t *testing.T) {
	k, db := newWorld(t).ready("x")
	k.agents.change("10.1.0.2", func(s *protocol.Status) {
		s.Role, s.Ready, s.Reason, s.Refusal = protocol.RoleStandby, false, "LeaderUnknown", ha.RefusedNoMajority
	})
	k.empty("10.1.0.1")
	for range 2 {
		db = k.reconcile(db)
		k.now = k.now.Add(time.Minute)
	}
	db = k.reconcile(db)
	words := k.expect(db, v1.ConditionAvailable, metav1.ConditionFalse, v1.ReasonNoPrimary)
	if !strings.Contains(words, "kubectl toban restore x --to latest") ||
		!strings.Contains(words, "the data of x-1 stays") {
		t.Errorf("it says %q", words)
	}
	db = k.edit(db, func(db *v1.SampleDB) {
		db.Spec.Restore = &v1.InPlaceRestore{ID: "again", Confirm: "x", Latest: true}
	})
	db = k.reconcile(db)
	if r := db.Status.Restore; r == nil || r.Instance != "x-1" || r.Job == "" {
		t.Errorf("it is restored: %+v", r)
	}
}

func TestWhatCantBeSaidOfLostData(t *testing.T) {
	w := newWorld(t)
	for words, change := range map[string]func(*v1.SampleDB){
		"Unsupported value": whenLost("Maybe"),
		"means no archive": func(db *v1.SampleDB) {
			db.Spec.Backup.None = true
			whenLost(v1.DataLostRestore)(db)
		},
		"must have one of these":   latestWith(&v1.InPlaceRestore{Backup: "b"}),
		"latest: true for the end": latestWith(&v1.InPlaceRestore{Latest: false}),
		"the archive; survivor":    latestWith(&v1.InPlaceRestore{Target: &v1.RestoreTarget{Name: "n"}}),
		"or both; latest":          latestWith(&v1.InPlaceRestore{Backup: "b", Survivor: true}),
	} {
		err := w.api.Create(w.Context(), w.sampleDB("y", archived, change))
		if err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%s: %v", words, err)
		}
	}
}

// latestWith is a restore to the end of the archive and something else; with neither it is to nothing.
func latestWith(r *v1.InPlaceRestore) func(*v1.SampleDB) {
	return func(db *v1.SampleDB) {
		r.ID, r.Confirm, r.Latest = "a", db.Name, r.Backup != "" || r.Target != nil
		db.Spec.Restore = r
	}
}
