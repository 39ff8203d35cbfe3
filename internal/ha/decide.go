package ha

import (
	"fmt"
	"maps"
	"slices"

	"toban.dev/internal/wal"
)

// Decide says what the instance must do. Its rules are those of docs/ha.md, the
// first that has something to say decides.
func Decide(v View) Decision {
	if latest := v.latest(); latest != v.Local.HardState.Ballot {
		// What is known of the silence of a leader is about the one before.
		v.Local.HardState.Ballot = latest
		v.Local.Silence, v.Local.Refused, v.Local.Idle, v.Local.Lost = 0, 0, 0, 0
	}
	for _, rule := range rules {
		if d := rule(v); d != nil {
			d.Ballot = v.Local.HardState.Ballot
			return *d
		}
	}
	return Decision{Action: Wait, Ballot: v.Local.HardState.Ballot, Reason: "NoRule", Message: "no rule applies"}
}

// rule is nil where it has nothing to say.
type rule func(View) *Decision

var rules = []rule{
	unelected, notAMember, dataUnknown, foreignData,
	failed, isolated, asked, unacknowledged, renewed, outdated, lead, late, unconfirmed, stopping,
	claim,
	behind, stuck, incomplete, forked, diverged, join, followElected, follow,
	campaign, await,
	dataLost, clone, initialise, waitForData,
}

// latest is the ballot of the highest term in which somebody leads or is about to, as far as
// the instance has heard, or its own.
func (v View) latest() Ballot {
	latest := v.Local.HardState.Ballot
	// One that is no member any more leads until it has handed over.
	for _, name := range slices.Sorted(maps.Keys(v.Peers)) {
		peer := v.Peers[name]
		higher := peer.Ballot.Term > latest.Term
		claimed := peer.Ballot.Term == latest.Term && v.Local.HardState.Won != latest.Term
		if (peer.Leading || peer.Underway) && (higher || claimed) {
			latest = Ballot{peer.Ballot.Term, name}
		}
	}
	if w := v.Local.WitnessBallot; w.Term > latest.Term {
		latest = w
	}
	return latest
}

// leads says that the instance has won the highest term it knows.
func (v View) leads() bool {
	m := v.Local.HardState
	return m.Won > 0 && m.Won == m.Ballot.Term && m.Ballot.Leader == v.Self && v.Local.Data == DataPresent
}

// unelected: a server that takes writes, though the agent runs it as a standby, was promoted behind its back.
func unelected(v View) *Decision {
	if !v.Local.Unelected {
		return nil
	}
	return decide(Disown, "NotElected",
		"the server was promoted, but %s was not elected: it is stopped at once, and its data is rewound or "+
			"copied from the primary", v.Self)
}

// notAMember: an instance that neither the config nor the configuration names makes no
// data. One that has data goes on as a standby until its Pod ends: a configuration that
// it has not heard of may count on its vote.
func notAMember(v View) *Decision {
	stranger := !v.Reader && !slices.Contains(v.Members,
		v.Self) && !slices.Contains(v.Local.HardState.Configuration.Voters(), v.Local.HardState.Voter)
	if !stranger || v.Local.Data != DataEmpty && v.Local.Data != DataIncomplete {
		return nil
	}
	return decide(Wait, "NotAMember", "the SampleDB has no instance %s (any more)", v.Self)
}

// dataUnknown: unknown is not empty.
func dataUnknown(v View) *Decision {
	if v.Local.Data != DataUnknown {
		return nil
	}
	return decide(Wait, "DataUnknown", "the data directory can't be read")
}

// foreignData: data of another database system is neither served nor replaced.
func foreignData(v View) *Decision {
	if v.Local.Data != DataPresent || v.SystemIdentifier == "" || v.Local.SystemIdentifier == v.SystemIdentifier {
		return nil
	}
	return decide(Wait, "ForeignData",
		"the volume holds the database system %s, but this SampleDB is %s: delete the volume if its data is not needed",
		v.Local.SystemIdentifier, v.SystemIdentifier)
}

// stopping: an instance that is told to stop does not start its server again. It still votes; and what a primary has
// left stays as it was when that stopped, until the rest of its WAL is archived.
func stopping(v View) *Decision {
	if !v.Wish.Leaving || v.Local.Server != ServerStopped {
		return nil
	}
	return decide(Wait, "Stopping", "is told to stop, and its server has stopped: it is not started again")
}

// claim: a lone instance with data and no hard state leads the first term.
func claim(v View) *Decision {
	m := v.Local.HardState
	nobody := m.Configuration.Version == 0 && m.Ballot.Term == 0 && !v.anyPeerHasData()
	if !nobody || v.Local.Data != DataPresent || len(v.Members) != 1 || v.Members[0] != v.Self {
		return nil
	}
	return decide(Initialise, "OnlyMember", "the only instance, with data: leads the first term")
}

// behind: a standby whose next WAL the primary no longer has can never catch up.
func behind(v View) *Decision {
	leader, ok := v.leader()
	if !ok || v.Local.Data != DataPresent || v.Local.Streaming || v.Local.Received == 0 ||
		leader.Oldest <= v.Local.Received {
		return nil
	}
	return v.rebuild(Clone, "WALRemoved", "%s has removed the WAL that follows %s: copying its data anew",
		v.Local.HardState.Ballot.Leader, v.Local.Received)
}

// stuck: whatever keeps a standby from streaming, a copy of the data mends it. One that has WAL of its own to replay
// streams when it has done so.
func stuck(v View) *Decision {
	replays := v.Local.Unreplayed > 0 && v.Local.Still <= StuckLimit
	if v.Local.Data != DataPresent || v.Local.Streaming || v.Local.Stalled <= StuckLimit || replays {
		return nil
	}
	if _, ok := v.leader(); !ok {
		return nil
	}
	return v.rebuild(Clone, "Stuck", "could not stream from %s for %s: copying its data anew",
		v.Local.HardState.Ballot.Leader, v.Local.Stalled)
}

// incomplete: what a rewind that was cut short left is of no use, nor is data of another major version.
func incomplete(v View) *Decision {
	if v.Local.Data != DataIncomplete {
		return nil
	}
	if _, ok := v.leader(); !ok {
		return decide(Wait, "DataIncomplete",
			"the data can't be used (a rewind was cut short, or it is of another version), and there is no primary to "+
				"copy from")
	}
	return v.rebuild(Clone, "DataIncomplete",
		"the data can't be used (a rewind was cut short, or it is of another version): copying that of %s",
		v.Local.HardState.Ballot.Leader)
}

// forked: what a server has written that was not elected is taken back. Until then the data has no vote.
func forked(v View) *Decision {
	if v.Local.Data != DataForked {
		return nil
	}
	if _, ok := v.leader(); !ok {
		return decide(Wait, "DataForked",
			"its server was promoted without an election, and there is no primary to rewind to or copy from")
	}
	if v.Local.RewindFailed {
		return v.rebuild(Clone, "DataForked",
			"its server was promoted without an election, and can't be rewound: copying the data of %s",
			v.Local.HardState.Ballot.Leader)
	}
	return v.rebuild(Rewind, "DataForked",
		"its server was promoted without an election: rewinding to the point where it parted from %s",
		v.Local.HardState.Ballot.Leader)
}

// diverged: WAL that the leader never had is taken back. A rewind goes by what has been replayed.
func diverged(v View) *Decision {
	leader, ok := v.leader()
	if !ok || v.Local.Data != DataPresent || !v.Local.Known || v.following() ||
		v.Local.HardState.canFollow(v.Local.End, leader) {
		return nil
	}
	if v.Local.Unreplayed > 0 && v.Local.Still <= StuckLimit {
		return decide(Await, "Diverged", "has WAL that %s never had, and %s to replay before that can be taken back",
			v.Local.HardState.Ballot.Leader, megabytes(v.Local.Unreplayed))
	}
	m := v.Local.HardState
	if v.Local.RewindFailed || !Rewindable(m.TermHistory, leader.TermHistory) ||
		HoldsUnnamed(m.TermHistory, v.Local.End, true) { // pg_rewind may take its timeline for another's
		return v.rebuild(Clone, "Diverged", "has WAL that %s never had; it can't be rewound: copying its data",
			v.Local.HardState.Ballot.Leader)
	}
	return v.rebuild(Rewind, "Diverged", "has WAL that %s never had: rewinding to the point where they parted",
		v.Local.HardState.Ballot.Leader)
}

// join: an instance follows a leader when its WAL is the beginning of the leader's.
func join(v View) *Decision {
	leader, ok := v.leader()
	if !ok || v.Local.Data != DataPresent {
		return nil
	}
	m := v.Local.HardState
	same := Peer{TermHistory: m.TermHistory}.inStep(leader)
	if v.following() || same || v.Local.Known && m.canFollow(v.Local.End, leader) {
		return v.standby()
	}
	return nil
}

// followElected: a standby follows whom a majority has elected while the server there is still being promoted. Until
// then it receives what both have of the terms before, and after that the new term's WAL from its first record on. One
// that has this term in its history already may have WAL of it: it waits until the leader says where that begins.
// So does a reader: no commit waits for it.
func followElected(v View) *Decision {
	m := v.Local.HardState
	elected, ok := v.electedLeader()
	able := !v.Reader && !v.following() && v.Local.Data == DataPresent && v.Local.Server == ServerStandby
	if !ok || !able || !v.Local.Known || m.hasTerm(m.Ballot.Term) || !m.canFollow(v.Local.End, elected) {
		return nil
	}
	return decide(Follow, "LeaderElected", "follows %s, which was elected and is about to lead term %d",
		m.Ballot.Leader, m.Ballot.Term).of(m.Ballot.Leader)
}

// follow: a standby keeps to its leader until that is lost.
func follow(v View) *Decision {
	if v.Local.Data != DataPresent || !v.following() || v.LeaderLost() || v.leaderMovedOn() {
		return nil
	}
	return v.standby()
}

// leaderMovedOn says that the leader of the highest term that is known follows another one by now, in a term whose
// leader is not heard here: what is received from it may be that one's.
func (v View) leaderMovedOn() bool {
	b := v.Local.HardState.Ballot
	peer, heard := v.Peers[b.Leader]
	return heard && peer.Ballot.Term > b.Term && !peer.Leading && peer.Ballot.Leader != b.Leader
}

// campaign: with the leader lost, the best candidate asks for votes.
func campaign(v View) *Decision {
	if v.Local.Data != DataPresent || !v.LeaderLost() || v.obstacle() != nil {
		return nil
	}
	return decide(Campaign, "LeaderLost", "the leader of term %d is lost: asking for votes",
		v.Local.HardState.Ballot.Term)
}

// await: an instance with data and no leader is there to vote and to be elected.
func await(v View) *Decision {
	if v.Local.Data != DataPresent {
		return nil
	}
	lost := v.LeaderLost()
	if !lost {
		return decide(Await, "LeaderExpected", "waits for %s to lead term %d",
			v.Local.HardState.Ballot.Leader, v.Local.HardState.Ballot.Term)
	}
	d := decide(Await, "LeaderUnknown", "there is data here, but no instance that can be reached leads")
	if v.following() && !v.leaderMovedOn() {
		d.Action, d.Target = Follow, v.Local.HardState.Ballot.Leader
	}
	if c := v.obstacle(); c != nil {
		d.Reason, d.Message, d.Refusal = c.Reason, c.Message, c.Reason
	}
	return d
}

// dataLost: a primary whose data has gone must not start over with an empty one.
func dataLost(v View) *Decision {
	b := v.Local.HardState.Ballot
	if b.Leader != v.Self || b.Term == 0 || v.SystemIdentifier == "" && !v.anyPeerHasData() {
		return nil
	}
	return decide(Wait, "DataLost", "%s is the primary of term %d, but its volume is empty", v.Self, b.Term)
}

// clone: an instance without data copies that of the primary.
func clone(v View) *Decision {
	if _, ok := v.leader(); !ok {
		return nil
	}
	return decide(Clone, "NoData", "copying the data of %s",
		v.Local.HardState.Ballot.Leader).of(v.Local.HardState.Ballot.Leader)
}

// initialise: the first instance makes the data, if nobody ever has.
func initialise(v View) *Decision {
	unclaimed := v.Local.HardState.Ballot.Leader == "" || v.Local.HardState.Ballot.Leader == v.Self
	if !unclaimed || v.SystemIdentifier != "" || v.anyPeerHasData() || len(v.Members) == 0 || v.Self != v.Members[0] {
		return nil
	}
	return decide(Initialise, "NewCluster", "making a new database system")
}

// waitForData: everybody else waits for somebody to copy from.
func waitForData(v View) *Decision {
	if v.Local.HardState.Ballot.Leader == "" && v.SystemIdentifier == "" && !v.anyPeerHasData() {
		return decide(Wait, "NoPrimaryYet", "waiting for %s to make the data", v.Members[0])
	}
	if _, known := v.Peers[v.Local.HardState.Ballot.Leader]; !known {
		return decide(Wait, "PrimaryUnknown",
			"there is no data here, and no instance that can be reached leads: waiting for one to copy from")
	}
	return decide(Wait, "PrimaryUnreachable", "waiting for the primary %s, to copy its data",
		v.Local.HardState.Ballot.Leader)
}

// leader is the primary of the highest term, if it answers, takes writes and is
// the database system that the cluster is.
func (v View) leader() (Peer, bool) {
	peer, ok := v.heardLeader()
	return peer, ok && peer.Leading
}

// electedLeader is the one that was elected in the highest term and does not lead yet: its server is being promoted,
// and where its WAL of that term begins is on record without a timeline.
func (v View) electedLeader() (Peer, bool) {
	peer, ok := v.heardLeader()
	elected := peer.Underway && Unpromoted(peer.TermHistory, peer.Ballot.Term)
	return peer, ok && elected && !peer.Leading
}

// heardLeader is the one of the highest term, if it is another instance of the same database system, says that it is in
// that term, and is not lost.
func (v View) heardLeader() (Peer, bool) {
	b := v.Local.HardState.Ballot
	peer, ok := v.Peers[b.Leader]
	same := v.SystemIdentifier == "" || peer.SystemIdentifier == v.SystemIdentifier
	return peer, ok && same && peer.Ballot.Term == b.Term && b.Leader != v.Self && !v.LeaderLost()
}

// following says that the server has the leader of the highest term as its upstream.
func (v View) following() bool {
	return v.Local.Server == ServerStandby &&
		v.Local.Following > 0 && v.Local.Following == v.Local.HardState.Ballot.Term
}

func (m HardState) canFollow(end wal.LSN, leader Peer) bool {
	return CanFollow(m.TermHistory, end, leader.TermHistory)
}

// standby is a decision to be one of the leader.
func (v View) standby() *Decision {
	leader := v.Local.HardState.Ballot.Leader
	return decide(Follow, "Follower", "standby of %s", leader).of(leader)
}

// rebuild is a decision to make the data anew, when it is this instance's turn:
// one at a time, by ordinal, so that the others can serve and vote meanwhile.
func (v View) rebuild(action Action, reason, format string, args ...any) *Decision {
	d := decide(action, reason, format, args...).of(v.Local.HardState.Ballot.Leader)
	for _, name := range v.Members {
		if name == v.Self {
			break
		}
		if v.rebuilding(name) {
			return v.keepData("Rebuilding", "waits until %s is rebuilt; %s", name, d.Message)
		}
	}
	if needed := v.DataNeeded(); action == Clone && v.Local.NoRoom && needed != nil {
		return v.keepData(needed.Reason,
			"%s; %s, and the volume has no room for both: enlarge it, or wait for the others",
			d.Message, needed.Message)
	}
	return d
}

// rebuilding says whether an instance is being rebuilt. A voter that has given up its data for a copy is,
// also while the copy fails.
func (v View) rebuilding(name string) bool {
	peer := v.Peers[name]
	without := peer.Data == DataEmpty || peer.Data == DataIncomplete
	return peer.Rebuilding || without && slices.Contains(v.Local.HardState.Configuration.Voters(), peer.Voter)
}

// keepData is a decision to go on with the data that is here, where it can be gone on with: what
// streams again needs no copy.
func (v View) keepData(reason, format string, args ...any) *Decision {
	d := decide(Await, reason, format, args...)
	if v.Local.Data != DataPresent {
		d.Action = Wait
	} else if join(v) != nil {
		d.Action, d.Target = Follow, v.Local.HardState.Ballot.Leader
	}
	return d
}

func (v View) anyPeerHasData() bool {
	for _, peer := range v.Peers {
		if peer.Data != DataEmpty {
			return true
		}
	}
	return false
}

// decide makes a decision with its reason.
func decide(action Action, reason, format string, args ...any) *Decision {
	return &Decision{Action: action, Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// of is the same decision about an instance.
func (d *Decision) of(target string) *Decision {
	d.Target = target
	return d
}
