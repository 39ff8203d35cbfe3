package main

import (
	"cmp"
	"slices"
	"time"
)

// gap is a time without an acknowledged write.
type gap struct{ from, to time.Duration }

func (g gap) length() time.Duration { return g.to - g.from }

// longestGap is the longest time without an acknowledgement between t0 and the
// end. The acks are in the order of their acknowledgements.
func longestGap(acks []write, t0, end time.Duration) gap {
	longest, from := gap{from: t0, to: t0}, t0
	note := func(to time.Duration) {
		if g := (gap{from, to}); g.length() > longest.length() {
			longest = g
		}
		from = max(from, to)
	}
	for _, a := range acks {
		if a.end >= t0 && a.end <= end {
			note(a.end)
		}
	}
	note(end)
	return longest
}

// steady says whether acknowledgements came all the time between two times: no
// gap is longer than the one that is allowed.
func steady(acks []write, from, to, allowed time.Duration) bool {
	return longestGap(acks, from, to).length() <= allowed
}

// reign is the time in which a leader acknowledged writes.
type reign struct {
	leader      Leader
	first, last time.Duration // its first and its last acknowledgement
	lastStart   time.Duration // when the last of its acknowledged writes was begun
}

// reigns are those of the leaders that acknowledged writes, by their first one.
func reigns(acks []write) []reign {
	byLeader := map[Leader]*reign{}
	for _, a := range acks {
		r := byLeader[a.leader]
		if r == nil {
			r = &reign{leader: a.leader, first: a.end}
			byLeader[a.leader] = r
		}
		r.first, r.last, r.lastStart = min(r.first, a.end), max(r.last, a.end), max(r.lastStart, a.start)
	}
	var all []reign
	for _, r := range byLeader {
		all = append(all, *r)
	}
	slices.SortFunc(all, func(a, b reign) int { return cmp.Compare(a.first, b.first) })
	return all
}

// overlap is what must never be: writes that were begun after a newer leader had
// acknowledged its first one, and that an older leader acknowledged. It returns how
// many, and how long after that first acknowledgement the last of them was begun.
func overlap(acks []write) (count int, length time.Duration) {
	first := map[Leader]time.Duration{}
	for _, r := range reigns(acks) {
		first[r.leader] = r.first
	}
	for _, a := range acks {
		late := time.Duration(0)
		for leader, began := range first {
			if leader != a.leader && began > first[a.leader] && a.start > began {
				late = max(late, a.start-began)
			}
		}
		if late > 0 {
			count++
			length = max(length, late)
		}
	}
	return count, length
}

// leaders are all that were seen: by the probe, or by an acknowledged write.
func leaders(sights []sight, acks []write) map[Leader]bool {
	seen := map[Leader]bool{}
	for _, s := range sights {
		if s.primary {
			seen[s.leader] = true
		}
	}
	for _, a := range acks {
		seen[a.leader] = true
	}
	return seen
}

// probeGap is how far apart two answers may be and still be taken for one time.
const probeGap = 250 * time.Millisecond

// primacy are the times in which an instance answered again and again that it is
// not in recovery.
func primacy(sights []sight, leader func(Leader) bool) []gap {
	var times []gap
	open := false
	for _, s := range sights {
		switch {
		case !s.primary || !leader(s.leader):
			open = false
		case open && s.start-times[len(times)-1].to <= probeGap:
			times[len(times)-1].to = s.end
		default:
			times, open = append(times, gap{s.start, s.end}), true
		}
	}
	return times
}

// twoPrimaries is the time in which more than one instance said that it is not in
// recovery. That alone is not wrong: what counts is what they acknowledge.
func twoPrimaries(sights []sight) time.Duration {
	byInstance := map[string][]sight{}
	for _, s := range sights {
		byInstance[s.instance] = append(byInstance[s.instance], s)
	}
	type edge struct {
		at   time.Duration
		step int
	}
	var edges []edge
	for _, own := range byInstance {
		for _, g := range primacy(own, func(Leader) bool { return true }) {
			edges = append(edges, edge{g.from, 1}, edge{g.to, -1})
		}
	}
	slices.SortFunc(edges, func(a, b edge) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.step, b.step)) })
	var total time.Duration
	primaries := 0
	for i, e := range edges {
		if primaries > 1 {
			total += e.at - edges[i-1].at
		}
		primaries += e.step
	}
	return total
}

// stages are when what leads to the end of an outage was first seen, since t0. One
// that was not seen is 0.
type stages struct {
	Writable time.Duration `json:"writable"` // the one that goes on says it is not in recovery
	Multi    time.Duration `json:"multi"`    // the first multi-host acknowledgement of the one that goes on
	Slice    time.Duration `json:"slice"`    // the EndpointSlice leads to it
	Service  time.Duration `json:"service"`  // the first acknowledgement through the Service
}

// evidence is what the stages are found in. The acknowledgements are in their order.
type evidence struct {
	sights         []sight
	routes         []route
	multi, service []write
}

// breakDown finds the stages. The one that goes on is the leader of the first
// acknowledgement after the outage.
func breakDown(e evidence, t0, end time.Duration) stages {
	outage := longestGap(e.multi, t0, end)
	next := func(acks []write, from time.Duration) (write, bool) {
		i := slices.IndexFunc(acks, func(a write) bool { return a.end >= from })
		if i < 0 {
			return write{}, false
		}
		return acks[i], true
	}
	var s stages
	first, found := next(e.multi, outage.to)
	if !found || outage.length() < steadyGap {
		return s
	}
	s.Multi = first.end - t0
	if a, found := next(e.service, longestGap(e.service, t0, end).to); found {
		s.Service = a.end - t0
	}
	own := slices.DeleteFunc(slices.Clone(e.sights), func(s sight) bool { return s.instance != first.leader.Instance })
	for _, g := range primacy(own, func(l Leader) bool { return l == first.leader }) {
		if g.from >= t0 && g.from <= first.end {
			s.Writable = g.from - t0
		}
	}
	if at, found := led(e.routes, first.leader.Instance, t0, end); found {
		s.Slice = at - t0
	}
	return s
}

// led is when the Service began to lead to an instance to which it had not led
// before: the last time between the two.
func led(routes []route, instance string, t0, end time.Duration) (at time.Duration, found bool) {
	before := true
	for _, r := range routes {
		now := slices.Contains(r.instances, instance)
		if now && !before && r.at >= t0 && r.at <= end {
			at, found = r.at, true
		}
		before = now
	}
	return at, found
}

// missing are the acknowledged ids that are not there.
func missing(acks []write, there []int64) []int64 {
	found := make(map[int64]bool, len(there))
	for _, id := range there {
		found[id] = true
	}
	var lost []int64
	for _, a := range acks {
		if !found[a.id] {
			lost = append(lost, a.id)
		}
	}
	return lost
}
