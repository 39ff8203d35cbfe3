package protocol

import (
	"time"

	"toban.dev/internal/ha"
)

// Paths of what the instances of a SampleDB say to each other.
const (
	PathVote   = "/v1/vote"   // POST ha.VoteRequest: ha.VoteReply
	PathRecord = "/v1/record" // POST Proposal: ha.AcceptReply
	PathNews   = "/v1/news"   // POST Status: Status. What others should know at once
)

// Election is what an instance says of itself to those that vote with it.
type Election struct {
	Voter ha.Voter `json:"voter"`
	// Leading says that it has won the term of its ballot and takes writes.
	Leading bool `json:"leading,omitempty"`
	// Underway says that it has won that term, and is about to lead in it or stops to hand over. Release 0.1.0 does not
	// say so.
	Underway bool `json:"underway,omitempty"`
	// Defeated says that it stood for that term, and was not elected.
	Defeated bool `json:"defeated,omitempty"`
	// TermHistory is whose WAL it has, and Position how far that goes.
	TermHistory []ha.TermStart `json:"lineage,omitempty"`
	Position    ha.Position    `json:"position"`
	// Unreplayed is how many bytes of its WAL it has still to replay, Replaying that it could not lead before that.
	// Release 0.1.0 says neither.
	Unreplayed uint64 `json:"unreplayed,omitempty"`
	Replaying  bool   `json:"replaying,omitempty"`
	// Configuration is the quorum as it knows it: who has missed a change can't be elected.
	Configuration ha.Configuration `json:"record"`
	// LeaderLost says that it has lost the leader of its ballot, Eligible that it
	// could lead, Rebuilding that its data is being made anew.
	LeaderLost bool `json:"leaderLost,omitempty"`
	Eligible   bool `json:"eligible,omitempty"`
	Rebuilding bool `json:"rebuilding,omitempty"`
	// Began is how far the voter had come when its agent started. Release 0.1.0 does not say so.
	Began ha.Progress `json:"began,omitzero"`
	// Forgotten are the voters that have forgotten what they promised, as far as it has noticed.
	Forgotten []ha.Voter `json:"forgotten,omitempty"`
	// Stalls says that its volume stalls. Release 0.1.0 does not say so.
	Stalls bool `json:"stalls,omitempty"`
	// Limits are the times that must fit together with the others'. Release 0.1.0 says none.
	Limits ha.Limits `json:"limits,omitzero"`
	// Silence is for how long it has not heard the leader of its ballot. Release 0.1.0 does not say so.
	Silence time.Duration `json:"silence,omitempty"`
	// Successor is whom a leader that resigned would like to lead.
	Successor string `json:"successor,omitempty"`
	// CancelledCommits is how many commits were cancelled while they waited for standbys: they may be on its disk
	// alone. An agent that is replaced in place goes on counting. Release 0.1.0 does not say so.
	CancelledCommits int64 `json:"cancelledCommits,omitempty"`
}

// Proposal is a configuration of the quorum, from the leader of its term.
type Proposal struct {
	Leader string `json:"leader"`
	// Voter is whom it is for: not another hard state of the same instance.
	Voter         ha.Voter         `json:"voter"`
	Configuration ha.Configuration `json:"record"`
}
