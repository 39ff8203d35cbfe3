package fleet

import (
	"testing"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/ha"
	"toban.dev/internal/operator/sampledb/world"
	"toban.dev/internal/operator/sampledb/world/worldtest"
	"toban.dev/internal/protocol"
)

func TestWhatIsSaidOfAnInstanceWhileElectionsAreInVain(t *testing.T) {
	vain := world.No(v1.ReasonElectionsInVain, "")
	for name, c := range map[string]struct {
		vain            world.Verdict
		answer          *protocol.Status
		reason, message string
	}{
		"it campaigns": {vain, worldtest.Campaigned(9, "LeaderLost"), vain.Reason,
			"has seen at least 8 elections in vain"},
		"it rests": {vain, worldtest.Campaigned(9, "Resting"), vain.Reason,
			"has seen at least 8 elections in vain"},
		"it has none of it": {
			vain, worldtest.Campaigned(0, ha.RefusedNoMajority), vain.Reason, "waits for an instance to be elected",
		},
		"it can't be elected": {vain, worldtest.Campaigned(9, ha.RefusedEndUnknown), ha.RefusedEndUnknown,
			"as it is"},
		"its data is copied":   {vain, worldtest.Campaigned(0, "NoData"), "NoData", "as it is"},
		"elections are not so": {world.Verdict{}, worldtest.Campaigned(9, "LeaderLost"), "LeaderLost", "as it is"},
		"they are only slow":   {world.Verdict{}, worldtest.Campaigned(1, "Resting"), "Resting", "as it is"},
		"it has lost its quorum": {world.Verdict{}, worldtest.Campaigned(0, ha.RefusedNoMajority),
			ha.RefusedNoMajority, "as it is"},
	} {
		s := topicsOf(world.Core{Outcomes: world.Outcomes{Vain: c.vain}})
		if reason, message := s.Said(*c.answer); reason != c.reason || message != c.message {
			t.Errorf("%s: it says %s: %s", name, reason, message)
		}
	}
}

func TestCampaignsAreCountedRoughly(t *testing.T) {
	for n, want := range map[int]int{-1: 0, 0: 0, 1: 1, 3: 2, 4: 4, 7: 4, 8: 8, 1000: 512} {
		if got := roughly(n); got != want {
			t.Errorf("%d is roughly %d", n, got)
		}
	}
}
