package cluster

import (
	"slices"
	"testing"

	"toban.dev/localkube/internal/image"
	"toban.dev/localkube/internal/machine"
	"toban.dev/localkube/internal/render"
	"toban.dev/localkube/internal/volume"
)

func TestUpInstallsWhatVolumesNeed(t *testing.T) {
	for _, need := range volume.Needs() {
		if !slices.Contains(toRun(), need) {
			t.Errorf("up does not install %s", need.Package)
		}
	}
}

func TestNeedsAreThoseOfEveryPart(t *testing.T) {
	for part, needs := range map[string][]machine.Need{
		"a cluster": machine.ToRun, "volumes": volume.Needs(), "building": machine.ToBuildRunc, "images": image.Needs,
	} {
		for _, need := range needs {
			if !slices.Contains(Needs(), need) {
				t.Errorf("%s: %s is left out", part, need.Package)
			}
		}
	}
}

func TestProcessesFindProgramsWhereTheCallerDoes(t *testing.T) {
	t.Setenv("PATH", "/declared")
	t.Setenv("GOGC", "")
	c := &Cluster{Config: Config{Programs: render.Programs{Containerd: "/containerd", Runc: "/runc/"}}}
	if got, want := c.environment(), []string{"PATH=/containerd:/runc:/declared"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestProcessesCollectGarbageAsOftenAsTheCaller(t *testing.T) {
	t.Setenv("GOGC", "200")
	if got := (&Cluster{}).environment(); !slices.Contains(got, "GOGC=200") {
		t.Errorf("got %q", got)
	}
}
