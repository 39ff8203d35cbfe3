package ha

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// DataNeeded says why the instance must not give up its data for a copy, nil where it may: the volume has no room for
// both, and the copy may fail. What is acknowledged must then still be on as many disks as the quorum promises, without
// this one. Before the data is given up, the view must have only what others have said since the copy began: who says
// then that it is not being rebuilt itself does not count on data here that is about to go.
func (v View) DataNeeded() *Check {
	m := v.Local.HardState
	if v.Local.Data == DataEmpty || v.Local.Data == DataIncomplete {
		return nil // there is nothing here that anybody could be led by
	}
	leader, ok := v.leader()
	if !ok || m.Configuration.Version == 0 {
		return &Check{"DataNeeded", "its data stays: it is not known who leads"}
	}
	have, lack := v.holders(leader)
	for _, q := range m.Configuration.Quorums() {
		if q.Has(m.Voter) && have < q.disks() {
			return &Check{
				"DataNeeded", fmt.Sprintf("its data stays: without it, acknowledged commits would be on %d of the "+
					"%d disks that they must be on (%s)", have, q.disks(), strings.Join(lack, ", ")),
			}
		}
	}
	return nil
}

// disks are how many keep every acknowledged commit while a voter is copied anew: as many as are promised, and half of
// the voters where the leader alone acknowledges.
func (q Quorum) disks() int { return max(q.Acknowledgements, (len(q.Voters)+1)/2) }

// holders are how many others have all that this instance can have acknowledged, and why the rest does not count.
// Whether they have a vote does not matter here.
func (v View) holders(leader Peer) (have int, lack []string) {
	stake, known := v.stake(leader)
	names := slices.Collect(maps.Keys(v.Peers))
	for _, voter := range v.Local.HardState.Configuration.Voters() {
		names = append(names, voter.Instance())
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		peer, ok := v.Peers[name]
		switch {
		case name == v.Self:
		case name == v.Local.HardState.Ballot.Leader:
			have++
		case !slices.Contains(v.Members, name):
			lack = append(lack, name+" is to be removed")
		case !ok:
			lack = append(lack, name+" does not answer")
		case peer.Data != DataPresent:
			lack = append(lack, name+" has no data")
		case peer.Rebuilding:
			lack = append(lack, name+" is being rebuilt")
		case !peer.inStep(leader):
			lack = append(lack, name+" does not follow "+v.Local.HardState.Ballot.Leader+" yet")
		case !known || peer.Position.Before(stake):
			lack = append(lack, fmt.Sprintf("%s has WAL up to %s, and must have it up to %s",
				name, peer.Position, stake))
		default:
			have++
		}
	}
	return have, lack
}

// inStep says whether an instance has taken over the leader's term history: its WAL is the beginning of the leader's,
// and so it is not about to be rewound, by which it might lose its data.
func (p Peer) inStep(leader Peer) bool {
	return len(p.TermHistory) == len(leader.TermHistory) && common(p.TermHistory,
		leader.TermHistory) == len(p.TermHistory)
}

// stake is how far commits may go that this instance has acknowledged: to the end of its WAL, or, where that is not
// known, to that of the leader's.
func (v View) stake(leader Peer) (at Position, known bool) {
	end := v.Local.end()
	if end == 0 {
		end = leader.Written
	}
	return v.Local.HardState.Position(end), end > 0
}
