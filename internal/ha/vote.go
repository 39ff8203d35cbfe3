package ha

import (
	"fmt"

	"toban.dev/internal/wal"
)

// VoteRequest asks a voter for its vote in a term.
type VoteRequest struct {
	Term uint64 `json:"term"`
	// Candidate asks, Voter is asked: not another hard state of the same instance.
	Candidate Voter `json:"candidate"`
	Voter     Voter `json:"voter"`
	// Position is the candidate's, after it has stopped receiving.
	Position Position `json:"position"`
	// Resigned is the term that its leader has given up, as the candidate has heard
	// from itself; 0 if it has not. The voter may not have heard of it yet.
	Resigned uint64 `json:"resigned,omitempty"`
	// PreVote asks only whether the vote would be given (Consider): nothing is promised, and the
	// candidate still receives.
	PreVote bool `json:"preVote,omitempty"`
	// Confirm asks to have the candidate, which has won the term, for its leader still (Confirm).
	Confirm bool `json:"confirm,omitempty"`
}

// VoteReply is a voter's answer with what it knows.
type VoteReply struct {
	Granted bool `json:"granted"`
	// Reason is why not, in a word; Message the same for people.
	Reason        string        `json:"reason,omitempty"`
	Message       string        `json:"message,omitempty"`
	Ballot        Ballot        `json:"ballot"`
	Position      Position      `json:"position"`
	Configuration Configuration `json:"record"`
}

// Reasons of refused votes.
const (
	RefusedOtherVoter  = "OtherVoter"
	RefusedOldTerm     = "OldTerm"
	RefusedLeaderAlive = "LeaderAlive"
	RefusedNoData      = "NoData"
	RefusedEndUnknown  = "EndUnknown"
	RefusedBehind      = "Behind"
	RefusedForgotten   = "Forgotten"
	RefusedReader      = "Reader"
)

// Voting is how a voter is at the moment.
type Voting struct {
	// HardState is what it has promised so far.
	HardState HardState
	// Witness has no data, and so no position.
	Witness bool
	// HasData says that it has a whole data directory.
	HasData bool
	// LeaderLost says that it has lost the leader of its ballot, or never had one.
	LeaderLost bool
	// Primary says that its own server is a primary: it acknowledges, so it must
	// not vote, whatever the candidate has heard of it.
	Primary bool
	// End is the end of its WAL, as far as it is Known. Received is how far that goes at least, 0 if not known.
	End      wal.LSN
	Known    bool
	Received wal.LSN
	// Answers says that its server would say how far its WAL goes.
	Answers bool
}

// end is how far its WAL goes at least.
func (v Voting) end() wal.LSN {
	return LocalWAL{End: v.End, Known: v.Known, Received: v.Received}.end()
}

// Consider says whether a vote may be given, before anything is done for it. A
// vote that is not considered costs nothing: neither a term nor a stream.
func Consider(v Voting, r VoteRequest) VoteReply {
	m := v.HardState
	reply := VoteReply{
		Ballot: m.Ballot, Position: m.Position(v.end()), Configuration: m.Configuration,
	}
	refuse := func(reason, format string, args ...any) VoteReply {
		reply.Reason, reply.Message = reason, fmt.Sprintf(format, args...)
		return reply
	}
	switch again := r.Term == m.Ballot.Term && m.Ballot.Leader == r.Candidate.Instance(); {
	case r.Voter != m.Voter:
		return refuse(RefusedOtherVoter, "this is the voter %s, not %s", m.Voter, r.Voter)
	case r.Term < m.Ballot.Term || r.Term == m.Ballot.Term && !again:
		return refuse(RefusedOldTerm, "the vote of term %d is given to %s", m.Ballot.Term, m.Ballot.Leader)
	case v.Witness:
		reply.Granted = true
		return reply
	case v.Primary || !v.LeaderLost && m.Ballot.Leader != r.Candidate.Instance() && r.Resigned != m.Ballot.Term:
		return refuse(RefusedLeaderAlive, "%s still leads term %d", m.Ballot.Leader, m.Ballot.Term)
	case !v.HasData:
		return refuse(RefusedNoData, "there is no data here to compare with")
	}
	if c := v.compare(r, reply.Position); c != nil {
		return refuse(c.Reason, "%s", c.Message)
	}
	reply.Granted = true
	return reply
}

// compare says why this voter could not give its vote once it knew how far its WAL goes, by what is seen of that now;
// nil where it could.
func (v Voting) compare(r VoteRequest, own Position) *Check {
	switch {
	case r.PreVote && !v.Known && !v.Answers:
		return &Check{RefusedEndUnknown, "the server here does not answer how far its WAL goes"}
	case (v.Known || r.PreVote) && r.Position.Before(own):
		return &Check{RefusedBehind, fmt.Sprintf("the candidate has %s, this voter %s", r.Position, own)}
	}
	return nil
}

// Confirm is the hard state of a voter that has the winner of a term, which asks, for its leader, if it knows
// of no later term. It must be durable before it is answered; and the voter measures anew from then on whether
// that leader is lost: so it gives no other its vote for SilenceLimit, or until the leader's agent has ended.
// Nor does it stand itself.
func Confirm(v Voting, r VoteRequest) (HardState, VoteReply) {
	m := v.HardState
	reply := VoteReply{Ballot: m.Ballot, Position: m.Position(v.End), Configuration: m.Configuration}
	switch {
	case r.Voter != m.Voter:
		reply.Reason, reply.Message = RefusedOtherVoter, fmt.Sprintf("this is the voter %s, not %s", m.Voter, r.Voter)
		return m, reply
	case m.Ballot.Term > r.Term:
		reply.Reason, reply.Message = RefusedOldTerm, fmt.Sprintf("the vote of term %d is given to %s",
			m.Ballot.Term, m.Ballot.Leader)
		return m, reply
	case v.Witness:
		reply.Granted = true
		return m, reply
	}
	m.Ballot = Ballot{Term: r.Term, Leader: r.Candidate.Instance()}
	reply.Granted, reply.Ballot = true, m.Ballot
	return m, reply
}

// Promise is the hard state with the vote in it. It must be durable before the voter
// stops receiving from the leader before, and that before the vote is given.
func Promise(m HardState, r VoteRequest) HardState {
	m.Ballot = Ballot{Term: r.Term, Leader: r.Candidate.Instance()}
	return m
}

// Grant is the vote itself, after Promise and the revocation: the voter receives
// nothing of an older term any more, and End is the end of its WAL for good.
func Grant(v Voting, r VoteRequest) VoteReply {
	reply := VoteReply{
		Ballot: v.HardState.Ballot, Position: v.HardState.Position(v.End), Configuration: v.HardState.Configuration,
	}
	switch {
	case v.HardState.Ballot.Term != r.Term || v.HardState.Ballot.Leader != r.Candidate.Instance():
		reply.Reason, reply.Message = RefusedOldTerm, fmt.Sprintf("the vote is given to %s for term %d",
			v.HardState.Ballot.Leader, v.HardState.Ballot.Term)
	case v.Witness:
		reply.Granted = true
	case !v.Known:
		reply.Reason, reply.Message = RefusedEndUnknown, "the end of the WAL here is not known yet"
	case r.Position.Before(reply.Position):
		reply.Reason, reply.Message = RefusedBehind, fmt.Sprintf("the candidate has %s, this voter %s",
			r.Position, reply.Position)
	default:
		reply.Granted = true
	}
	return reply
}

// Tally is the result of a campaign.
type Tally struct {
	// Won says that the candidate leads the term.
	Won bool
	// Newest is the newest configuration seen: a candidate that did not have it takes it
	// and campaigns again.
	Newest Configuration
	// Term is the highest term seen.
	Term uint64
	// Refusals are the reasons of those that refused.
	Refusals map[Voter]VoteReply
}

// Count counts the votes that a candidate got. Its own is among the replies.
func Count(m HardState, term uint64, replies map[Voter]VoteReply, witness *VoteReply) Tally {
	t := Tally{Newest: m.Configuration, Term: term, Refusals: map[Voter]VoteReply{}}
	votes := map[Voter]bool{}
	see := func(r VoteReply) {
		t.Term = max(t.Term, r.Ballot.Term)
		if r.Configuration.Newer(t.Newest) {
			t.Newest = r.Configuration
		}
	}
	for voter, r := range replies {
		see(r)
		if r.Granted {
			votes[voter] = true
		} else {
			t.Refusals[voter] = r
		}
	}
	if witness != nil {
		see(*witness)
	}
	current := !t.Newest.Newer(m.Configuration)
	t.Won = current && t.Term == term && m.Configuration.Has(m.Voter) && m.Configuration.Elects(votes,
		witness != nil && witness.Granted)
	return t
}

// AcceptReply is a voter's answer to a configuration.
type AcceptReply struct {
	Accepted bool   `json:"accepted"`
	Ballot   Ballot `json:"ballot"`
}

// AcceptConfiguration is the hard state with a configuration in it that the leader of a term proposes,
// if the voter knows no higher term. It must be durable before it is answered.
func AcceptConfiguration(m HardState, leader string, r Configuration) (HardState, AcceptReply) {
	if r.Term < m.Ballot.Term {
		return m, AcceptReply{Ballot: m.Ballot}
	}
	m.Ballot = Ballot{Term: r.Term, Leader: leader}
	if r.Newer(m.Configuration) {
		m.Configuration = r
	}
	if m.ReadLease < r.Term { // that leader leads since, so the one before has ended
		m.ReadLease = 0
	}
	return m, AcceptReply{Accepted: true, Ballot: m.Ballot}
}

// LearnConfiguration is the hard state with a newer configuration in it that another instance has, whose
// ballot is told. A configuration of a later term means that somebody has won that one:
// nothing of an earlier term counts any more. Who won it is known where the other
// is still in that term. A leader has the configurations of its own term itself.
func LearnConfiguration(m HardState, told Ballot, r Configuration) HardState {
	leads := m.Won > 0 && m.Won == m.Ballot.Term
	if !r.Newer(m.Configuration) || leads && r.Term <= m.Ballot.Term {
		return m
	}
	if r.Term > m.Ballot.Term {
		m.Ballot = Ballot{Term: r.Term}
		if told.Term == r.Term && told.Leader != m.Voter.Instance() {
			m.Ballot.Leader = told.Leader
		}
	}
	m.Configuration = r
	return m
}
