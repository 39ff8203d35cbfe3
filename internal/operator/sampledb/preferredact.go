package sampledb

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/wal"
)

// handoverTopic hands over: to the instance that a user asks for, or to a preferred one.
type handoverTopic struct {
	fleetBase
	// preferredNext is when a hand-over to a preferred instance may begin, zero where something tells.
	preferredNext time.Time
}

// preferredZones are those in which the primary should be, the most preferred first; none where all are alike.
func (s *fleetFacts) preferredZones() []string {
	if s.db.Spec.Primary == nil {
		return nil
	}
	return s.db.Spec.Primary.Zones
}

// preferredOrder are so many instances in the order in which they should lead; nil where all are alike.
func (s *fleetFacts) preferredOrder(count int) (names []string) {
	if s.db.Spec.Primary == nil {
		return nil
	}
	rank := map[string]int{}
	for ordinal := range count {
		c := s.candidate(ordinal)
		names, rank[c.name] = append(names, c.name), c.rank
		if !c.ranked {
			rank[c.name] += len(s.preferredZones()) // as in a zone that is not preferred
		}
	}
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(rank[a], rank[b]) })
	return names
}

// candidate is what spec.primary says of an instance.
func (s *fleetFacts) candidate(ordinal int) candidate {
	c := candidate{name: naming.Instance(s.db.Name, ordinal), ranked: true}
	zones, zone := s.preferredZones(), s.zoneOf(naming.Instance(s.db.Name, ordinal))
	c.about = "zone " + cmp.Or(zone, "not known")
	if i := slices.Index(zones, zone); i >= 0 {
		c.rank = i
	} else if len(zones) > 0 {
		c.ranked = zone != ""
		if c.ranked {
			c.rank = len(zones)
		}
	}
	if slices.Contains(s.db.Spec.Primary.Avoid, int32(ordinal)) { //nolint:gosec // nine at most
		c.rank += avoided
		c.about += ", to be avoided"
	}
	return c
}

// preference is what the scope knows of it.
func (s *handoverTopic) preference() preference {
	p := preference{
		now: s.now, policy: s.db.Spec.Primary.HandOver, primary: s.primary(),
		asked: s.db.Annotations[naming.AnnotationSwitchover], unready: s.notWell(), busy: s.busyForHandOver(),
		ready: s.now, refused: s.db.Annotations[naming.AnnotationSwitchoverRefused],
	}
	if was := condition(s.db.Status, v1.ConditionReady); was != nil && was.Status == metav1.ConditionTrue {
		p.ready = was.LastTransitionTime.Time
	}
	if last, err := time.Parse(time.RFC3339, s.db.Annotations[naming.AnnotationSwitchoverAt]); err == nil {
		p.last = last
	}
	for ordinal, is := range s.fleet().instances {
		c := s.candidate(ordinal)
		c.unable, c.behind = unable(is), s.behindPrimary(c.name)
		p.candidates = append(p.candidates, c)
	}
	if p.policy == v1.HandOverInWindow {
		permission, err := s.permission()
		if p.window = permission.Window; err != nil || p.window == nil {
			p.unready = cmp.Or(p.unready, "spec.update.window can't be read")
		}
	}
	return p
}

// unable is why an instance can't take over, "" where it can.
func unable(i instance) string {
	switch {
	case !i.ready:
		return "it is not ready"
	case i.joining:
		return "it does not count for commits and votes yet"
	}
	return ""
}

// behindPrimary is how much WAL an instance has less than the primary, as both have said last, in bytes; negative where
// that is not known.
func (s *handoverTopic) behindPrimary(name string) int64 {
	end, has := s.seen.answers[s.primary()].LSN, s.seen.answers[name].LSN
	to, err := wal.ParseLSN(end)
	from, unread := wal.ParseLSN(has)
	if end == "" || has == "" || err != nil || unread != nil {
		return -1
	}
	if from >= to { // it was asked later
		return 0
	}
	return int64(to - from) //nolint:gosec // nobody is 8 EiB behind
}

// notWell is why the database is not as it should be, "" where it is: it is ready, and a commit is on as many disks as
// the spec wants.
func (s *handoverTopic) notWell() string {
	if v := s.others.readiness(); v.status != metav1.ConditionTrue {
		return v.reason
	}
	if v := s.durable(); v.status != metav1.ConditionTrue && v.reason != v1.ReasonAsynchronous {
		return v.reason
	}
	return s.moving
}

// busyForHandOver is what is under way that a hand-over would disturb, "" for nothing.
func (s *fleetFacts) busyForHandOver() string {
	switch {
	case s.stop != nil:
		return "the stop, or the start after it"
	case s.inPlace():
		return "the restore"
	case s.upgrading():
		return "the upgrade to another major version"
	case s.update != nil && s.update.Step != v1.UpdateWaiting && s.update.Step != v1.UpdateFailed:
		return "the update to another minor version"
	case s.rotates(), s.changesAuthority():
		return "the rotation"
	}
	return s.busyForStop()
}

// preferred is the decision about a hand-over. There is none of a lone instance, nor where all are alike.
func (s *handoverTopic) preferred() preferredStep {
	if s.db.Spec.Primary == nil || s.instances() < 2 {
		return preferredStep{}
	}
	if s.stop.Down() {
		return preferredStep{verdict: notTold()}
	}
	return decidePreferred(s.preference())
}

// applyPreferred asks for a switchover to a preferred instance when its time has come: as a user would, so that it goes
// on, ends, or is refused in the same way.
func (s *handoverTopic) applyPreferred(ctx context.Context) error {
	d := s.preferred()
	s.preferredNext = d.at
	if d.target == "" {
		return nil
	}
	err := s.annotate(ctx, map[string]string{
		naming.AnnotationSwitchover: d.target, naming.AnnotationSwitchoverAt: s.now.UTC().Format(time.RFC3339),
		naming.AnnotationSwitchoverRefused: "",
	})
	if err != nil {
		return fmt.Errorf("ask for a switchover to a preferred instance: %w", err)
	}
	s.addEvent(eventPreferred, d.message)
	return nil
}
