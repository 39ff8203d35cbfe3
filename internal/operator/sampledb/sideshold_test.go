package sampledb

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/protocol"
)

// ofTwoSides is a database that is in a step of a blue/green upgrade.
func ofTwoSides(step string) *act {
	return actOf(core{db: &v1.SampleDB{
		ObjectMeta: metav1.ObjectMeta{Name: "x"},
		Status: v1.SampleDBStatus{Upgrade: &v1.UpgradeStatus{
			To: 18, Step: step, Sides: &v1.SidesStatus{Step: step, Serves: v1.SideBlue},
		}},
	}, config: protocol.Config{SystemIdentifier: "7300000000000000001", Major: 17}})
}

func TestARestoreInPlaceWaitsWhileThereAreTwoSides(t *testing.T) {
	target := v1.InPlaceRestore{ID: "a", Target: &v1.RestoreTarget{Time: "2026-11-20T03:15:00+09:00"}}
	for name, c := range map[string]struct {
		step   string
		change func(*scope)
		held   bool
		wanted bool
	}{
		"there are two sides": {v1.SidesFollowing, func(*scope) {}, true, false},
		"green serves":        {v1.SidesChanged, func(*scope) {}, true, false},
		"there is one still":  {v1.UpgradeBackingUp, func(*scope) {}, false, true},
		"there is one again":  {v1.UpgradeUpgraded, func(*scope) {}, false, true},
		"it has begun":        {v1.SidesFollowing, begunRestore, false, true},
		"it was done":         {v1.SidesFollowing, func(s *scope) { s.config.Restored = "a" }, false, false},
		"the end of the archive": {v1.SidesFollowing, func(s *scope) {
			s.db.Spec.Restore = &v1.InPlaceRestore{ID: "a", Latest: true}
		}, false, true},
		"a survivor goes on": {v1.SidesFollowing, func(s *scope) {
			s.db.Spec.Restore = &v1.InPlaceRestore{ID: "a", Survivor: true}
		}, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := scopeOn(ofTwoSides(c.step))
			s.db.Spec.Restore = target.DeepCopy()
			c.change(s)
			if got := s.restoreHeld(); got != c.held {
				t.Errorf("it is held: %v", got)
			}
			if got := s.inPlaceWanted() != nil; got != c.wanted || s.restoreWanted() != c.wanted {
				t.Errorf("it is wanted: %v, and anything of a restore: %v", got, s.restoreWanted())
			}
			if !c.held {
				return
			}
			if err := s.applyInPlace(t.Context()); err != nil {
				t.Fatal(err)
			}
			if s.restore != nil || s.restored.status != metav1.ConditionFalse ||
				!strings.Contains(s.restored.message, "blue/green upgrade") {
				t.Errorf("it is %+v, and says %+v", s.restore, s.restored)
			}
		})
	}
}

func begunRestore(s *scope) {
	s.db.Status.Restore = &v1.RestoreStatus{ID: "a", Instance: "x-0"}
}

// A stop waits for the upgrade, and holds up nothing of it.
func TestAStopWaitsForABlueGreenUpgrade(t *testing.T) {
	s := scopeOn(ofTwoSides(v1.SidesChanged))
	busy := s.busyForStop()
	if !strings.Contains(busy, "blue/green upgrade to PostgreSQL 18") {
		t.Errorf("it waits for %q", busy)
	}
	for step, want := range map[string]bool{
		v1.StopWaiting: false, v1.StopClosing: true, v1.StopStopped: true, v1.StopStarting: false,
	} {
		s.stop = &v1.StopStatus{Step: step}
		if got := s.holdsWork(); got != want || (s.notStopped() != nil) != want {
			t.Errorf("%s: it holds up what is to be done: %v; said: %v", step, got, s.notStopped())
		}
	}
	s = scopeOn(ofTwoSides(v1.UpgradeUpgraded))
	s.stop = &v1.StopStatus{Step: v1.StopWaiting}
	if busy := s.busyForStop(); busy != "" || !s.holdsWork() {
		t.Errorf("after the upgrade it waits for %q, and holds up what is to be done: %v", busy, s.holdsWork())
	}
}

func TestAPasswordIsNotRotatedWhileThereAreTwoSides(t *testing.T) {
	for step, want := range map[string]bool{v1.SidesPublishing: true, v1.SidesChanged: true, v1.UpgradeFailed: false} {
		if got := ofTwoSides(step).rotation().sides; got != want {
			t.Errorf("%s: %v", step, got)
		}
	}
}
