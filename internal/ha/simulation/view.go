package simulation

import (
	"math"
	"time"

	"toban.dev/internal/ha"
)

// Times of the agent that the core does not know.
const (
	peerLimit    = 3 * time.Second // after which an instance that does not answer is absent
	witnessLimit = time.Second     // after which the Kubernetes API is taken for away
	streamLimit  = time.Second     // after which a silent stream is broken
)

// view is what the instance knows now.
func (n *node) view() ha.View {
	now := n.clock()
	for i := range n.heard {
		if h := &n.heard[i]; h.ok && now-h.at >= peerLimit {
			h.ok = false
			delete(n.peers, nameOf(i))
		}
	}
	v := ha.View{Self: n.name, Members: n.config.members, SystemIdentifier: n.config.system, Async: n.config.async,
		Witness: witnessID, Wish: n.wish, Peers: n.peers}
	v.Local = ha.Local{Data: n.data, SystemIdentifier: n.system, Memory: n.mem, Server: n.server, Known: n.known(),
		Streaming: n.streaming(), Following: n.following, Failed: n.failed, RewindFailed: n.rewindFailed, NoRoom: n.noRoom, Resigned: n.resigned(),
		Silence: now - n.silentSince, Refused: n.lasting(n.refusedSince), Idle: n.lasting(n.idleSince), Stalled: n.lasting(n.stalledSince),
		Leaderless: n.lasting(n.since), Resting: now < n.restUntil,
		WitnessReachable: n.witness.ok && now-n.witness.at < witnessLimit}
	v.Local.Unconfirmed, v.Local.Alone = n.unconfirmed(), n.alone()
	v.Local.Holds = n.holds()
	if n.server == ha.ServerStandby {
		v.Local.Received = n.end()
	}
	if v.Local.Known {
		v.Local.End = n.end()
	}
	if v.Local.WitnessReachable {
		v.Local.WitnessBallot = n.witness.ballot
	}
	return v
}

// lasting is how long something has been so, 0 where since is negative.
func (n *node) lasting(since time.Duration) time.Duration {
	if since < 0 {
		return 0
	}
	return n.clock() - since
}

// unconfirmed is how long ago a majority was last heard to know of no later term.
func (n *node) unconfirmed() time.Duration {
	witness := time.Duration(math.MaxInt64)
	if n.witness.ok && n.witness.ballot.Term <= n.mem.Ballot.Term {
		witness = n.clock() - n.witness.at
	}
	return ha.Unconfirmed(n.mem, n.ages(), witness)
}

// alone is the same without the witness.
func (n *node) alone() time.Duration { return ha.Unconfirmed(n.mem, n.ages(), math.MaxInt64) }

// ages are how long ago those asked were that know of no later term.
func (n *node) ages() map[ha.Voter]time.Duration {
	ages := map[ha.Voter]time.Duration{}
	for _, v := range n.mem.Record.Voters() {
		if n.supports(v) {
			ages[v] = n.clock() - n.heard[indexOf(v.Instance())].sent
		}
	}
	return ages
}

// supports says whether a voter was last heard to know of no later term, and not to have lost this leader.
func (n *node) supports(v ha.Voter) bool {
	h := &n.heard[indexOf(v.Instance())]
	return h.ok && h.voter == v && h.term <= n.mem.Ballot.Term && (!h.lost || h.term < n.mem.Ballot.Term)
}

// describe is what the instance tells the others until it looks again.
func (n *node) describe(v ha.View) {
	leads := n.leads() && n.server == ha.ServerPrimary
	n.told = ha.Peer{Voter: n.mem.Voter, Data: n.data, SystemIdentifier: n.system, Ballot: n.mem.Ballot, Leading: leads,
		Resigned: n.resigned(), Defeated: v.Defeated() && (n.campaign == nil || n.campaign.term > n.mem.Ballot.Term),
		Lineage: n.mem.Lineage, Oldest: ha.LSN(n.oldest), Position: n.mem.Position(n.end()),
		Streaming: n.streaming(), LeaderLost: v.LeaderLost(), Eligible: v.Eligible(), Rebuilding: n.rebuild != nil}
	if leads {
		n.told.Written = n.end()
	}
	n.toldRecord = n.mem.Record
	if n.w.breaks(VoterKept) && n.mem.Record.Version > 0 {
		n.told.Data = ha.DataPresent
	}
	if n.wish.Resign {
		n.told.Successor = n.wish.To
	}
}

// word is what it tells the others, with a later term that it has promised since: who counts on its word must not be told less.
func (n *node) word() ha.Peer {
	told := n.told
	if n.mem.Ballot.Term > told.Ballot.Term {
		told.Ballot, told.Leading, told.Resigned, told.Defeated, told.LeaderLost = n.mem.Ballot, false, false, false, false
	}
	silent := n.seenBallot == n.mem.Ballot && n.mem.Ballot.Leader != n.name && n.clock()-n.silentSince > ha.SilenceLimit
	told.LeaderLost = told.LeaderLost || silent
	return told
}

// poll asks everybody how they are.
func (n *node) poll() {
	for i := range maxNodes {
		if i != n.index && n.w.nodes[i].exists {
			n.pollOne(i)
		}
	}
	n.pollWitness()
}

func (n *node) pollOne(i int) {
	sent := n.clock()
	n.ask(i, func(p *node, reply func(func())) {
		if p.busy() {
			return
		}
		status, record := p.word(), p.toldRecord
		reply(func() {
			n.hear(i, sent, status)
			n.learn(status.Ballot, record)
		})
	}, func() {
		if n.refusedSince < 0 && n.mem.Ballot.Leader == nameOf(i) {
			n.refusedSince = n.clock()
		}
	})
}

// learn keeps a newer record that somebody has.
func (n *node) learn(told ha.Ballot, r ha.Record) {
	if r.Newer(n.mem.Record) && n.campaign == nil {
		n.store(ha.Learn(n.mem, told, r))
	}
}

// hear takes in an answer, unless a later one is here already.
func (n *node) hear(i int, sent time.Duration, p ha.Peer) {
	if n.heard[i].ok && n.heard[i].sent > sent {
		return
	}
	now := n.clock()
	n.heard[i], n.peers[nameOf(i)] = heard{p.Voter, p.Ballot.Term, p.LeaderLost, now, sent, true}, p
	n.highest = max(n.highest, p.Ballot.Term)
	if n.mem.Ballot.Leader != nameOf(i) {
		return
	}
	n.silentSince, n.refusedSince = now, -1
	switch leads := p.Leading && p.Ballot.Term == n.mem.Ballot.Term; {
	case leads:
		n.idleSince = -1
	case n.idleSince < 0:
		n.idleSince = now
	}
}

// turn begins to measure anew when the ballot has changed.
func (n *node) turn() {
	if n.seenBallot != n.mem.Ballot {
		n.seenBallot, n.silentSince, n.refusedSince, n.idleSince = n.mem.Ballot, n.clock(), -1, -1
	}
}

// measure says in the view for how long things have been so.
func (n *node) measure(v *ha.View) {
	now := n.clock()
	leader, ok := v.Peers[n.mem.Ballot.Leader]
	led := ok && leader.Leading && leader.Ballot.Term == n.mem.Ballot.Term && !v.LeaderLost()
	switch {
	case led || n.leads() && n.server == ha.ServerPrimary:
		n.since = -1
	case n.since < 0:
		n.since = now
	}
	switch stalls := led && n.data == ha.DataPresent && !n.streaming(); {
	case !stalls:
		n.stalledSince = -1
	case n.stalledSince < 0:
		n.stalledSince = now
	}
	v.Local.Leaderless, v.Local.Stalled = n.lasting(n.since), n.lasting(n.stalledSince)
}
