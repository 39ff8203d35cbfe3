package simulation

import (
	"math"

	"toban.dev/internal/ha"
	"toban.dev/internal/ha/machine"
)

// rules are those of the core, or broken ones.
func (n *node) rules() machine.Rules {
	r := machine.DefaultRules()
	r.PreVotes = n.w.preVotes
	if n.w.broken == Whole {
		return r
	}
	r.Decide = n.decide
	r.Consider = func(v ha.Voting, q ha.VoteRequest) ha.VoteReply {
		n.breakVote(&v, &q)
		return ha.Consider(v, q)
	}
	r.Grant = func(v ha.Voting, q ha.VoteRequest) ha.VoteReply {
		n.breakVote(&v, &q)
		return ha.Grant(v, q)
	}
	if n.w.breaks(WinsAfterPromise) {
		r.Stands = func(ha.HardState, uint64) bool { return true }
	}
	if n.w.breaks(CountsUnheard) {
		r.PlanQuorum, r.KeepsMajority = planUnheard, func(ha.Electorate, ha.Quorum) bool { return true }
	}
	if n.w.breaks(RuleTooEarly) {
		r.CommitRule = func(r ha.Configuration, leader ha.Voter) ha.Rule {
			if r.Next != nil {
				r.Now, r.Next = *r.Next, nil
			}
			return ha.CommitRule(r, leader)
		}
	}
	return r
}

// planUnheard plans as if all others had just answered.
func planUnheard(e ha.Electorate) (*ha.Quorum, string) {
	for name, s := range e.Standbys {
		s.Answers, s.Age = true, 0
		e.Standbys[name] = s
	}
	return ha.PlanQuorum(e)
}

// decide is a broken decision.
func (n *node) decide(v ha.View) ha.Decision {
	if d, broken := n.breakDecision(v); broken {
		return d
	}
	n.breakView(&v)
	d := ha.Decide(v)
	if n.w.breaks(NoJoinCheck) && (d.Reason == "Diverged" || d.Reason == "LeaderExpected") {
		d.Action, d.Target = ha.Follow, d.Ballot.Leader
	}
	return d
}

// breakDecision decides before the core would, if it is that rule that is broken.
func (n *node) breakDecision(v ha.View) (ha.Decision, bool) {
	m, primary := v.Local.HardState, v.Local.Server == ha.ServerPrimary
	won := m.Won > 0 && m.Won == m.Ballot.Term
	leads := won && m.Ballot.Leader == v.Self && v.Local.Data == ha.DataPresent && !v.Local.Resigned
	lead := ha.Decision{Action: ha.Lead, Ballot: m.Ballot, Reason: "Leader"}
	switch n.w.broken {
	case NotSuperseded:
		return lead, primary && m.Won == m.Ballot.Term
	case NoConfirmation:
		return lead, leads
	case RenewInPlace:
		renewed := ha.Decision{Action: ha.Campaign, Ballot: m.Ballot, Reason: "TermRenewed"}
		return renewed, primary && leads && !v.Local.Resting && promisedLater(v)
	default:
		return ha.Decision{}, false
	}
}

// breakView makes an instance blind to how long it has been alone.
func (n *node) breakView(v *ha.View) {
	if n.w.breaks(NoFence) {
		v.Local.Unconfirmed, v.Local.Alone = 0, 0
	}
}

// promisedLater says whether another has promised a later term in which nobody leads.
func promisedLater(v ha.View) bool {
	for _, p := range v.Peers {
		if p.Ballot.Term > v.Local.HardState.Ballot.Term && !p.Leading {
			return true
		}
	}
	return false
}

// breakVote makes a voter blind to something.
func (n *node) breakVote(v *ha.Voting, r *ha.VoteRequest) {
	switch n.w.broken {
	case PositionIgnored:
		r.Position = ha.Position{Term: math.MaxUint64}
	case TermlessPosition:
		r.Position.Term = v.HardState.Position(v.End).Term
	case VoteTwice:
		if v.HardState.Ballot.Term == r.Term {
			v.HardState.Ballot.Leader = r.Candidate.Instance()
		}
	default:
	}
}

// breakStore is what gets on disk of a hard state.
func (n *node) breakStore(m ha.HardState) ha.HardState {
	switch n.w.broken {
	case PromiseNotDurable:
		if m.Ballot.Leader != n.name && m.Ballot.Term > n.disk.mem.Ballot.Term {
			m.Ballot = n.disk.mem.Ballot
		}
	case TermHistoryNotStored:
		had := n.disk.mem.TermHistory
		if m.Won == n.disk.mem.Won && len(had) > 0 && len(m.TermHistory) != len(had) {
			m.TermHistory = n.disk.mem.TermHistory
		}
	default:
	}
	return m
}
