package machine

import (
	"time"

	"toban.dev/internal/ha"
	"toban.dev/internal/wal"
)

// pendingVote is a question that waits until the server can be asked for the end of its WAL.
type pendingVote struct {
	VoteAsked
	until time.Duration
}

// votesExpire drops questions that nobody waits for any more.
func (i *Instance) votesExpire() {
	kept := i.votes[:0]
	for _, v := range i.votes {
		if i.now < v.until {
			kept = append(kept, v)
		}
	}
	i.votes = kept
}

// answerVote answers a candidate, or a leader that has come back.
func (i *Instance) answerVote(e VoteAsked) {
	switch r := e.Request; {
	case i.config.Reader: // nobody should ask it
		i.emit(ReplyVote{ID: e.ID, Reply: ha.VoteReply{
			Reason: ha.RefusedReader, Message: i.name + " is a reader, and has no vote", Ballot: i.hardState.Ballot,
			Configuration: i.hardState.Configuration,
		}})
	case i.news.forgotten[r.Candidate]:
		i.emit(ReplyVote{ID: e.ID, Reply: ha.VoteReply{
			Reason: ha.RefusedForgotten, Message: string(r.Candidate) + " has forgotten what it promised: its volume " +
				"has gone back in time", Ballot: i.hardState.Ballot, Configuration: i.hardState.Configuration,
		}})
	case r.Confirm:
		i.confirm(e)
	case r.PreVote:
		i.emit(ReplyVote{ID: e.ID, Reply: i.rules.Consider(i.voting(), r)})
	default:
		i.vote(e)
	}
}

// serveVotes answers those who have waited.
func (i *Instance) serveVotes() {
	waiting := i.votes
	i.votes = nil
	for n, v := range waiting {
		if i.now >= v.until {
			continue
		}
		i.vote(v.VoteAsked)
		if i.storing != nil || !i.free() {
			i.votes = append(i.votes, waiting[n+1:]...)
			return
		}
	}
}

// vote gives a vote: the promise is on disk before anything is cut off, and the vote is given after that.
func (i *Instance) vote(e VoteAsked) {
	reply := i.rules.Consider(i.voting(), e.Request)
	if !reply.Granted {
		i.emit(ReplyVote{ID: e.ID, Reply: reply})
		return
	}
	if !i.free() || i.storing != nil {
		i.votes = append(i.votes, pendingVote{e, i.now + max(voteDeadline, i.slack.said)})
		return
	}
	i.store(ha.Promise(i.hardState, e.Request), func() {
		i.log("promised", "term", e.Request.Term, "candidate", string(e.Request.Candidate))
		i.cut(e.Request.Term, false, func(end wal.LSN, failed string) { i.grant(e, end, failed) })
	})
}

// grant gives the vote that was promised.
func (i *Instance) grant(e VoteAsked, end wal.LSN, failed string) {
	if failed != "" {
		i.log("can't vote: the end of the WAL is not known", "error", failed)
		i.emit(ReplyVote{ID: e.ID, Failed: true})
		return
	}
	voting := i.voting()
	voting.End, voting.Known, voting.Received = end, true, 0
	reply := i.rules.Grant(voting, e.Request)
	i.log("voted", "term", e.Request.Term, "candidate", string(e.Request.Candidate), "granted", reply.Granted,
		"message", reply.Message)
	i.emit(ReplyVote{ID: e.ID, Reply: reply})
}

// confirm answers a leader that has come back, and measures anew whether it is lost.
func (i *Instance) confirm(e VoteAsked) {
	m, reply := ha.Confirm(i.voting(), e.Request)
	answer := func() { i.emit(ReplyVote{ID: e.ID, Reply: reply}) }
	if !reply.Granted {
		answer()
		return
	}
	i.meet(m.Ballot.Leader)
	i.watch.idle = never
	if m.Ballot == i.hardState.Ballot {
		answer()
		return
	}
	i.store(m, answer)
}

// voting is how the instance is as a voter.
func (i *Instance) voting() ha.Voting {
	v := i.View()
	l := v.Local
	return ha.Voting{
		HardState: l.HardState, HasData: l.Data == ha.DataPresent && (l.Server != ha.ServerStopped || l.Known),
		LeaderLost: v.LeaderLost(), Primary: l.Server == ha.ServerPrimary, End: l.End, Known: l.Known,
		Received: l.Received, Answers: l.Answers,
	}
}

// answerConfiguration takes the configuration of the quorum from its leader.
func (i *Instance) answerConfiguration(e ConfigurationProposed) {
	if i.config.Reader || e.Proposal.Voter != i.hardState.Voter {
		i.emit(ReplyConfiguration{ID: e.ID})
		return
	}
	m, reply := ha.AcceptConfiguration(i.hardState, e.Proposal.Leader, e.Proposal.Configuration)
	answer := func() { i.emit(ReplyConfiguration{e.ID, reply}) }
	if !reply.Accepted || m.Ballot == i.hardState.Ballot && !m.Configuration.Newer(i.hardState.Configuration) {
		answer()
		return
	}
	i.store(m, answer)
}
