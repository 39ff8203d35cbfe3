// Package ha decides what an instance must do: View in, Decision out. It has no
// I/O, no clock, no logger and knows neither Kubernetes nor how a server is run,
// so that every decision can be tabled, printed and simulated. The words are
// those of docs/ha.md, the rules stand in its order.
package ha

// Data is what lies in an instance's data directory.
type Data string

// The states of a data directory. An unreadable one is unknown, not empty.
const (
	DataUnknown Data = ""
	DataEmpty   Data = "empty"
	DataPresent Data = "present"
)

// View is all that a decision is made of. What could not be learned is absent,
// and absent is never taken for "no".
type View struct {
	Self string
	// Members are the instances that the config names, by ordinal.
	Members []string
	// SystemIdentifier is the cluster's, once some instance is known to have made
	// the data; empty before.
	SystemIdentifier string
	Local            Local
	// Peers has those that answered.
	Peers map[string]Peer
}

// Ballot is a term and its primary, as an instance has stored them. Terms only grow.
type Ballot struct {
	Term   uint64
	Leader string
}

// Local is the instance itself.
type Local struct {
	Data             Data
	SystemIdentifier string
	Ballot           Ballot
	// Received is the end of the WAL that a running standby has, 0 if not known.
	Received LSN
	// Streaming says that a standby is receiving WAL now.
	Streaming bool
}

// Peer is another instance, by its own words.
type Peer struct {
	Data             Data
	SystemIdentifier string
	Ballot           Ballot
	// Leading says that it is a primary that takes writes.
	Leading bool
	// Oldest is the start of the oldest WAL it still has, 0 if not known.
	Oldest LSN
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
	// Lead runs the server as primary.
	Lead Action = "lead"
	// Follow runs the server as a standby of Target.
	Follow Action = "follow"
)

// Decision is an action with its reason: one word for programs, a sentence for people.
type Decision struct {
	Action  Action
	Target  string
	Ballot  Ballot
	Reason  string
	Message string
}
