package sampledb

import (
	"slices"
	"testing"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/operator/sampledb/world"
)

// The phases of annexes are where the steps of upgrades have always been: after the data is there, and before anything
// runs. What a second side does comes before what is done in place.
func TestWhereThePhasesOfAnnexesAre(t *testing.T) {
	s := scopeOf(world.Core{DB: &v1.SampleDB{}})
	var names []string
	var kinds []kind
	for _, p := range s.phases() {
		names, kinds = append(names, p.name), append(kinds, p.kind)
	}
	from := slices.Index(names, "restore")
	want := []string{"restore", "upgrade", "upgrade", "rehearsal", "readers"}
	if got := names[from : from+5]; !slices.Equal(got, want) {
		t.Errorf("they are %v", got)
	}
	if got := kinds[from : from+5]; !slices.Equal(got, []kind{gates, gates, gates, apart, apart}) {
		t.Errorf("their kinds are %v", got)
	}
	if p := s.annexes.Phases; p[len(p)-1].Before != "upgrade" {
		t.Errorf("what is done for a second side comes before %q", p[len(p)-1].Before)
	}
}
