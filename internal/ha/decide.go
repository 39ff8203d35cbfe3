package ha

import (
	"fmt"
	"slices"
)

// Decide says what the instance must do. Its rules are those of docs/ha.md, the
// first that has something to say decides.
func Decide(v View) Decision {
	v.Local.Ballot = v.latest()
	for _, rule := range rules {
		if d, ok := rule(v); ok {
			d.Ballot = v.ballotFor(d)
			return d
		}
	}
	return Decision{Action: Wait, Ballot: v.Local.Ballot, Reason: "NoRule", Message: "no rule applies"}
}

type rule func(View) (Decision, bool)

var rules = []rule{notAMember, dataUnknown, foreignData, lead, behind, follow, dataLost, clone, initialise, waitForData}

// latest is the ballot of the highest term that the instance has heard of.
func (v View) latest() Ballot {
	latest := v.Local.Ballot
	for _, name := range v.Members {
		if peer, ok := v.Peers[name]; ok && peer.Ballot.Term > latest.Term {
			latest = peer.Ballot
		}
	}
	return latest
}

// ballotFor is what the instance must have stored before it acts.
func (v View) ballotFor(d Decision) Ballot {
	if v.Local.Ballot.Term == 0 && (d.Action == Initialise || d.Action == Lead) {
		return Ballot{Term: 1, Leader: v.Self}
	}
	return v.Local.Ballot
}

// notAMember: an instance that the config does not name runs nothing.
func notAMember(v View) (Decision, bool) {
	return wait("NotAMember", "the SampleDB has no instance %s (any more)", v.Self), !slices.Contains(v.Members, v.Self)
}

// dataUnknown: unknown is not empty.
func dataUnknown(v View) (Decision, bool) {
	return wait("DataUnknown", "the data directory can't be read"), v.Local.Data == DataUnknown
}

// foreignData: data of another database system is neither served nor replaced.
func foreignData(v View) (Decision, bool) {
	foreign := v.Local.Data == DataPresent && v.SystemIdentifier != "" && v.Local.SystemIdentifier != v.SystemIdentifier
	return wait("ForeignData", "the volume holds the database system %s, but this SampleDB is %s: delete the volume if its data is not needed",
		v.Local.SystemIdentifier, v.SystemIdentifier), foreign
}

// lead: the primary of the highest term leads, and so does a lone instance with data of its own.
func lead(v View) (Decision, bool) {
	if v.Local.Data != DataPresent {
		return Decision{}, false
	}
	if v.Local.Ballot.Leader == v.Self {
		return Decision{Action: Lead, Reason: "Leader", Message: fmt.Sprintf("primary of term %d", v.Local.Ballot.Term)}, true
	}
	alone := len(v.Members) == 1 && v.Local.Ballot.Leader == ""
	return Decision{Action: Lead, Reason: "OnlyMember", Message: "the only instance, with data"}, alone
}

// behind: a standby whose next WAL the primary no longer has can never catch up.
func behind(v View) (Decision, bool) {
	leader, ok := v.leader()
	lost := ok && v.Local.Data == DataPresent && !v.Local.Streaming && v.Local.Received > 0 && leader.Oldest > v.Local.Received
	return Decision{Action: Clone, Target: v.Local.Ballot.Leader, Reason: "WALRemoved",
		Message: fmt.Sprintf("%s has removed the WAL that follows %s: copying its data anew", v.Local.Ballot.Leader, v.Local.Received)}, lost
}

// follow: an instance with data follows the primary, reachable or not.
func follow(v View) (Decision, bool) {
	if v.Local.Data != DataPresent {
		return Decision{}, false
	}
	if v.Local.Ballot.Leader == "" {
		return wait("LeaderUnknown", "there is data here, but no instance that can be reached knows which one is the primary"), true
	}
	return Decision{Action: Follow, Target: v.Local.Ballot.Leader, Reason: "Follower",
		Message: fmt.Sprintf("standby of %s", v.Local.Ballot.Leader)}, true
}

// dataLost: a primary whose data has gone must not start over with an empty one.
func dataLost(v View) (Decision, bool) {
	lost := v.Local.Ballot.Leader == v.Self && (v.SystemIdentifier != "" || v.anyPeerHasData())
	return wait("DataLost", "%s is the primary of term %d, but its volume is empty", v.Self, v.Local.Ballot.Term), lost
}

// clone: an instance without data copies that of the primary.
func clone(v View) (Decision, bool) {
	_, ok := v.leader()
	return Decision{Action: Clone, Target: v.Local.Ballot.Leader, Reason: "NoData",
		Message: fmt.Sprintf("copying the data of %s", v.Local.Ballot.Leader)}, ok
}

// initialise: the first instance makes the data, if nobody ever has.
func initialise(v View) (Decision, bool) {
	if v.SystemIdentifier != "" || v.anyPeerHasData() || v.Self != v.Members[0] {
		return Decision{}, false
	}
	unclaimed := v.Local.Ballot.Leader == "" || v.Local.Ballot.Leader == v.Self
	return Decision{Action: Initialise, Reason: "NewCluster", Message: "making a new database system"}, unclaimed
}

// waitForData: everybody else waits for somebody to copy from.
func waitForData(v View) (Decision, bool) {
	if v.Local.Ballot.Leader == "" {
		return wait("NoPrimaryYet", "waiting for %s to make the data", v.Members[0]), true
	}
	return wait("PrimaryUnreachable", "waiting for the primary %s, to copy its data", v.Local.Ballot.Leader), true
}

// leader is the primary of the highest term, if it answers, takes writes and is
// the database system that the cluster is.
func (v View) leader() (Peer, bool) {
	peer, ok := v.Peers[v.Local.Ballot.Leader]
	same := v.SystemIdentifier == "" || peer.SystemIdentifier == v.SystemIdentifier
	return peer, ok && peer.Leading && same && v.Local.Ballot.Leader != v.Self
}

func (v View) anyPeerHasData() bool {
	for _, peer := range v.Peers {
		if peer.Data != DataEmpty {
			return true
		}
	}
	return false
}

func wait(reason, format string, args ...any) Decision {
	return Decision{Action: Wait, Reason: reason, Message: fmt.Sprintf(format, args...)}
}
