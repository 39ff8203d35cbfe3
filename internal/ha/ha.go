// Package ha decides what an instance must do: View in, Decision out; and how a
// vote is asked, given and counted. It has no I/O, no clock, no logger and knows
// neither Kubernetes nor how a server is run, so that every decision can be
// tabled, printed and simulated. The words are those of docs/ha.md, the rules
// stand in its order.
package ha

import (
	"time"

	"toban.dev/internal/wal"
)

// Times after which something is believed. They are measured by who makes the
// View; see docs/ha.md for why each is as long as it is.
const (
	// HeartbeatInterval is how often each instance asks each other one how it is.
	HeartbeatInterval = 250 * time.Millisecond
	// SilenceLimit is how long a leader may be silent before it is lost: longer
	// than HeartbeatInterval, FenceLimit and the fence itself, so that who still reads from it reads
	// nothing that a new one has overtaken.
	SilenceLimit = 2 * time.Second
	// AsyncSilenceLimit is the same where commits are acknowledged by the primary
	// alone, where nothing but the fence keeps the old one from doing so.
	AsyncSilenceLimit = 3500 * time.Millisecond
	// RefusedLimit is how long nobody may answer at the leader's address while
	// its stream has ended.
	RefusedLimit = 250 * time.Millisecond
	// IdleLimit is how long a leader may answer without leading.
	IdleLimit = 3 * time.Second
	// UnderwayLimit is the same for one that is at work, where a machine is busy: on others such work is done at once,
	// or hangs.
	UnderwayLimit = 10 * time.Second
	// FenceLimit is how long a primary goes on without a majority, unless it has the read lease.
	FenceLimit = 1250 * time.Millisecond
	// ReadLeaseLimit is how long a primary that has the read lease does so without looking at the witness.
	ReadLeaseLimit = 750 * time.Millisecond
	// PreemptWait is for how long at most who is elected over one that has the read lease waits before it leads: longer
	// than ReadLeaseLimit and the fence itself.
	PreemptWait = 1100 * time.Millisecond
	// CampaignPatience is how long the best candidate is waited for, or one that stands already, since the leader is
	// lost.
	CampaignPatience = time.Second
	// WeakenLimit is how long one of two standbys may be gone before the other instance goes on alone.
	WeakenLimit = time.Second
	// AnswerLimit is how old the last answer of an instance may be that gets a vote: about half of FenceLimit, so that
	// the next one comes before the fence.
	AnswerLimit = 600 * time.Millisecond
	// StallLimit is how long a volume may take for a write before it stalls: a primary on it makes way, a standby on it
	// does not count. SlowLimit is when its instance is not elected any more: sooner, so that a primary that makes way
	// has heard of it where both share a disk.
	StallLimit = 2 * time.Second
	SlowLimit  = time.Second
	// AcknowledgeLimit is how long too few standbys may stream from a primary for a commit to be acknowledged, while
	// the others could elect: after that it makes way. YieldPause is for how long it does not do so again.
	AcknowledgeLimit = 15 * time.Second
	YieldPause       = 2 * time.Minute
	// StuckLimit is how long a standby may fail to stream from a primary that
	// takes writes before its data is made anew.
	StuckLimit = 45 * time.Second
)

// ReplaySoon is how many bytes of WAL a standby replays in no time to speak of: so much may be left at any moment.
const ReplaySoon = 16 << 20

// Data is what lies in an instance's data directory.
type Data string

// The states of a data directory. An unreadable one is unknown, not empty.
const (
	DataUnknown Data = ""
	DataEmpty   Data = "empty"
	DataPresent Data = "present"
	// DataIncomplete is what a rewind that was cut short leaves: only a copy mends it.
	DataIncomplete Data = "incomplete"
	// DataForked is what a server has written to that was promoted without having been elected: only a
	// rewind or a copy mends it.
	DataForked Data = "forked"
)

// Server is what the instance's server is at the moment.
type Server string

// The states of a server.
const (
	ServerStopped Server = ""
	ServerStandby Server = "standby"
	ServerPrimary Server = "primary"
)

// View is all that a decision is made of. What could not be learned is absent,
// and absent is never taken for "no".
type View struct {
	Self string
	// Members are the instances that the config names, by ordinal.
	Members []string
	// Preferred are the members in the order in which they should lead; empty where all are alike.
	Preferred []string
	// Reader says that this instance is a reader, which is no member: it follows the leader, and never leads or votes.
	Reader bool
	// SystemIdentifier is the cluster's, once some instance is known to have made
	// the data; empty before.
	SystemIdentifier string
	// Async says that commits are to be acknowledged by the primary alone.
	Async bool
	// Witness is the identity of the Kubernetes object that can be the witness, if there is one.
	Witness string
	Local   Local
	// Peers has those that answered lately.
	Peers map[string]Peer
	// Wish is what the leader is asked to do, if anything.
	Wish Wish
}

// Wish is what somebody asks of the leader.
type Wish struct {
	// Resign: give up the lead, to To where it is not empty.
	Resign bool
	To     string
	// Leaving: the instance ends; it must not stand for election.
	Leaving bool
}

// Local is the instance itself.
type Local struct {
	Data             Data
	SystemIdentifier string
	HardState        HardState
	Server           Server
	LocalWAL
	// Answers says that a session with the server can be had: without one nobody can say how far its WAL goes.
	Answers bool
	// Streaming says that a standby is receiving WAL now. Stalled is how long it has not
	// been, though its leader takes writes.
	Streaming bool
	Stalled   time.Duration
	// Following is the term whose leader the standby has as upstream, 0 if none.
	Following uint64
	// Failed says why a primary's server does not serve: it has ended or hangs.
	Failed string
	// Full says that the volume has no room for WAL.
	Full bool
	// Unwritten is for how long the volume has not taken a write that was begun, 0 while it takes them.
	Unwritten time.Duration
	// RewindFailed says that the last rewind did not work.
	RewindFailed bool
	// NoRoom says that the last copy did not fit on the volume beside the data.
	NoRoom bool
	// Unelected says that the server takes writes, though the agent runs it as a standby.
	Unelected bool
	// Resigned says that it gave up the term of its ballot a moment ago, and waits for another to lead.
	Resigned bool
	// Silence is how long the leader of the ballot has not been heard, Refused how
	// long nobody has listened at its address, Idle how long it has answered without leading.
	Silence, Refused, Idle time.Duration
	// Leaderless is how long this instance has been without a leader, Lost how long it has known that its leader is
	// lost, and heard a majority that could elect another: shorter where a leader took its time to stop in order, or
	// where this instance was cut off.
	Leaderless, Lost time.Duration
	// Slack is by how much longer than its limits the leader may be silent or idle, because its machine or this one is
	// busy. OwnSlack is that for the sake of this one alone: a better candidate may take that much longer, too.
	Slack, OwnSlack time.Duration
	// Resting says that it has campaigned in vain a moment ago.
	Resting bool
	LocalLead
	// Limits are those that fit with all others', zero for this release's.
	Limits Limits
	// WitnessReachable says that the Kubernetes API answers, WitnessBallot what is
	// on record there.
	WitnessReachable bool
	WitnessBallot    Ballot
}

// LocalLead is what a leader knows of those by whom it leads.
type LocalLead struct {
	// Unconfirmed is how long ago a majority was last heard to know of no later term.
	Unconfirmed time.Duration
	// Alone is the same without what the witness says.
	Alone time.Duration
	// HasReadLease says that the witness has this instance on record as one that has the read lease in the term of its
	// ballot, and was asked for that not longer than ReadLeaseLimit ago.
	HasReadLease bool
	// Unacknowledged is for how long too few standbys have streamed from this primary for a commit to be acknowledged,
	// 0 while enough do, also if they still catch up. Yielded says that it has made way for that within YieldPause.
	Unacknowledged time.Duration
	Yielded        bool
}

// LocalWAL is the WAL that the instance has.
type LocalWAL struct {
	// End is the end of the last whole record, as far as it is Known: on a standby only when nothing is being received.
	End   wal.LSN
	Known bool
	// Received is the end of the WAL that a running standby has, 0 if not known.
	Received wal.LSN
	// Unreplayed is how many bytes of it a standby has still to replay, Still for how long it has replayed none of
	// them.
	Unreplayed uint64
	Still      time.Duration
}

// end is how far it goes at least. What follows the last whole record counts only while more may come.
func (w LocalWAL) end() wal.LSN {
	if w.Known {
		return w.End
	}
	return max(w.End, w.Received)
}

// Position is how far it goes, as far as is seen without stopping anything.
func (l Local) Position() Position { return l.HardState.Position(l.end()) }

// Peer is another instance, by its own words.
type Peer struct {
	Voter            Voter
	Data             Data
	SystemIdentifier string
	Ballot           Ballot
	// Leading says that it is a primary that takes writes, in the term of its ballot.
	Leading bool
	// Underway says that it was elected in the term of its ballot, and is about to lead in it or stops to hand over.
	Underway bool
	// Resigned says that it has given up the term of its ballot; Successor whom it
	// would like to lead next.
	Resigned  bool
	Successor string
	// Defeated says that it was not elected in the term of its ballot, for which it stood.
	Defeated bool
	// TermHistory is whose WAL it has.
	TermHistory []TermStart
	// Oldest is the start of the oldest WAL it still has, 0 if not known.
	Oldest wal.LSN
	// Position is how far its WAL goes, as last seen; it may be further by now.
	Position Position
	// Written is how far the WAL of a leader goes, 0 if not known.
	Written wal.LSN
	// Unreplayed is how many bytes of its WAL it has still to replay, Replaying that it could not lead before that.
	Unreplayed uint64
	Replaying  bool
	// Streaming says that it streams from the leader of its ballot.
	Streaming bool
	// LeaderLost says that it has lost the leader of its ballot.
	LeaderLost bool
	// Eligible says that it could lead.
	Eligible bool
	// Rebuilding says that its data is being made anew, or waits for its turn.
	Rebuilding bool
	// Stalls says that its volume stalls: it can neither keep a promise nor acknowledge.
	Stalls bool
}

// Action is what to do.
type Action string

// The actions.
const (
	// Wait runs no server.
	Wait Action = "wait"
	// Initialise makes a new, empty database system.
	Initialise Action = "initialise"
	// Clone copies the data of Target, replacing what is there.
	Clone Action = "clone"
	// Rewind takes back what Target never had.
	Rewind Action = "rewind"
	// Lead runs the server as primary.
	Lead Action = "lead"
	// Resign stops the primary in order and leaves the lead to another.
	Resign Action = "resign"
	// Fence stops the primary at once.
	Fence Action = "fence"
	// Follow runs the server as a standby of Target.
	Follow Action = "follow"
	// Await runs the server as a standby of nobody: it can vote.
	Await Action = "await"
	// Campaign asks for the votes of the next term.
	Campaign Action = "campaign"
	// Disown stops a server at once that takes writes without having been elected, and puts on record
	// that its data has forked.
	Disown Action = "disown"
)

// Decision is an action with its reason: one word for programs, a sentence for people.
type Decision struct {
	Action Action
	Target string
	// Ballot is what the instance must have stored before it acts.
	Ballot  Ballot
	Reason  string
	Message string
	// Refusal is the first check that keeps this instance from campaigning while
	// there is no leader.
	Refusal string
}
