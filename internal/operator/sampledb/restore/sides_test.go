package restore

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/operator/sampledb/world/worldtest"
)

func TestARestoreInPlaceWaitsWhileThereAreTwoSides(t *testing.T) {
	target := v1.InPlaceRestore{ID: "a", Target: &v1.RestoreTarget{Time: "2026-11-20T03:15:00+09:00"}}
	for name, c := range map[string]struct {
		step   string
		change func(*Topics)
		held   bool
		wanted bool
	}{
		"there are two sides": {v1.SidesFollowing, func(*Topics) {}, true, false},
		"green serves":        {v1.SidesChanged, func(*Topics) {}, true, false},
		"there is one still":  {v1.UpgradeBackingUp, func(*Topics) {}, false, true},
		"there is one again":  {v1.UpgradeUpgraded, func(*Topics) {}, false, true},
		"it has begun":        {v1.SidesFollowing, begunRestore, false, true},
		"it was done":         {v1.SidesFollowing, func(s *Topics) { s.Config.Restored = "a" }, false, false},
		"the end of the archive": {v1.SidesFollowing, func(s *Topics) {
			s.DB.Spec.Restore = &v1.InPlaceRestore{ID: "a", Latest: true}
		}, false, true},
		"a survivor goes on": {v1.SidesFollowing, func(s *Topics) {
			s.DB.Spec.Restore = &v1.InPlaceRestore{ID: "a", Survivor: true}
		}, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := topicsOn(worldtest.OfTwoSides(c.step))
			s.DB.Spec.Restore = target.DeepCopy()
			c.change(s)
			if got := s.RestoreHeld(); got != c.held {
				t.Errorf("it is held: %v", got)
			}
			if got := s.InPlaceWanted() != nil; got != c.wanted || s.RestoreWanted() != c.wanted {
				t.Errorf("it is wanted: %v, and anything of a restore: %v", got, s.RestoreWanted())
			}
			if !c.held {
				return
			}
			if err := s.applyInPlace(t.Context()); err != nil {
				t.Fatal(err)
			}
			if s.Restore != nil || s.Restored.Status != metav1.ConditionFalse ||
				!strings.Contains(s.Restored.Message, "blue/green upgrade") {
				t.Errorf("it is %+v, and says %+v", s.Restore, s.Restored)
			}
		})
	}
}

func begunRestore(s *Topics) {
	s.DB.Status.Restore = &v1.RestoreStatus{ID: "a", Instance: "x-0"}
}
