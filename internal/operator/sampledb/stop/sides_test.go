package stop

import (
	"strings"
	"testing"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/operator/sampledb/world/worldtest"
)

// A stop waits for the upgrade, and holds up nothing of it.
func TestAStopWaitsForABlueGreenUpgrade(t *testing.T) {
	s := topicsOn(worldtest.OfTwoSides(v1.SidesChanged))
	busy := s.BusyForStop()
	if !strings.Contains(busy, "blue/green upgrade to PostgreSQL 18") {
		t.Errorf("it waits for %q", busy)
	}
	for step, want := range map[string]bool{
		v1.StopWaiting: false, v1.StopClosing: true, v1.StopStopped: true, v1.StopStarting: false,
	} {
		s.Stop = &v1.StopStatus{Step: step}
		if got := s.HoldsWork(); got != want || (s.NotStopped() != nil) != want {
			t.Errorf("%s: it holds up what is to be done: %v; said: %v", step, got, s.NotStopped())
		}
	}
	s = topicsOn(worldtest.OfTwoSides(v1.UpgradeUpgraded))
	s.Stop = &v1.StopStatus{Step: v1.StopWaiting}
	if busy := s.BusyForStop(); busy != "" || !s.HoldsWork() {
		t.Errorf("after the upgrade it waits for %q, and holds up what is to be done: %v", busy, s.HoldsWork())
	}
}
