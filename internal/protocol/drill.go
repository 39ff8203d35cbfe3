package protocol

import (
	"context"
	"time"
)

// PathFault is where an agent breaks its own instance, for a FaultDrill. POST FaultOrder: FaultResult. For the operator
// alone. An agent that does not know it answers 404, and nothing is broken.
const PathFault = "/v1/fault"

// Fault is what an agent does to its own instance.
type Fault string

// The faults.
const (
	FaultKillServer Fault = "kill-server" // SIGKILL to the postmaster
	FaultHangServer Fault = "hang-server" // SIGSTOP to all of its processes, and later SIGCONT
	FaultKillAgent  Fault = "kill-agent"  // the agent ends at once, and the container with it
	FaultFillVolume Fault = "fill-volume" // a file on the volume, so that a primary takes no writes, and later none
	FaultUndo       Fault = "undo"        // what lasts is over
	// FaultPauseReplay has a standby replay no WAL, and later again.
	FaultPauseReplay Fault = "pause-replay"
	// FaultCutAPI has the agent not reach the Kubernetes API, and later again.
	FaultCutAPI Fault = "cut-api"
	// FaultCutArchive has the agent not reach the store of the archive, and later again.
	FaultCutArchive Fault = "cut-archive"
)

// MaxFault is the longest that a fault lasts which an agent takes back.
const MaxFault = 5 * time.Minute

// FaultOrder orders a fault.
type FaultOrder struct {
	// Drill is the UID of the FaultDrill, for the log.
	Drill string `json:"drill"`
	Fault Fault  `json:"fault"`
	// For is how long a fault lasts that the agent takes back.
	For time.Duration `json:"for,omitempty"`
	// Role is the one that the instance was chosen for, "" for any: one that has another by now is not broken. An agent
	// of an earlier release does not look.
	Role Role `json:"role,omitempty"`
	// Volume is how large the volume is, in bytes, for FaultFillVolume. Where its file system is larger, it is not
	// the volume's own.
	Volume int64 `json:"volume,omitempty"`
}

// FaultResult is when it was done.
type FaultResult struct {
	At time.Time `json:"at"`
}

// Fault orders an agent to break its own instance.
func (c *Client) Fault(ctx context.Context, host string, order FaultOrder) (FaultResult, error) {
	return call[FaultResult](ctx, c, host, PathFault, order)
}

// DrillResult is what the Pod of a FaultDrill leaves.
type DrillResult struct {
	// Began and Ended are when the clients wrote without an error first, and wrote last.
	Began time.Time `json:"began"`
	Ended time.Time `json:"ended"`
	// Aborted says that a client had no write acknowledged for too long, or, with ByQuery, that a query has said so.
	Aborted bool          `json:"aborted,omitempty"`
	ByQuery bool          `json:"byQuery,omitempty"`
	Clients []DrillClient `json:"clients"`
	// Error is why there is no result, "" where there is one.
	Error string `json:"error,omitempty"`
}

// DrillClient is what a client has seen.
type DrillClient struct {
	Way string `json:"way"`
	// Outage is the longest time without an acknowledged write.
	Outage       time.Duration `json:"outage"`
	Acknowledged int64         `json:"acknowledged"`
	Lost         int64         `json:"lost"`
	Errors       int64         `json:"errors"`
	Reads        int64         `json:"reads"`
	StaleReads   int64         `json:"staleReads"`
	// Staleness is how old the oldest answer was, of who reads from standbys.
	Staleness  time.Duration `json:"staleness,omitempty"`
	FirstError string        `json:"firstError,omitempty"`
}
