package fleet

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/operator/sampledb/world"
)

// placement is in which zone each instance is, by its name; "" where that is not known.
type placement map[string]string

// tolerated is how many instances may be lost so that the others can elect and acknowledge: a majority has to be left;
// of two, one, which the Kubernetes API lets go on alone (docs/durability.md).
func (p placement) tolerated() int {
	if len(p) == 2 {
		return 1
	}
	return (len(p) - 1) / 2
}

// survives says whether writes go on whichever one zone is lost. An instance whose zone is not known may be in any.
func (p placement) survives() world.Verdict {
	zones := map[string][]string{}
	for _, name := range slices.Sorted(maps.Keys(p)) {
		zones[p[name]] = append(zones[p[name]], name)
	}
	unsure := zones[""]
	delete(zones, "")
	fullest, names := "", []string(nil)
	for _, zone := range slices.Sorted(maps.Keys(zones)) {
		if len(zones[zone]) > len(names) {
			fullest, names = zone, zones[zone]
		}
	}
	switch {
	case len(names) == len(p):
		return world.No(v1.ReasonOneZone, fmt.Sprintf(
			"all instances are in zone %s: while it is lost, nobody takes writes. %s", fullest, p.advice()))
	case len(names) > p.tolerated():
		return world.No(v1.ReasonZoneHoldsMajority,
			fmt.Sprintf("zone %s has %d of %d instances (%s): while it is lost, the "+
				"others can't elect a primary, and nobody takes writes. %s",
				fullest, len(names), len(p), strings.Join(names, ", "), p.advice()))
	case len(names)+len(unsure) > p.tolerated() && len(unsure) > 0:
		return world.Verdict{Status: metav1.ConditionUnknown, Reason: v1.ReasonZonesUnknown,
			Message: "in which zone they are is not known: " + strings.Join(unsure, ", ")}
	}
	return world.Yes(v1.ReasonZonesSpread, p.spread(zones))
}

// advice is what has to be so that the loss of a zone is survived.
func (p placement) advice() string {
	most := p.tolerated()
	if most == 1 {
		return fmt.Sprintf("Each should be in a zone of its own, which takes %d zones", len(p))
	}
	return fmt.Sprintf("At most %d should be in one zone, which takes %d zones", most, (len(p)+most-1)/most)
}

// spread says where the instances are that survive.
func (p placement) spread(zones map[string][]string) string {
	var all []string
	for _, zone := range slices.Sorted(maps.Keys(zones)) {
		all = append(all, fmt.Sprintf("%s (%s)", zone, strings.Join(zones[zone], ", ")))
	}
	out := "whichever zone is lost, the instances of the others take writes: " + strings.Join(all, ", ")
	if len(p) == 2 {
		return out + "; of two, the one that is left needs the Kubernetes API for that"
	}
	return out
}

// placement is where the wanted instances are.
func (s *fleetTopic) placement() placement {
	p := placement{}
	for _, m := range s.Config.Members {
		p[m.Name] = s.ZoneOf(m.Name)
	}
	return p
}

// SurvivesZoneLoss is the condition. There is none of a lone instance, nor where nobody speaks of zones.
func (s *fleetTopic) SurvivesZoneLoss() world.Verdict {
	p := s.placement()
	asked := s.DB.Spec.ZoneSpread == v1.ZoneSpreadRequired || len(s.PreferredZones()) > 0
	known := slices.ContainsFunc(slices.Collect(maps.Values(p)), func(zone string) bool { return zone != "" })
	if len(p) < 2 || !known && !asked {
		return world.Verdict{}
	}
	return p.survives()
}

// ZoneChanges tell that the loss of a zone would not be survived, and that it would be again.
func ZoneChanges(old, now v1.SampleDBStatus) []world.Event {
	c := world.Turned(old, now, v1.ConditionSurvivesZoneLoss)
	was := world.Condition(old, v1.ConditionSurvivesZoneLoss)
	switch {
	case c == nil:
	case c.Status == metav1.ConditionFalse:
		return []world.Event{world.Warning(world.EventZoneAtRisk, c.Message)}
	case c.Status == metav1.ConditionTrue && was != nil && was.Status == metav1.ConditionFalse:
		return []world.Event{world.Normal(world.EventZonesSpread, c.Message)}
	}
	return nil
}
