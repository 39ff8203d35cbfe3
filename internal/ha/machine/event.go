package machine

import (
	"time"

	"toban.dev/internal/ha"
	"toban.dev/internal/wal"
)

// Event is something that has happened: a message, news of the server, the end of something that was asked for, or only
// that time has passed.
type Event interface{ event() }

// Tick says that time has passed. It is due when Wake says so.
type Tick struct{}

// Configured is what the operator wants of the SampleDB.
type Configured struct{ Config Config }

// Config is what an instance is told by the operator.
type Config struct {
	// Members are the instances, by ordinal.
	Members []string
	// Preferred are they in the order in which they should lead; empty where all are alike.
	Preferred []string
	// Reader says that this instance is none of them, but a reader: it hears them, and they do not hear it.
	Reader bool
	// SystemIdentifier is the database system's, "" while none is known.
	SystemIdentifier string
	// Async says that commits are to be acknowledged by the primary alone.
	Async bool
	// Witness is the identity of the Kubernetes object that can be the witness, "" for none.
	Witness string
	// API says that there is a Kubernetes API to be asked.
	API bool
}

// PeerAnswered is another instance's answer to a question that was asked at a time.
type PeerAnswered struct {
	Status PeerStatus
	Asked  time.Duration
}

// PeerAnnounced is what another instance says of itself without having been asked. It may have been on its way for
// long, so it does not count where it matters when something was so.
type PeerAnnounced struct{ Status PeerStatus }

// PeerRefused says that nobody listens at another instance's address.
type PeerRefused struct {
	Name  string
	Asked time.Duration
}

// PeerStatus is what an instance says of itself.
type PeerStatus struct {
	Name string
	// Boot is the process that says so, Number counts what it says: the higher one is the later one.
	Boot          string
	Number        uint64
	Peer          ha.Peer
	Configuration ha.Configuration
	// Began is how far the voter had come when that process began, as far as it says.
	Began ha.Progress
	// Forgotten are voters that have forgotten what they promised.
	Forgotten []ha.Voter
	// Limits are the times that it goes by, as far as it says.
	Limits ha.Limits
	// Silence is for how long it has not heard the leader of its ballot, as far as it says.
	Silence time.Duration
}

// VoteAsked is a question for a vote, a pre-vote or a confirmation. It is answered by ReplyVote
// with its ID, or not at all.
type VoteAsked struct {
	ID      uint64
	Request ha.VoteRequest
}

// VoteAnswered is a voter's reply to AskVote. Failed says that there is none.
type VoteAnswered struct {
	Round  uint64
	Voter  ha.Voter
	Reply  ha.VoteReply
	Failed bool
}

// ConfigurationProposed is a configuration of the quorum from its leader. It is answered by
// ReplyConfiguration with its ID.
type ConfigurationProposed struct {
	ID       uint64
	Proposal Proposal
}

// Proposal is a configuration that its leader proposes to a voter.
type Proposal struct {
	Leader        string
	Voter         ha.Voter
	Configuration ha.Configuration
}

// ConfigurationAnswered is a voter's reply to Propose.
type ConfigurationAnswered struct {
	Voter         ha.Voter
	Configuration ha.Configuration
	Reply         ha.AcceptReply
}

// WitnessAnswered is what is on record at the witness after AskWitness, asked for at a time, with the answer to the
// operation. Failed says that it did not answer.
type WitnessAnswered struct {
	ID        uint64
	Asked     time.Duration
	HardState ha.HardState
	Answer    ha.WitnessAnswer
	Failed    bool
}

// Stored says that a hard state is on disk. Err says why not, "" where it is.
type Stored struct {
	ID  uint64
	Err string
}

// Done says that a command has ended. Err says why it has failed, "" where it has not.
type Done struct {
	ID  uint64
	Err string
	// End is that of the WAL, after Cut and Stop, Unreplayed how many bytes of it are to be replayed after a Cut.
	End        wal.LSN
	Unreplayed uint64
	// Ragged says that after a Cut there is the beginning of a record behind that end, whose rest is not here.
	Ragged bool
	// Timeline and Begins are those of the new timeline, after Promote.
	Timeline wal.Timeline
	Begins   wal.LSN
	// TermHistory is that of the data, after Clone and Rewind.
	TermHistory []ha.TermStart
	// NoRoom says that a copy did not fit beside the data, SameTimeline that a rewind came before the leader's first
	// checkpoint, Unreached that it did not reach the leader, or was not even begun.
	NoRoom, SameTimeline, Unreached bool
}

// DataSeen is what lies in the data directory.
type DataSeen struct {
	Data             ha.Data
	SystemIdentifier string
	// Room says that there is more room since a copy did not fit.
	Room bool
}

// ServerSeen is how the running server is.
type ServerSeen struct {
	// Run is the command that has started it, Following the term that it had as upstream when it was looked at.
	Run, Following uint64
	// Answers says that a session can be had.
	Answers bool
	// Streaming says that a standby receives WAL, Received how far it goes.
	Streaming bool
	Received  wal.LSN
	// End is the end of the WAL of a standby that follows nobody, as far as it is Known.
	End   wal.LSN
	Known bool
	// Unreplayed is how many bytes of the WAL that it has a standby has still to replay.
	Unreplayed uint64
	// Standbys are the voters that stream from a primary and have caught up.
	Standbys []ha.Voter
	// Written is how far a primary's WAL goes, Oldest where the oldest WAL begins that it still has.
	Written, Oldest wal.LSN
	// Failure says why a primary does not serve, "" while it does.
	Failure string
	// Unelected says that it takes writes, though it is run as a standby.
	Unelected bool
	// Full says that the volume has no room for WAL.
	Full bool
}

// VolumeSeen is for how long the volume has not taken a write that was begun, 0 when it has. Writes are begun again and
// again, and this is said again and again while one of them waits.
type VolumeSeen struct{ Unwritten time.Duration }

// SlackSeen is how much longer than its limits the instance lets a leader be silent: because its own machine is busy,
// or because the leader's is.
type SlackSeen struct{ Own, Leaders time.Duration }

// Killed says that a fence has got so far that nothing of the server runs any more: what is left of it waits for the
// disk within the kernel, and ends there. Done follows when nothing is left. ID is the fence's.
type Killed struct{ ID uint64 }

// ServerEnded says that the server has ended by itself.
type ServerEnded struct {
	Run uint64
	Why string
}

// DiscardAsked is the question of a Clone or Rewind whether the data here may be given up now: before the copy is
// whole, or, Whole, for one that is. It is answered by ReplyDiscard.
type DiscardAsked struct {
	ID    uint64
	Whole bool
}

// ResignAsked asks the leader to leave the lead to another instance, To where it is not empty. With Restart it is for a
// restart of the server: without a successor that is restarted in place.
type ResignAsked struct {
	To      string
	Restart bool
}

// LeaveAsked says that the instance is told to stop.
type LeaveAsked struct{}

// RestartAsked asks for a restart of the server.
type RestartAsked struct{}

func (Tick) event()                  {}
func (Configured) event()            {}
func (PeerAnswered) event()          {}
func (PeerAnnounced) event()         {}
func (PeerRefused) event()           {}
func (VoteAsked) event()             {}
func (VoteAnswered) event()          {}
func (ConfigurationProposed) event() {}
func (ConfigurationAnswered) event() {}
func (WitnessAnswered) event()       {}
func (Stored) event()                {}
func (Done) event()                  {}
func (DataSeen) event()              {}
func (ServerSeen) event()            {}
func (VolumeSeen) event()            {}
func (SlackSeen) event()             {}
func (Killed) event()                {}
func (ServerEnded) event()           {}
func (DiscardAsked) event()          {}
func (ResignAsked) event()           {}
func (LeaveAsked) event()            {}
func (RestartAsked) event()          {}
