package protocol

import (
	"context"
	"time"
)

// PathPooler is POST PoolerAsks: InstanceTells. For poolers.
const PathPooler = "/v1/pooler"

// PathWaiting is POST WaitingAsks: PoolTells. For the operator, which asks poolers.
const PathWaiting = "/v1/waiting"

const (
	// PoolerWaits is for how long an instance keeps a pooler's question while nothing changes.
	PoolerWaits = time.Second
	// HoldPatience is for how long a primary that stops in order waits for its poolers to hold their clients.
	HoldPatience = 2 * time.Second
	// HoldLimit is for how long a client waits in a pooler for a server before it gets an error.
	HoldLimit = 30 * time.Second
	// WakeLimit is the same for the pooler of a database that may sleep, and has to start.
	WakeLimit = 5 * time.Minute
	// WaitingWaits is for how long a pooler keeps the operator's question while nothing changes.
	WaitingWaits = 20 * time.Second
)

// PoolSettings is the content of the ConfigMap NAME-pool, or NAME-pool-ro: all that a pooler is told.
type PoolSettings struct {
	// Hosts are the DNS names of the instances. What else is to be known of them they say themselves.
	Hosts []string `json:"hosts"`
	// Reads says that its clients only read: they go to the standbys.
	Reads bool `json:"reads,omitempty"`
	// Readers are the addresses of readers (spec.readers), which are standbys, too; for poolers with Reads.
	// ReadersOnly sends clients to no other standby as long as one of these serves.
	Readers     []string `json:"readers,omitempty"`
	ReadersOnly bool     `json:"readersOnly,omitempty"`
	// Server is a DNS name that every instance's certificate has, whoever has issued it: PgBouncer knows servers by it.
	Server string `json:"server"`
	// Authority and Given are the same as in Config.
	Authority string `json:"authority"`
	Given     string `json:"given,omitempty"`
	// Operator is the same as in Config, where the operator asks the poolers: "" where the database never sleeps.
	// Asleep says that it does now.
	Operator string `json:"operator,omitempty"`
	Asleep   bool   `json:"asleep,omitempty"`
	// Mode is PoolTransaction or PoolSession.
	Mode string `json:"mode"`
	// Connections is how many server connections one pooler opens at most to one database, MaxClients how many clients
	// it takes.
	Connections int `json:"connections"`
	MaxClients  int `json:"maxClients"`
}

// The values of PoolSettings.Mode: PgBouncer's pool_mode.
const (
	PoolTransaction = "transaction"
	PoolSession     = "session"
)

// PoolerAsks is what a pooler says of itself when it asks an instance how that is.
type PoolerAsks struct {
	// Pooler is its name, which tells it from others.
	Pooler string `json:"pooler"`
	// Heard is what the instance has told last. It tells again as soon as that has changed, or after PoolerWaits.
	Heard InstanceTells `json:"heard"`
	// Holds is the hand-over (InstanceTells.HandOver) for which the pooler holds its clients: no transaction of theirs
	// is under way any more. "" for none.
	Holds string `json:"holds,omitempty"`
}

// InstanceTells is what an instance tells a pooler of itself.
type InstanceTells struct {
	// Name is the instance's, Address what its server is reached by (an IP address), if that is known.
	Name    string `json:"name"`
	Address string `json:"address,omitempty"`
	// Leads says that it leads in Term, takes writes, and lets clients in.
	Leads bool `json:"leads,omitempty"`
	// Reads says that it is a standby that lets clients in, and receives what the primary writes. Agents of earlier
	// releases do not say it.
	Reads bool `json:"reads,omitempty"`
	// Late says that it would be one that Reads, were it not too late (Config.ReadMaxLag). Agents of earlier releases
	// do not say it.
	Late bool   `json:"late,omitempty"`
	Term uint64 `json:"term"`
	// Members are the instances as it knows them: by an address they are reached sooner than by a name.
	Members []Member `json:"members,omitempty"`
	// HandOver names the hand-over that it is about to do; "" for none. It waits for poolers to hold, for HoldPatience
	// at most.
	HandOver string `json:"handOver,omitempty"`
}

// PoolTells is what a pooler tells the operator of its clients.
type PoolTells struct {
	// Held says that no transaction is under way, and none begins. Waiting is how many clients wait then, Active how
	// many have a server else: for a transaction, or in the mode PoolSession for as long as they stay.
	Held    bool `json:"held"`
	Waiting int  `json:"waiting,omitempty"`
	Active  int  `json:"active,omitempty"`
}

// Waiting asks a pooler how its clients are. It answers as soon as that is not what was heard last, or after
// WaitingWaits; nil has it answer at once.
func (c *Client) Waiting(ctx context.Context, host string, heard *PoolTells) (PoolTells, error) {
	return call[PoolTells](ctx, c, host, PathWaiting, WaitingAsks{heard})
}

// WaitingAsks is the question.
type WaitingAsks struct {
	// Heard is what the pooler has told last, nil for nothing.
	Heard *PoolTells `json:"heard,omitempty"`
}

// AskAsPooler asks an instance how it is.
func (c *Client) AskAsPooler(ctx context.Context, host string, asks PoolerAsks) (InstanceTells, error) {
	return call[InstanceTells](ctx, c, host, PathPooler, asks)
}
