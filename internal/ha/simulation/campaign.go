package simulation

import (
	"math"

	"toban.dev/internal/ha"
)

// campaign is a vote that is being asked for.
type campaign struct {
	term uint64
	// renewal says that the candidate is a primary, which alone has a vote.
	renewal  bool
	resigned uint64
	// ended says that the leader before has surely ended.
	ended   bool
	replies map[ha.Voter]ha.VoteReply
	witness *ha.VoteReply
	waiting int
	request ha.VoteRequest
}

// startCampaign stands for the next term.
func (n *node) startCampaign(renewal bool) {
	if renewal && n.server != ha.ServerPrimary || !renewal && n.server == ha.ServerPrimary {
		return
	}
	term := max(n.highest, n.mem.Ballot.Term)
	if n.witness.ok {
		term = max(term, n.witness.ballot.Term)
	}
	c := &campaign{term: term + 1, renewal: renewal, resigned: n.resignedLeader(), ended: n.view().LeaderEnded(), replies: map[ha.Voter]ha.VoteReply{}}
	n.campaign = c
	if n.w.preVotes && !renewal {
		n.preVote(c)
		return
	}
	n.stand(c)
}

// stand makes the candidature durable, and prepares to ask.
func (n *node) stand(c *campaign) {
	m := n.mem
	m.Ballot = ha.Ballot{Term: c.term, Leader: n.name}
	n.store(m)
	n.highest = max(n.highest, c.term)
	n.later(n.w.between(1*ms, 20*ms), func() { n.prepare(c, 20) })
}

// resignedLeader is the term of the ballot where its leader has said that it has
// given it up, else 0.
func (n *node) resignedLeader() uint64 {
	b := n.mem.Ballot
	if p := n.peers[b.Leader]; p.Resigned && p.Ballot.Term == b.Term {
		return b.Term
	}
	return 0
}

// prepare stops receiving and waits until the end of the WAL is known.
func (n *node) prepare(c *campaign, tries int) {
	if n.campaign != c {
		return
	}
	if !c.renewal {
		n.stopReceiving()
		n.startStandby()
		if !n.known() {
			if tries == 0 {
				n.endCampaign(c, "EndUnknown")
				return
			}
			n.later(50*ms, func() { n.prepare(c, tries-1) })
			return
		}
	} else if n.server != ha.ServerPrimary {
		n.endCampaign(c, "NotPrimary")
		return
	}
	n.askVotes(c)
}

// askVotes sends the requests.
func (n *node) askVotes(c *campaign) {
	end := n.end()
	if c.renewal {
		end = math.MaxUint64
	}
	c.request = ha.VoteRequest{Term: c.term, Candidate: n.mem.Voter, Position: n.mem.Position(end), Resigned: c.resigned}
	n.log("asks for votes of term %d with %v", c.term, c.request.Position)
	for _, v := range n.mem.Record.Voters() {
		if v != n.mem.Voter {
			c.waiting++
			n.askVote(c, v)
		}
	}
	if n.mem.Record.Witnesses(witnessID) {
		c.waiting++
		n.askWitness(c)
	}
	n.later(1000*ms, func() { n.count(c, true) })
	n.count(c, false)
}

func (n *node) askVote(c *campaign, v ha.Voter) {
	r := c.request
	r.Voter = v
	n.ask(indexOf(v.Instance()), func(p *node, reply func(func())) {
		if p.busy() || p.starting {
			return
		}
		p.vote(r, func(answer ha.VoteReply) {
			reply(func() {
				c.replies[v] = answer
				c.waiting--
				n.count(c, false)
			})
		})
	}, nil)
}

// count looks at the votes; the last look ends the campaign.
func (n *node) count(c *campaign, last bool) {
	if n.campaign != c {
		return
	}
	own := c.request
	own.Voter = n.mem.Voter
	voting := n.voting()
	voting.Known = true
	if c.renewal {
		voting.End = 0
	}
	reply := ha.Grant(voting, own)
	if n.w.breaks(WinsAfterPromise) {
		reply = ha.VoteReply{Granted: true}
	}
	c.replies[n.mem.Voter] = reply
	t := ha.Count(n.mem, c.term, c.replies, c.witness)
	n.highest = max(n.highest, t.Term)
	if t.Newest.Newer(n.mem.Record) {
		m := n.mem
		m.Record = t.Newest
		n.store(m)
		n.endCampaign(c, "NewerRecord")
		return
	}
	switch {
	case t.Won && (c.renewal == (n.server == ha.ServerPrimary)):
		n.win(c)
	case last || c.waiting == 0:
		n.endCampaign(c, "Lost")
	}
}

func (n *node) endCampaign(c *campaign, why string) {
	n.log("campaign for %d ends: %s %v", c.term, why, c.replies)
	n.campaign = nil
	n.restUntil = n.clock() + n.w.between(300*ms, 1500*ms)
}

// win makes the new term durable; a standby's WAL of the term starts where it ends.
func (n *node) win(c *campaign) {
	n.campaign = nil
	m := n.mem
	m.Won = c.term
	if n.w.breaks(WinsAfterPromise) {
		m.Won = min(c.term, m.Ballot.Term)
	}
	m.Record.Term, m.Record.Version = c.term, m.Record.Version+1
	if !c.renewal {
		timeline := uint32(1)
		for _, s := range m.Lineage {
			timeline = max(timeline, s.Timeline)
		}
		m.Lineage = append(m.Lineage[:len(m.Lineage):len(m.Lineage)], ha.Start{Term: c.term, LSN: n.end(), Timeline: timeline + 1})
	}
	n.store(m)
	n.elected, n.lastContact = c.term, n.w.now // a majority has just answered
	if n.overtakes, n.unasked, n.onWord = c.term, false, c.resigned > 0; c.ended || c.renewal {
		n.overtakes = 0
	}
	n.log("WINS term %d at %d with record %d.%d", c.term, n.end(), m.Record.Term, m.Record.Version)
	n.w.wins(n, c.term)
	if c.renewal {
		n.takeLead(c.term)
		return
	}
	n.later(n.w.between(1*ms, 10*ms), n.startIfLeads)
}

func (n *node) startIfLeads() {
	if n.leads() && n.rebuild == nil && n.campaign == nil {
		n.startPrimary()
	}
}

// voting is how the instance is as a voter.
func (n *node) voting() ha.Voting {
	n.turn()
	return ha.Voting{Memory: n.mem, HasData: n.data == ha.DataPresent, LeaderLost: n.view().LeaderLost(), End: n.end(), Known: n.known()}
}

// vote handles a request for a vote: consider, promise, stop receiving, grant.
func (n *node) vote(r ha.VoteRequest, answer func(ha.VoteReply)) {
	if reply := n.consider(r); !reply.Granted {
		answer(reply)
		return
	}
	n.later(n.w.between(1*ms, 10*ms), func() {
		if reply := n.consider(r); !reply.Granted {
			answer(reply)
			return
		}
		if !n.w.breaks(PromiseNotDurable) {
			n.store(ha.Promise(n.mem, r))
		}
		n.highest = max(n.highest, r.Term)
		if n.w.breaks(NoRevocation) {
			n.answerVote(r, answer)
			return
		}
		n.later(n.w.between(1*ms, 20*ms), func() { n.revoke(r, 12, answer) })
	})
}

// revoke stops receiving from the leader before, and waits for the end of the WAL.
func (n *node) revoke(r ha.VoteRequest, tries int, answer func(ha.VoteReply)) {
	if n.server == ha.ServerPrimary {
		n.startStandby()
	}
	if n.following != 0 && n.following < r.Term || n.conn != nil && n.conn.term < r.Term {
		n.stopReceiving()
	}
	if n.server == ha.ServerStandby && n.conn == nil && !n.known() && tries > 0 {
		n.later(50*ms, func() { n.revoke(r, tries-1, answer) })
		return
	}
	n.answerVote(r, answer)
}

func (n *node) answerVote(r ha.VoteRequest, answer func(ha.VoteReply)) {
	reply := n.grant(r)
	if n.w.tracing {
		n.log("vote of %d for %s: %v %s (own %v)", r.Term, r.Candidate.Instance(), reply.Granted, reply.Message, reply.Position)
	}
	answer(reply)
}

// consider is the core's, or a broken one.
func (n *node) consider(r ha.VoteRequest) ha.VoteReply {
	v := n.voting()
	n.breakVote(&v, &r)
	return ha.Consider(v, r)
}

func (n *node) grant(r ha.VoteRequest) ha.VoteReply {
	v := n.voting()
	if n.w.breaks(PromiseNotDurable) {
		v.Memory = ha.Promise(v.Memory, r)
	}
	if n.w.breaks(NoRevocation) {
		v.Known = true
	}
	n.breakVote(&v, &r)
	return ha.Grant(v, r)
}

// breakVote makes a voter blind to something.
func (n *node) breakVote(v *ha.Voting, r *ha.VoteRequest) {
	switch n.w.broken {
	case PositionIgnored:
		r.Position = ha.Position{Term: math.MaxUint64}
	case TermlessPosition:
		r.Position.Term = v.Memory.Position(v.End).Term
	case VoteTwice:
		if v.Memory.Ballot.Term == r.Term {
			v.Memory.Ballot.Leader = r.Candidate.Instance()
		}
	case VoterKept:
		if r.Voter.Instance() == n.name {
			r.Voter = v.Memory.Voter
		}
		v.HasData, v.Known = true, v.Known || n.data == ha.DataEmpty
	default:
	}
}
