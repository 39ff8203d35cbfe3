package simulation

import "toban.dev/internal/ha"

// preVote asks whether a campaign would be won. What is said then binds nobody: the campaign may be lost all the same.
func (n *node) preVote(c *campaign) {
	c.request = ha.VoteRequest{Term: c.term, Candidate: n.mem.Voter, Position: n.mem.Position(n.end()), Resigned: c.resigned, PreVote: true}
	c.replies[n.mem.Voter] = ha.VoteReply{Granted: true, Ballot: n.mem.Ballot, Record: n.mem.Record}
	for _, v := range n.mem.Record.Voters() {
		if v != n.mem.Voter {
			n.askPreVote(c, v)
		}
	}
	if n.mem.Record.Witnesses(witnessID) && n.witness.ok {
		r := c.request
		r.Voter = witnessID
		reply := ha.Consider(ha.Voting{Memory: ha.Memory{Voter: witnessID, Ballot: n.witness.ballot}, Witness: true}, r)
		c.witness = &reply
	}
	n.later(300*ms, func() { n.countPreVotes(c, true) })
	n.countPreVotes(c, false)
}

func (n *node) askPreVote(c *campaign, v ha.Voter) {
	r := c.request
	r.Voter = v
	n.ask(indexOf(v.Instance()), func(p *node, reply func(func())) {
		if p.busy() || p.starting {
			return
		}
		answer := p.consider(r)
		reply(func() {
			if n.campaign == c && c.request.PreVote {
				c.replies[v] = answer
				n.countPreVotes(c, false)
			}
		})
	}, nil)
}

// countPreVotes looks at what was said; the last look ends the campaign.
func (n *node) countPreVotes(c *campaign, last bool) {
	if n.campaign != c || !c.request.PreVote {
		return
	}
	t := ha.Count(n.mem, c.term, c.replies, c.witness)
	n.highest = max(n.highest, t.Term)
	switch {
	case t.Newest.Newer(n.mem.Record):
		m := n.mem
		m.Record = t.Newest
		n.store(m)
		n.endCampaign(c, "NewerRecord")
	case t.Won && n.mem.Ballot.Term < c.term && n.view().LeaderLost():
		c.replies, c.witness, c.request = map[ha.Voter]ha.VoteReply{}, nil, ha.VoteRequest{}
		n.stand(c)
	case t.Won || last:
		n.endCampaign(c, "WouldLose")
	}
}
