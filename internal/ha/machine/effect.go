package machine

import (
	"time"

	"toban.dev/internal/ha"
)

// Effect is something that is to be done. Effects of one step are begun in their order. None is waited for: what
// comes of it is an event.
type Effect interface{ effect() }

// Store puts a hard state on disk, its term history before the rest. Stored follows. Inherits says that the term
// history is another's, whose WAL is received from then on. TermHistory says that it changes at all: where it does not,
// that of the data stays, which a copy may be about to bring.
type Store struct {
	ID          uint64
	HardState   ha.HardState
	TermHistory bool
	Inherits    bool
}

// Fence ends the server at once, in whatever state it is, and the command that is being carried out. It waits for
// nothing. Killed follows when nothing of the server can answer anybody any more, Done when no process of it is left;
// of the command that it ended nothing is heard any more.
type Fence struct{ ID uint64 }

// Command is something that is to be done with the server, one after the other. Done follows.
type Command struct {
	ID   uint64
	Kind Kind
	// Ballot is the leader that Start and Follow have as upstream (zero for none), and that Clone and Rewind copy from.
	Ballot ha.Ballot
	// Term is the one for which Cut cuts off leaders of earlier terms.
	Term uint64
	// Replayed has Cut wait until all WAL is replayed, and hasten that.
	Replayed bool
	// Rule is by which commits wait, from the first of a primary on.
	Rule ha.Rule
	// Closed lets no client into a primary that is started.
	Closed bool
	// Until is the end of the time in which Open may be done, as the machine measures it: later, others may have
	// elected another.
	Until time.Duration
}

// Kind is what a Command does.
type Kind string

// The commands.
const (
	// StartStandby runs the server as a standby of Ballot.
	StartStandby Kind = "start standby"
	// StartPrimary runs it as primary. It is done when the server has been started, which may recover for long then.
	StartPrimary Kind = "start primary"
	// Follow has a running standby follow Ballot.
	Follow Kind = "follow"
	// Cut ends what is received from leaders of terms before Term, keeps it so, and tells the end of the WAL, of which
	// some may be to be replayed yet.
	Cut Kind = "cut"
	// Promote makes a standby a primary.
	Promote Kind = "promote"
	// Open lets clients into a primary.
	Open Kind = "open"
	// Checkpoint writes one, so that the Stop after it is short.
	Checkpoint Kind = "checkpoint"
	// Stop stops the server in order, and tells the end of the WAL of a primary.
	Stop Kind = "stop"
	// Initialise makes a new database system.
	Initialise Kind = "initialise"
	// Clone copies the data of Ballot's leader, Rewind takes back what that one never had. Both stop the server first.
	Clone  Kind = "clone"
	Rewind Kind = "rewind"
	// MarkForked puts on disk that the data has forked.
	MarkForked Kind = "mark forked"
)

// Demand makes commits wait by Rule. It is done, by Done, when that is so; with Enforce first by a rule that nobody can
// meet, until that is seen to work; and with Barrier when all that was written before is where Rule asks for it. It is
// carried out beside commands, and begun anew by the next.
type Demand struct {
	ID               uint64
	Rule             ha.Rule
	Enforce, Barrier bool
}

// AskVote asks a voter. VoteAnswered follows, or nothing. Nobody waits for it for longer than Patience.
type AskVote struct {
	Round    uint64
	Request  ha.VoteRequest
	Patience time.Duration
}

// ReplyVote answers VoteAsked. Failed says that there is no answer.
type ReplyVote struct {
	ID     uint64
	Reply  ha.VoteReply
	Failed bool
}

// Propose offers a configuration to a voter. ConfigurationAnswered follows, or nothing. Nobody waits for it for longer
// than Patience.
type Propose struct {
	Proposal Proposal
	Patience time.Duration
}

// ReplyConfiguration answers ConfigurationProposed.
type ReplyConfiguration struct {
	ID    uint64
	Reply ha.AcceptReply
}

// AskWitness reads or changes what is on record at the witness. WitnessAnswered follows, or nothing.
type AskWitness struct {
	ID        uint64
	Operation ha.WitnessOperation
}

// Broadcast tells all others what this instance says of itself now.
type Broadcast struct{}

// Publish makes the Services find this instance as the primary.
type Publish struct{}

// ReplyDiscard answers DiscardAsked: the data may be given up where Needed is "", which else
// says what for it is needed.
type ReplyDiscard struct {
	ID     uint64
	Needed string
}

// ObserveServer wants to hear at once how the server is (ServerSeen). With Replay it is to replay what it has, whatever
// holds that up: a pause, or somebody who reads.
type ObserveServer struct{ Replay bool }

// Log is for people who read the log.
type Log struct {
	Message string
	// Values are keys and values by turns.
	Values []any
}

func (Store) effect()              {}
func (ObserveServer) effect()      {}
func (Fence) effect()              {}
func (Command) effect()            {}
func (Demand) effect()             {}
func (AskVote) effect()            {}
func (ReplyVote) effect()          {}
func (Propose) effect()            {}
func (ReplyConfiguration) effect() {}
func (AskWitness) effect()         {}
func (Broadcast) effect()          {}
func (Publish) effect()            {}
func (ReplyDiscard) effect()       {}
func (Log) effect()                {}
