package machine

import (
	"math"
	"slices"
	"time"

	"toban.dev/internal/ha"
	"toban.dev/internal/wal"
)

// How long a vote may take, and a pre-vote, which waits for no disk.
const (
	voteDeadline    = time.Second
	preVoteDeadline = 300 * time.Millisecond
	// slowestVote is how long is waited for the witness's vote where the Kubernetes API is slow.
	slowestVote = 5 * time.Second
)

// After a campaign in vain the first by ordinal tries again at once, and each of the others only after those before it
// have had the time for one. The pause grows with each further one in vain, up to mostRest: what could not be done on a
// machine that has no time for it is not done sooner by trying more often, and takes the time from what else is there.
const (
	leastRest = 50 * time.Millisecond
	restStep  = 300 * time.Millisecond
	mostRest  = 8 * time.Second
)

// steadyAfter is for how long an instance must have led until what was in vain before is forgotten.
const steadyAfter = 10 * time.Second

// vain counts what was in vain since an instance has led for long.
type vain struct {
	// polls are campaigns of any kind, and leaders that were lost soon; terms the campaigns that stood for a term.
	polls, terms int
	// last is when the last of them was.
	last time.Duration
}

// poll counts a campaign.
func (v *vain) poll(now time.Duration) { v.polls, v.last = v.polls+1, now }

// vainLasts is for how long what was in vain is told of: the longest pause is shorter.
const vainLasts = time.Minute

// InVain is how many campaigns were in vain since an instance has last led for long. It is 0 where none was in the last
// minute: then this instance does not campaign any more, and what it decides says why.
func (i *Instance) InVain() int {
	if i.now-i.vain.last > vainLasts {
		return 0
	}
	return i.vain.polls
}

// pause is the shortest pause after them, of which the longest is twice as long.
func (v vain) pause() time.Duration { return min(leastRest<<min(v.polls, 10), mostRest) }

// patience is how long an answer is waited for that usually comes within a time: it may have come too late before.
func (v vain) patience(usual time.Duration) time.Duration { return usual << min(v.terms, 3) }

// preVotePatience is the same of a pre-vote, which is no term: a voter on a busy machine may be needed, though this one
// is on a calm one.
func (v vain) preVotePatience(usual time.Duration) time.Duration { return usual << min(v.polls, 3) }

// quietRest is the longest pause where nothing comes late on this machine, and no term has been stood for in vain again
// and again: whoever is waited for may be there at any moment.
const quietRest, quietTerms = 500 * time.Millisecond, 3

// rest has no campaign begin for a while, longer by later.
func (i *Instance) rest(later time.Duration) {
	pause := i.vain.pause()
	if i.slack.own == 0 && i.vain.terms < quietTerms {
		pause = min(pause, quietRest)
	}
	i.watch.rests = i.now + pause + time.Duration(i.random.Int64N(int64(pause))) + later
	i.vain.poll(i.now)
}

// campaign is a term that is being stood for.
type campaign struct {
	term uint64
	// renewal says that the candidate is a primary, which alone has a vote, and goes on meanwhile.
	renewal bool
	// resigned is the term that its leader has given up, by its own word; ended says that the leader
	// before has surely ended.
	resigned uint64
	ended    bool
	end      wal.LSN
	poll     *poll
}

// poll is a question to all voters.
type poll struct {
	round    uint64
	request  ha.VoteRequest
	asked    time.Duration
	deadline time.Duration
	replies  map[ha.Voter]ha.VoteReply
	witness  *ha.VoteReply
	// open is how many have not answered yet, look the question to the witness.
	open int
	look uint64
}

// startCampaign stands for the next term, if it would be won.
func (i *Instance) startCampaign(renewal bool) {
	c := &campaign{term: i.highestTerm() + 1, renewal: renewal, resigned: i.resignedTerm()}
	i.campaign = c
	if renewal || !i.rules.PreVotes {
		i.stand()
		return
	}
	c.poll = i.ask(ha.VoteRequest{
		Term: c.term, Resigned: c.resigned, PreVote: true, Position: i.View().Local.Position(),
	}, i.vain.preVotePatience(preVoteDeadline+i.slack.own/4))
	i.countVotes()
}

// stand puts the candidature on disk, and learns the end of the WAL, all of which is replayed then: who is elected is
// promoted at once.
func (i *Instance) stand() {
	c := i.campaign
	c.poll, c.ended = nil, i.View().LeaderEnded()
	m := i.hardState
	m.Ballot = ha.Ballot{Term: c.term, Leader: i.name}
	i.store(m, func() {
		if i.campaign != c {
			return // it has been given up while that was written
		}
		if c.renewal {
			c.end = math.MaxUint64
			i.askVotes()
			return
		}
		i.cut(c.term, true, func(end wal.LSN, failed string) {
			if i.campaign != c {
				return
			}
			if failed != "" {
				i.log("does not ask for votes: the end of the WAL is not known", "term", c.term, "error", failed)
				i.endCampaign()
				return
			}
			c.end = end
			i.askVotes()
		})
	})
}

// askVotes asks every voter.
func (i *Instance) askVotes() {
	c := i.campaign
	position := i.hardState.Position(c.end)
	i.log("asks for votes", "term", c.term, "position", position.String())
	c.poll = i.ask(ha.VoteRequest{Term: c.term, Resigned: c.resigned, Position: position}, i.votePatience())
	i.countVotes()
}

// votePatience is how long votes are waited for: longer where the machine is busy, where votes have come too late
// before, and where the witness has one and its API is slow.
func (i *Instance) votePatience() time.Duration {
	patience := i.vain.patience(max(voteDeadline, i.slack.own/2))
	if i.hardState.Configuration.Witnesses(i.config.Witness) {
		patience = max(patience, min(3*i.witness.took, slowestVote))
	}
	return min(patience, MaxSlack)
}

// ask sends a request to all voters but this one, which has granted it.
func (i *Instance) ask(r ha.VoteRequest, patience time.Duration) *poll {
	m := i.hardState
	r.Candidate = m.Voter
	p := &poll{
		round: i.nextID(), request: r, asked: i.now, deadline: i.now + patience,
		replies: map[ha.Voter]ha.VoteReply{
			m.Voter: {Granted: true, Ballot: m.Ballot, Position: r.Position, Configuration: m.Configuration},
		},
	}
	for _, v := range m.Configuration.Voters() {
		if v == m.Voter {
			continue
		}
		r.Voter = v
		p.open++
		i.emit(AskVote{p.round, r, patience})
	}
	if uid := i.config.Witness; m.Configuration.Witnesses(uid) {
		r.Voter = ha.Voter(uid)
		i.askWitnessVote(p, r)
	}
	return p
}

// askWitnessVote asks the witness. What it says to a pre-vote is known where it has been looked at lately.
func (i *Instance) askWitnessVote(p *poll, r ha.VoteRequest) {
	p.open++
	if r.PreVote && i.witness.at != never && i.now-i.witness.at < witnessCounts {
		_, answer := ha.WitnessOperation{Vote: &r}.Apply(i.witness.seen)
		p.witness = &answer.Reply
		p.open--
		return
	}
	p.look = i.operate(ha.WitnessOperation{Vote: &r})
}

// voteAnswered counts a reply.
func (i *Instance) voteAnswered(e VoteAnswered) {
	i.news.entry(e.Voter.Instance()).progress.promised(e.Voter, e.Reply.Ballot.Term, i.now)
	p := i.currentPoll()
	if p == nil || p.round != e.Round {
		return
	}
	p.open--
	if !e.Failed {
		e.Reply.Granted = e.Reply.Granted && !i.news.forgotten[e.Voter]
		p.replies[e.Voter] = e.Reply
		if e.Reply.Granted && !p.request.PreVote {
			h := i.news.entry(e.Voter.Instance())
			h.voted, h.votedTerm = p.asked, p.request.Term
		}
		if !e.Reply.Granted {
			i.log("the vote is refused", "preVote", p.request.PreVote, "term", p.request.Term, "voter", string(e.Voter),
				"reason", e.Reply.Reason, "message", e.Reply.Message)
		}
	}
	i.count()
}

// witnessVoted counts the reply of the witness.
func (i *Instance) witnessVoted(e WitnessAnswered) {
	p := i.currentPoll()
	if p == nil || p.look != e.ID {
		return
	}
	p.open--
	if !e.Failed {
		reply := e.Answer.Reply
		p.witness = &reply
	}
	i.count()
}

// currentPoll is the question that is being asked, nil for none.
func (i *Instance) currentPoll() *poll {
	if i.campaign != nil {
		return i.campaign.poll
	}
	if i.comeback != nil {
		return i.comeback.poll
	}
	return nil
}

func (i *Instance) count() {
	if i.campaign != nil {
		i.countVotes()
	} else {
		i.countConfirmations()
	}
}

// tally counts.
func (p *poll) tally(m ha.HardState) ha.Tally {
	return ha.Count(m, p.request.Term, p.replies, p.witness)
}

// over says that no reply can change the result any more.
func (p *poll) over(now time.Duration) bool { return p.open <= 0 || now >= p.deadline }

// countVotes looks at the replies to a campaign. It is called after each of them, and when time has passed.
func (i *Instance) countVotes() {
	c := i.campaign
	if c == nil || c.poll == nil || i.storing != nil {
		return
	}
	p := c.poll
	if !p.request.PreVote && !i.rules.Stands(i.hardState, c.term) {
		i.endCampaign() // a later term was promised meanwhile
		return
	}
	t := p.tally(i.hardState)
	switch {
	case t.Newest.Newer(i.hardState.Configuration):
		m := i.hardState
		m.Configuration = t.Newest
		i.endCampaign()
		i.store(m, nil)
	case t.Won && p.request.PreVote:
		i.preVoted()
	case t.Won:
		i.win()
	case p.over(i.now):
		i.endCampaign()
	}
}

// preVoted stands, unless another does, or leads, meanwhile.
func (i *Instance) preVoted() {
	c := i.campaign
	if i.hardState.Ballot.Term < c.term && i.View().MayStand() {
		i.stand()
		return
	}
	i.endCampaign()
}

// endCampaign gives up, for a while; but not after a pre-vote that was asked for with less WAL than this instance is
// now known to have. That says nothing of the next one: the last WAL of a leader that resigns is seen a moment later.
func (i *Instance) endCampaign() {
	c := i.campaign
	i.campaign = nil
	if c.poll != nil && c.poll.request.PreVote {
		if !c.poll.request.Position.Before(i.View().Local.Position()) {
			i.rest(0)
		}
		return
	}
	i.vain.terms++
	i.rest(time.Duration(max(0, slices.Index(i.config.Members, i.name))) * restStep)
}

// win puts the victory and the term history on disk. Then the server may become a primary.
func (i *Instance) win() {
	c := i.campaign
	m := i.hardState
	m.Won = c.term
	m.Configuration.Term, m.Configuration.Version = c.term, m.Configuration.Version+1
	if !c.renewal {
		m.TermHistory = append(slices.Clip(m.TermHistory), ha.TermStart{Term: c.term, LSN: c.end})
	}
	i.store(m, func() {
		i.log("elected", "term", c.term, "quorum", m.Configuration.Now.String(), "end", c.end.String())
		i.campaign, i.watch.failed = nil, ""
		i.watch.preempts = c.term
		if c.renewal || c.ended {
			i.watch.preempts = 0
		}
		i.emit(Broadcast{}) // before the promotion: a rival that does not know would ask for votes in vain
		if !c.renewal {
			i.begin()
		}
	})
}
