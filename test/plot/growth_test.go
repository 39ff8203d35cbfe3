package plot

import (
	"strings"
	"testing"
)

func TestGrowthDrawsEveryPanelWithItsAim(t *testing.T) {
	svg := Growth{Title: "costs & more", X: "things", Panels: []Panel{
		{Title: "time", Unit: "s", Aim: 60, Points: []Point{{10, 1}, {100, 20}, {1000, 61}}},
		{Title: "nothing", Unit: "core", Points: []Point{{10, 0}}},
	}}.SVG()
	for what, want := range map[string]int{
		"<circle": 4, ">aim<": 1, ">time, s<": 1, ">nothing, core<": 1, "costs &amp; more": 1, "NaN": 0, "Inf": 0,
	} {
		if got := strings.Count(svg, what); got != want {
			t.Errorf("%q is there %d times, want %d", what, got, want)
		}
	}
}

func TestADistanceIsRound(t *testing.T) {
	for most, want := range map[float64]float64{0: 1e-4, 0.05: 0.02, 60: 20, 250: 100, 1000: 250} {
		if got := distance(most); got < want*0.999 || got > want*1.001 {
			t.Errorf("for %v it is %v, want %v", most, got, want)
		}
	}
}
