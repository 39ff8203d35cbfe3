package ha

import (
	"math"
	"slices"
	"time"
)

// Standby is what a leader knows of another instance when it thinks about the quorum.
type Standby struct {
	Voter Voter
	// Streaming says that it streams from this leader and has caught up.
	Streaming bool
	// Gone is how long it has not streamed.
	Gone time.Duration
	// Stalls says that its volume stalls: it may look as if it streamed, but acknowledges nothing.
	Stalls bool
	// Answers says that it has given an answer that keeps this leader going, Age how old that is.
	Answers bool
	Age     time.Duration
}

// follows says that it acknowledges what it receives.
func (s Standby) follows() bool { return s.Streaming && !s.Stalls }

// mayVote says that it may get a vote: it follows, and the leader hears it.
func (s Standby) mayVote() bool {
	return s.follows() && s.Answers && s.Age <= AnswerLimit && s.Voter != ""
}

// Electorate is what a leader decides the next quorum of.
type Electorate struct {
	Self    Voter
	Members []string
	Async   bool
	// Witness is the identity of the object that can be the witness, empty while there is none.
	Witness string
	// WitnessReachable says that the Kubernetes API answers.
	WitnessReachable bool
	Now              Quorum
	Standbys         map[string]Standby
}

// PlanQuorum is the next quorum on the way to the wanted one, one voter at a time,
// with the reason; nil when nothing is to change.
func PlanQuorum(e Electorate) (*Quorum, string) {
	for _, step := range []func(Electorate) ([]Voter, string){weakened, replaced, added, removed} {
		if voters, reason := step(e); voters != nil {
			if q := e.quorum(voters); KeepsMajority(e, q) {
				return &q, reason
			}
		}
	}
	if q := e.quorum(e.Now.Voters); !q.Equal(e.Now) {
		return &q, "DurabilityChanged"
	}
	return nil, ""
}

// KeepsMajority says that a leader hears a majority of the next quorum, or has not been without one for longer than
// without one of the present quorum. Else the change would leave it without a majority, and it would have to stop. The
// witness does not count: it is not asked while all is well. But where it has no vote in the next quorum, it may be by
// its word alone that the leader goes on now.
func KeepsMajority(e Electorate, next Quorum) bool {
	then, loses := e.unheard(next), e.Now.Witness != "" && next.Witness == ""
	return then <= AnswerLimit || then <= e.unheard(e.Now) && !loses
}

// unheard is for how long the leader has not heard a majority of a quorum.
func (e Electorate) unheard(q Quorum) time.Duration {
	return q.majority(e.Self, func(v Voter) (time.Duration, bool) {
		s := e.Standbys[v.Instance()]
		return s.Age, s.Answers && s.Voter == v
	}, math.MaxInt64)
}

// quorum is the quorum of these voters.
func (e Electorate) quorum(voters []Voter) Quorum {
	q := Quorum{Voters: voters, Acknowledgements: len(voters)/2 + 1}
	if len(voters) == 2 {
		q.Witness = e.Witness
	}
	if e.Async {
		q.Acknowledgements = 1
	}
	return q
}

// replaced: an instance that has lost its hard state is another voter, once that follows and answers.
func replaced(e Electorate) ([]Voter, string) {
	for i, v := range e.Now.Voters {
		s, ok := e.Standbys[v.Instance()]
		if ok && v != e.Self && s.Voter != v && s.mayVote() {
			voters := slices.Clone(e.Now.Voters)
			voters[i] = s.Voter
			return voters, "VoterReplaced"
		}
	}
	return nil, ""
}

// added: a member that has caught up, and answers, becomes a voter.
func added(e Electorate) ([]Voter, string) {
	for _, name := range e.Members {
		s, ok := e.Standbys[name]
		known := slices.ContainsFunc(e.Now.Voters, func(v Voter) bool { return v.Instance() == name })
		if ok && !known && s.mayVote() {
			voters := append(slices.Clone(e.Now.Voters), s.Voter)
			slices.Sort(voters)
			return voters, "VoterAdded"
		}
	}
	return nil, ""
}

// removed: who is no member any more has no say. Those that are gone are removed
// first, while there are others to agree.
func removed(e Electorate) ([]Voter, string) {
	leaving := -1
	for i, v := range e.Now.Voters {
		if v == e.Self || slices.Contains(e.Members, v.Instance()) {
			continue
		}
		if leaving < 0 || !e.Standbys[v.Instance()].follows() {
			leaving = i
		}
	}
	if leaving < 0 {
		return nil, ""
	}
	return slices.Delete(slices.Clone(e.Now.Voters), leaving, leaving+1), "VoterRemoved"
}

// weakened: of two, the one that is left goes on alone, once the witness has it on
// record. It comes first: nothing can meet the rule of two that is needed for any
// other change, while one of them is gone or has lost its hard state.
func weakened(e Electorate) ([]Voter, string) {
	if e.Async || len(e.Now.Voters) != 2 || e.Now.Witness == "" || !e.WitnessReachable {
		return nil, ""
	}
	for _, v := range e.Now.Voters {
		s := e.Standbys[v.Instance()]
		lost := s.Voter != "" && s.Voter != v
		if v != e.Self && (lost || s.Stalls || !s.Streaming && s.Gone > WeakenLimit) {
			return []Voter{e.Self}, "Weakened"
		}
	}
	return nil, ""
}
