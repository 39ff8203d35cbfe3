package simulation

import (
	"strconv"
	"time"

	"toban.dev/internal/ha"
)

// tick is one round of the agent: ask, decide, remember, act.
func (n *node) tick() {
	if n.busy() {
		n.later(n.busyUntil-n.w.now, n.tick)
		return
	}
	n.poll()
	n.turn()
	n.checkIsolation()
	if n.starting { // whoever starts a server does nothing else meanwhile
		n.later(n.w.between(200*ms, 350*ms), n.tick)
		return
	}
	v := n.view()
	n.measure(&v)
	d := n.decide(v)
	if d.Ballot.Term > n.mem.Ballot.Term || d.Ballot.Term == n.mem.Ballot.Term && d.Ballot != n.mem.Ballot {
		m := n.mem
		m.Ballot = d.Ballot
		n.store(m)
	}
	n.describe(v)
	if n.campaign == nil && n.rebuild == nil {
		leader := v.Peers[d.Target]
		n.later(n.w.between(1*ms, 10*ms), func() { n.act(d, leader) })
	}
	n.holdOn()
	if n.lead != nil {
		n.manage()
	}
	n.keepAlive()
	n.later(n.interval(), n.tick)
}

// interval is how long until the next look: shorter while a primary may have to be fenced.
func (n *node) interval() time.Duration {
	if n.server == ha.ServerPrimary && n.alone() > holdAfter {
		return hurried
	}
	return n.w.between(200*ms, 350*ms)
}

// decide is the core's decision, or a broken one.
func (n *node) decide(v ha.View) ha.Decision {
	if n.w.breaks(NotSuperseded) && n.server == ha.ServerPrimary && n.mem.Won == n.mem.Ballot.Term {
		return ha.Decision{Action: ha.Lead, Ballot: n.mem.Ballot, Reason: "Leader"}
	}
	n.breakFence(&v)
	if n.w.breaks(NoConfirmation) && n.leads() && !n.resigned() {
		return ha.Decision{Action: ha.Lead, Ballot: n.mem.Ballot, Reason: "Leader"}
	}
	if n.w.breaks(RenewInPlace) && n.server == ha.ServerPrimary && n.leads() && n.clock() >= n.restUntil && n.promisedLater() {
		return ha.Decision{Action: ha.Campaign, Ballot: n.mem.Ballot, Reason: "TermRenewed"}
	}
	d := ha.Decide(v)
	if n.w.breaks(NoJoinCheck) && (d.Reason == "Diverged" || d.Reason == "LeaderExpected") {
		d.Action, d.Target = ha.Follow, d.Ballot.Leader
	}
	return d
}

// breakFence makes the word of the others newer than it is.
func (n *node) breakFence(v *ha.View) {
	if n.w.breaks(NoFence) {
		v.Local.Unconfirmed = 0
	}
	if n.w.breaks(OldWord) && n.server != ha.ServerPrimary {
		v.Local.Unconfirmed -= min(v.Local.Unconfirmed, 2*time.Second)
	}
}

// promisedLater says whether another has promised a later term in which nobody leads.
func (n *node) promisedLater() bool {
	for _, p := range n.peers {
		if p.Ballot.Term > n.mem.Ballot.Term && !p.Leading {
			return true
		}
	}
	return false
}

// act does what was decided, if the instance has promised nothing else since.
func (n *node) act(d ha.Decision, leader ha.Peer) {
	stale := d.Ballot != n.mem.Ballot && !n.w.breaks(StaleAction)
	if stale || n.campaign != nil || n.rebuild != nil {
		return
	}
	if n.w.tracing && (d.Action != ha.Lead || n.server != ha.ServerPrimary) && (d.Action != ha.Follow || !n.streaming()) {
		n.log("%s %s (%s %s) ballot %v", d.Action, d.Target, d.Reason, d.Refusal, d.Ballot)
	}
	switch d.Action {
	case ha.Wait:
		n.stopServer()
	case ha.Initialise:
		n.initialise()
	case ha.Clone, ha.Rewind:
		n.startRebuild(d)
	case ha.Lead:
		n.startPrimary()
	case ha.Resign:
		n.resign()
	case ha.Fence:
		n.stopServer()
		n.failed = ""
		n.resignedTerm, n.resignedAt = n.mem.Ballot.Term, n.clock()
	default:
		n.actAsStandby(d, leader)
	}
}

// actAsStandby does what one that does not lead does.
func (n *node) actAsStandby(d ha.Decision, leader ha.Peer) {
	switch d.Action {
	case ha.Follow:
		n.follow(d, leader)
	case ha.Await:
		if !n.w.breaks(NoRevocation) {
			n.stopReceiving()
		}
		n.startStandby()
	case ha.Campaign:
		n.startCampaign(d.Reason == "TermRenewed")
	default:
	}
}

// initialise makes the data, or takes what is there for the first term's.
func (n *node) initialise() {
	w := n.w
	if n.data == ha.DataEmpty {
		w.ids++
		n.data, n.wal, n.system = ha.DataPresent, nil, nameOf(n.index)
		if w.op.system != "" && w.op.system != n.system {
			n.system = "other"
		}
	}
	w.ids++
	voter := ha.NewVoter(n.name, strconv.FormatUint(w.ids, 16))
	n.store(ha.Memory{Voter: voter, Ballot: ha.Ballot{Term: 1, Leader: n.name}, Won: 1,
		Record:  ha.Record{Term: 1, Version: 1, Now: ha.Quorum{Voters: []ha.Voter{voter}, Acknowledgements: 1}},
		Lineage: []ha.Start{{Term: 1, LSN: 0, Timeline: 1}}})
	w.wins(n, 1)
}

// startPrimary runs the server as primary, in the term that was won.
func (n *node) startPrimary() {
	if n.server == ha.ServerPrimary || n.starting {
		return
	}
	n.starting = true
	term := n.mem.Won
	if n.elected == term {
		n.overtake(term, func() { n.promote(term) })
		return
	}
	recovery := n.w.between(30*ms, 300*ms)
	if n.w.chance(0.12) {
		recovery = n.w.between(time.Second, 6*time.Second)
	}
	n.later(recovery, func() { n.overtake(term, func() { n.confirm(term) }) })
}

// promote makes the server of a winner a primary, unless it has waited for longer than what it was told counts.
func (n *node) promote(term uint64) {
	if local := n.view().Local; !local.MayServe() {
		n.log("has heard of no majority for %s: is not promoted", local.Alone)
		n.starting = false
		return
	}
	began := n.w.now
	n.later(n.w.between(30*ms, 300*ms), func() {
		if n.w.now-began > time.Second { // a pause is not held against it
			n.lastContact, n.excused = n.w.now, max(n.excused, n.w.now+pauseIsNoticedFor)
		}
		n.open(term)
	})
}

// resign stops the primary in order: what its standbys lack is sent first.
func (n *node) resign() {
	if n.server != ha.ServerPrimary || n.lead == nil {
		return
	}
	n.log("resigns")
	if n.w.breaks(PromoteBeforeStop) {
		n.resignedTerm, n.resignedAt = n.mem.Ballot.Term, n.clock()
		return
	}
	n.push()
	lead := n.lead
	lead.closing = true
	n.later(n.w.between(20*ms, 200*ms), func() {
		if n.lead == lead {
			n.stopServer()
			n.resignedTerm, n.resignedAt = n.mem.Ballot.Term, n.clock()
		}
	})
}

// serves says whether the instance is the primary of a term.
func (n *node) serves(term uint64) bool {
	return n.server == ha.ServerPrimary && n.lead != nil && n.lead.term == term && n.leads() && n.mem.Won == term
}
