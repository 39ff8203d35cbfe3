package world

import (
	"cmp"
	"slices"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
)

// Avoided is the rank of those that lead only where no other can. That of others is less.
const Avoided = 100

// Candidate is an instance that may lead.
type Candidate struct {
	Name string
	// Rank is the place in which it is preferred, 0 first. ranked says that it is known; where not, it is the best that
	// it may be.
	Rank   int
	Ranked bool
	// About is what it is preferred by, for people: its zone.
	About string
	// Unable is why it can't take over, "" where it can.
	Unable string
	// Behind is how much WAL it has less than the primary, in bytes; negative where that is not known.
	Behind int64
}

// Words are the name of a candidate, and what it is preferred by.
func (c Candidate) Words() string { return c.Name + " (" + c.About + ")" }

// PreferredZones are those in which the primary should be, the most preferred first; none where all are alike.
func (s *fleetFacts) PreferredZones() []string {
	if s.DB.Spec.Primary == nil {
		return nil
	}
	return s.DB.Spec.Primary.Zones
}

// PreferredOrder are so many instances in the order in which they should lead; nil where all are alike.
func (s *fleetFacts) PreferredOrder(count int) (names []string) {
	if s.DB.Spec.Primary == nil {
		return nil
	}
	rank := map[string]int{}
	for ordinal := range count {
		c := s.Candidate(ordinal)
		names, rank[c.Name] = append(names, c.Name), c.Rank
		if !c.Ranked {
			rank[c.Name] += len(s.PreferredZones()) // as in a zone that is not preferred
		}
	}
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(rank[a], rank[b]) })
	return names
}

// Candidate is what spec.primary says of an instance.
func (s *fleetFacts) Candidate(ordinal int) Candidate {
	c := Candidate{Name: naming.Instance(s.DB.Name, ordinal), Ranked: true}
	zones, zone := s.PreferredZones(), s.ZoneOf(naming.Instance(s.DB.Name, ordinal))
	c.About = "zone " + cmp.Or(zone, "not known")
	if i := slices.Index(zones, zone); i >= 0 {
		c.Rank = i
	} else if len(zones) > 0 {
		c.Ranked = zone != ""
		if c.Ranked {
			c.Rank = len(zones)
		}
	}
	if slices.Contains(s.DB.Spec.Primary.Avoid, int32(ordinal)) { //nolint:gosec // nine at most
		c.Rank += Avoided
		c.About += ", to be avoided"
	}
	return c
}

// BusyForHandOver is what is under way that a hand-over would disturb, "" for nothing.
func (s *fleetFacts) BusyForHandOver() string {
	switch {
	case s.Stop != nil:
		return "the stop, or the start after it"
	case s.InPlace():
		return "the restore"
	case s.Upgrading():
		return "the upgrade to another major version"
	case s.Update != nil && s.Update.Step != v1.UpdateWaiting && s.Update.Step != v1.UpdateFailed:
		return "the update to another minor version"
	case s.Rotates(), s.ChangesAuthority():
		return "the rotation"
	}
	return s.BusyForStop()
}
