package simulation

import (
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
	v := ha.View{Self: n.name, Members: n.config.members, SystemIdentifier: n.config.system, Async: n.config.async,
		Witness: witnessID, Wish: n.wish, Peers: make(map[string]ha.Peer, maxNodes)}
	for i := range n.heard {
		if h := &n.heard[i]; h.ok && now-h.at < peerLimit {
			v.Peers[nameOf(i)] = h.peer
		}
	}
	reachable := n.witness.ok && now-n.witness.at < witnessLimit
	v.Local = ha.Local{Data: n.data, SystemIdentifier: n.system, Memory: n.mem, Server: n.server, Known: n.known(),
		Streaming: n.streaming(), Following: n.following, Failed: n.failed, RewindFailed: n.rewindFailed, Resigned: n.resigned(),
		Silence: now - n.silentSince, Refused: n.lasting(n.refusedSince), Idle: n.lasting(n.idleSince), Stalled: n.lasting(n.stalledSince),
		Leaderless: n.lasting(n.since), Resting: now < n.restUntil, Unconfirmed: now - n.confirmedAt(),
		WitnessReachable: reachable}
	if n.server == ha.ServerStandby {
		v.Local.Received = n.end()
	}
	if v.Local.Known {
		v.Local.End = n.end()
	}
	if reachable {
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

// confirmedAt is when a majority was last heard to know of no later term.
func (n *node) confirmedAt() time.Duration {
	best := time.Duration(-1 << 60)
	voters := n.mem.Record.Voters()
	times := []time.Duration{n.clock()}
	for _, v := range voters {
		if i := indexOf(v.Instance()); i != n.index && n.supports(v) {
			times = append(times, n.heard[i].sent)
		}
	}
	for _, t := range times {
		votes := map[ha.Voter]bool{n.mem.Voter: true}
		for _, v := range voters {
			if n.supports(v) && n.heard[indexOf(v.Instance())].sent >= t {
				votes[v] = true
			}
		}
		witness := n.witness.ok && n.witness.at >= t && n.witness.ballot.Term <= n.mem.Ballot.Term
		if t > best && n.mem.Record.Elects(votes, witness) {
			best = t
		}
	}
	return best
}

// supports says whether a voter was last heard to know of no later term.
func (n *node) supports(v ha.Voter) bool {
	h := n.heard[indexOf(v.Instance())]
	return h.ok && h.peer.Voter == v && h.peer.Ballot.Term <= n.mem.Ballot.Term
}

// status is what the instance tells the others.
func (n *node) status() ha.Peer {
	v := n.view()
	leads := n.leads() && n.server == ha.ServerPrimary
	p := ha.Peer{Voter: n.mem.Voter, Data: n.data, SystemIdentifier: n.system, Ballot: n.mem.Ballot, Leading: leads,
		Resigned: n.resigned(), Lineage: n.mem.Lineage, Oldest: ha.LSN(n.oldest), Position: n.mem.Position(n.end()),
		Streaming: n.streaming(), LeaderLost: v.LeaderLost(), Eligible: v.Eligible(), Rebuilding: n.rebuild != nil}
	if n.wish.Resign {
		p.Successor = n.wish.To
	}
	return p
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
		status, record := p.status(), p.mem.Record
		reply(func() {
			n.hear(i, sent, status)
			n.learn(record)
		})
	}, func() {
		if n.refusedSince < 0 && n.mem.Ballot.Leader == nameOf(i) {
			n.refusedSince = n.clock()
		}
	})
}

// learn keeps a newer record that somebody has.
func (n *node) learn(r ha.Record) {
	if r.Newer(n.mem.Record) && r.Term <= n.mem.Ballot.Term && !n.leads() && n.campaign == nil {
		m := n.mem
		m.Record = r
		n.store(m)
	}
}

// hear takes in an answer, unless a later one is here already.
func (n *node) hear(i int, sent time.Duration, p ha.Peer) {
	if n.heard[i].ok && n.heard[i].sent > sent {
		return
	}
	now := n.clock()
	n.heard[i] = heard{p, now, sent, true}
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

// measure keeps the durations of the view up to date.
func (n *node) measure() {
	now := n.clock()
	if n.seenBallot != n.mem.Ballot {
		n.seenBallot, n.silentSince, n.refusedSince, n.idleSince = n.mem.Ballot, now, -1, -1
	}
	v := n.view()
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
}
