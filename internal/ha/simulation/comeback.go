package simulation

import (
	"time"

	"toban.dev/internal/ha"
)

// comeback is a leader's question whether it still is one, before it lets clients in again.
type comeback struct {
	term    uint64
	asked   time.Duration
	replies map[ha.Voter]ha.VoteReply
	witness *ha.VoteReply
	over    bool
}

// confirm opens the server of a leader that has come back, if a majority says that it still is one.
func (n *node) confirm(term uint64) {
	if !n.starting || n.mem.Won != term || !n.leads() || n.w.breaks(OpensUnasked) {
		n.open(term)
		return
	}
	c := &comeback{term: term, asked: n.clock(), replies: map[ha.Voter]ha.VoteReply{
		n.mem.Voter: {Granted: true, Ballot: n.mem.Ballot, Record: n.mem.Record},
	}}
	for _, v := range n.mem.Record.Voters() {
		if v != n.mem.Voter {
			n.askConfirm(c, v)
		}
	}
	if n.mem.Record.Witnesses(witnessID) {
		n.read(func(m ha.Memory, _ int) {
			_, answer := ha.Confirm(ha.Voting{Memory: m, Witness: true}, n.asksConfirm(c, witnessID))
			c.witness = &answer
			n.countConfirmed(c)
		})
	}
	n.later(time.Second, func() {
		if !c.over && n.starting {
			n.log("is not confirmed: %v", c.replies)
			n.starting = false
		}
	})
	n.countConfirmed(c)
}

func (n *node) asksConfirm(c *comeback, v ha.Voter) ha.VoteRequest {
	return ha.VoteRequest{Term: c.term, Candidate: n.mem.Voter, Voter: v, Confirm: true}
}

func (n *node) askConfirm(c *comeback, v ha.Voter) {
	r := n.asksConfirm(c, v)
	n.ask(indexOf(v.Instance()), func(p *node, reply func(func())) {
		if p.busy() || p.starting {
			return
		}
		answer := p.confirms(r)
		reply(func() {
			c.replies[v] = answer
			n.countConfirmed(c)
		})
	}, nil)
}

// countConfirmed opens the server on a majority's word that is new enough.
func (n *node) countConfirmed(c *comeback) {
	if !c.over && n.starting && n.clock()-c.asked < ha.FenceLimit && ha.Count(n.mem, c.term, c.replies, c.witness).Won {
		c.over, n.lastContact = true, n.w.now
		n.open(c.term)
	}
}

// confirms answers a leader that has come back, and measures anew whether it is lost.
func (n *node) confirms(r ha.VoteRequest) ha.VoteReply {
	m, reply := ha.Confirm(n.voting(), r)
	if !reply.Granted {
		return reply
	}
	n.store(m)
	n.seenBallot, n.silentSince, n.refusedSince, n.idleSince = m.Ballot, n.clock(), -1, -1
	if p, ok := n.peers[m.Ballot.Leader]; ok {
		p.Resigned = false
		n.peers[m.Ballot.Leader] = p
	}
	return reply
}

// open lets clients in.
func (n *node) open(term uint64) {
	if !n.starting {
		return
	}
	n.starting = false
	if n.mem.Won != term || n.data != ha.DataPresent || n.rebuild != nil || !n.leads() && !n.w.breaks(StaleAction) {
		return
	}
	again := n.elected != term
	n.stopServer()
	n.server, n.failed, n.resignedTerm, n.elected, n.overtakes = ha.ServerPrimary, "", 0, 0, 0
	if n.cameBack = again; again {
		n.w.checkComesBack(n)
	}
	n.takeLead(term)
}
