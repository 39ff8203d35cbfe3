package api

import (
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/cli/restore"
	"toban.dev/internal/ha"
	"toban.dev/internal/naming"
	"toban.dev/internal/protocol"
)

// survivor is a spec that has the instance with the most data promoted.
func survivor(db *v1.SampleDB) {
	db.Spec.Restore = &v1.InPlaceRestore{ID: "promoted", Confirm: db.Name, Survivor: true}
}

// loseMajority has the volume of x-1 be new, and x-0 not be elected without it.
func (k *taker) loseMajority(db *v1.SampleDB) *v1.SampleDB {
	k.Helper()
	k.agents.change("10.1.0.1", func(s *protocol.Status) {
		s.Role, s.Ready, s.Reason, s.Refusal = protocol.RoleStandby, false, "LeaderUnknown", ha.RefusedNoMajority
		s.Election.Voter, s.Election.Position = "x-0.a", ha.Position{Term: 1, LSN: 0x4000000}
		s.Election.Configuration = ha.Configuration{
			Term: 1, Version: 3, Now: ha.Quorum{Voters: []ha.Voter{"x-0.a", "x-1.a"}, Acknowledgements: 2},
		}
	})
	k.empty("10.1.0.2")
	for range 2 {
		db = k.reconcile(db)
		k.now = k.now.Add(time.Minute)
	}
	return k.reconcile(db)
}

// plays plays the operator and the cluster for x.
func (k *taker) plays() {
	k.Helper()
	k.playCluster(k.reconcile(k.sample("x")))
}

// The condition names the command, and the command has the survivor go on. The archive, which has more, is named too.
func TestTheSurvivorOfALostMajorityIsPromoted(t *testing.T) {
	k, db := newWorld(t).ready("x")
	db = k.loseMajority(db)
	words := k.expect(db, v1.ConditionAvailable, metav1.ConditionFalse, v1.ReasonNoPrimary)
	for _, part := range []string{
		"the volumes of x-1 are without data", "go on with what x-0 has, up to 0/4000000",
		"lose what only the others had", "kubectl toban promote x --accept-loss",
		"which is more: kubectl toban restore x --to latest",
	} {
		if !strings.Contains(words, part) {
			t.Errorf("it does not say %q: %s", part, words)
		}
	}
	nobody := func() {}
	k.types("", nobody, restore.Promote(), "x").check(t, "say --accept-loss")
	k.types("y\n", nobody, restore.Promote(), "x", "--accept-loss").check(t, "it was not confirmed",
		"go on with what x-0 has", "x-1: PrimaryUnknown", "is lost for good")
	if k.sample("x").Spec.Restore != nil {
		t.Error("it is asked for without being confirmed")
	}
	k.types("x\n", k.plays, restore.Promote(), "x", "--accept-loss").check(t, "", "x: x-0 takes writes")

	db = k.sample("x")
	r := db.Status.Restore
	if r == nil || r.Cause != v1.CauseSurvivor || r.Instance != "x-0" || r.LSN != "0/4000000" || r.Job != "" {
		t.Fatalf("it was promoted: %+v", r)
	}
	k.expectInstances(db, 2, r.ID)
	k.expectSurvivor(db, "x-0")
	if config := k.agents.told(); config.Survivor != "x-0" || config.Restored != r.ID || config.Prepares {
		t.Errorf("the agents are told %+v", config)
	}
	words = k.expect(db, v1.ConditionRestored, metav1.ConditionTrue, v1.ReasonRestored)
	if !strings.Contains(words, "x-0 went on with the data that it had, up to 0/4000000") ||
		!strings.Contains(words, "The archive has more, up to 0/5000000") {
		t.Errorf("it says %q", words)
	}
	k.types("", nobody, restore.Promote(), "x", "--accept-loss", "--yes").
		check(t, "x-0 takes writes, so nothing needs to")

	// Another restore in place is none of the survivor's.
	db = k.edit(db, inPlace("oops", "x"))
	k.restorePod(k.inPlaceJob(db), "x-restore-a", &backRestored)
	db = k.finishInPlace(db)
	k.expectInstances(db, 2, "oops")
	k.expectSurvivor(db, "")
	if config := k.agents.told(); config.Survivor != "" {
		t.Errorf("the agents are told %+v", config)
	}
}

// expectSurvivor checks which instance the agents take for the survivor from their first moment on.
func (k *taker) expectSurvivor(db *v1.SampleDB, want string) {
	k.Helper()
	set := &appsv1.StatefulSet{}
	k.read(naming.StatefulSet(db.Name), set)
	if got := envOf(set, naming.EnvSurvivor); got != want {
		k.Errorf("the agents are told that %q has survived, want %q", got, want)
	}
}

// Without an archive it is the one way that the condition names.
func TestWithoutAnArchiveTheSurvivorIsTheOnlyWay(t *testing.T) {
	w := newWorld(t)
	k := w.taker()
	db := k.loseMajority(w.started("x", instances(2), withoutBackup))
	words := k.expect(db, v1.ConditionAvailable, metav1.ConditionFalse, v1.ReasonNoPrimary)
	if !strings.Contains(words, "kubectl toban promote x --accept-loss") || strings.Contains(words, "restore x") {
		t.Errorf("it says %q", words)
	}
	k.types("", k.plays, restore.Promote(), "x", "--accept-loss", "--yes").check(t, "", "x: x-0 takes writes")
}

// Nobody is promoted where that is not needed, or where it is not known what the others have.
func TestWhoIsNotPromotedWithALoss(t *testing.T) {
	for name, c := range map[string]struct {
		play          func(k *taker, db *v1.SampleDB) *v1.SampleDB
		reason, words string
	}{
		"one takes writes": {
			func(_ *taker, db *v1.SampleDB) *v1.SampleDB { return db }, v1.ReasonRestoreFailed, "x-0 takes writes",
		},
		"one is away": {func(k *taker, db *v1.SampleDB) *v1.SampleDB {
			k.agents.remove("10.1.0.1")
			return db
		}, v1.ReasonRestoring, "nothing is known of x-0"},
		"the majority has its data": {func(k *taker, db *v1.SampleDB) *v1.SampleDB {
			db = k.loseMajority(db)
			k.agents.change("10.1.0.1", func(s *protocol.Status) {
				s.Election.Configuration.Now.Voters = []ha.Voter{"x-0.a"}
			})
			return db
		}, v1.ReasonRestoring, "may still elect"},
		"it is not known how far its WAL goes": {func(k *taker, db *v1.SampleDB) *v1.SampleDB {
			db = k.loseMajority(db)
			k.agents.change("10.1.0.1", func(s *protocol.Status) { s.Election.Position = ha.Position{} })
			return db
		}, v1.ReasonRestoring, "how far the WAL of x-0 goes"},
	} {
		t.Run(name, func(t *testing.T) {
			k, db := newWorld(t).ready("x")
			db = k.edit(c.play(k, db), survivor)
			for range 3 {
				db = k.reconcile(db)
			}
			words := k.expect(db, v1.ConditionRestored, metav1.ConditionFalse, c.reason)
			if !strings.Contains(words, c.words) {
				t.Errorf("it says %q", words)
			}
			if r := db.Status.Restore; r == nil || r.Instance != "" || r.PreparedAt != nil {
				t.Errorf("one is promoted: %+v", r)
			}
		})
	}
}
