package bluegreen

import (
	"strings"
	"testing"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/change/bluegreen"
	"toban.dev/internal/change/major"
	"toban.dev/internal/operator/sampledb/world/worldtest"
)

// For as long as an upgrade by a second side lasts, its condition says that this strategy is on trial.
func TestTheConditionSaysThatBlueGreenIsOnTrial(t *testing.T) {
	for phase, c := range map[major.Phase]struct {
		serves  string
		onTrial bool
	}{
		bluegreen.PhasePublishing: {v1.SideBlue, true}, bluegreen.PhaseReady: {v1.SideBlue, true},
		bluegreen.PhaseChanged: {v1.SideGreen, true}, bluegreen.PhaseComingHome: {v1.SideBlue, true},
		major.PhaseUpgraded: {v1.SideBlue, false}, major.PhaseFailed: {v1.SideBlue, false},
	} {
		s := topicsOn(worldtest.OfTwoSides(string(phase)))
		s.Upgrade = s.DB.Status.Upgrade
		s.Upgrade.Sides.Serves, s.Upgrade.Message = c.serves, "it goes on"
		got := s.sidesVerdict(bluegreen.SidesDecision{Phase: phase}).Message
		if strings.Contains(got, "on trial") != c.onTrial || !strings.Contains(got, "it goes on") {
			t.Errorf("%s: it says %q", phase, got)
		}
	}
}
