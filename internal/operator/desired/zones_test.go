package desired

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/protocol"
)

func TestHowInstancesAreSpreadOverZones(t *testing.T) {
	own := &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{}}
	for name, c := range map[string]struct {
		spread   v1.ZoneSpread
		affinity *corev1.Affinity
		want     corev1.UnsatisfiableConstraintAction
	}{
		"as far as possible":                          {v1.ZoneSpreadPreferred, nil, corev1.ScheduleAnyway},
		"always, where that is required":              {v1.ZoneSpreadRequired, nil, corev1.DoNotSchedule},
		"required goes with the user's own rules":     {v1.ZoneSpreadRequired, own, corev1.DoNotSchedule},
		"what is only preferred gives way to them":    {v1.ZoneSpreadPreferred, own, ""},
		"an object from before the field has no rule": {"", nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			db := sampleDB("x", three)
			db.Spec.ZoneSpread, db.Spec.Pod.Affinity = c.spread, c.affinity
			got := corev1.UnsatisfiableConstraintAction("")
			for _, one := range podTemplate(db, settings, protocol.Config{}).Spec.TopologySpreadConstraints {
				got = one.WhenUnsatisfiable
			}
			if got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// A new operator brings the field's default, and a user may change it: neither replaces a Pod.
func TestZonesReplaceNoPod(t *testing.T) {
	was := sampleDB("x", three)
	for _, spread := range []v1.ZoneSpread{v1.ZoneSpreadPreferred, v1.ZoneSpreadRequired} {
		is := sampleDB("x", three)
		is.Spec.ZoneSpread, is.Spec.Primary = spread, &v1.PrimarySpec{Zones: []string{"a"}}
		if facets(was, settings) != facets(is, settings) {
			t.Errorf("zoneSpread %s and a preferred primary change the facets: %s, before %s",
				spread, facets(is, settings), facets(was, settings))
		}
	}
}
