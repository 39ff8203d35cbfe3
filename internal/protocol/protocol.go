// Package protocol is what agents and the operator say to each other, and how:
// JSON over HTTPS with certificates on both sides. It knows neither Kubernetes
// nor how a PostgreSQL is run.
package protocol

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"

	"toban.dev/internal/wal"
	"toban.dev/internal/work/maintenance"
)

// Paths of an agent's HTTPS server.
const (
	PathStatus     = "/v1/status"     // GET: Status. For peers and the operator
	PathSync       = "/v1/sync"       // POST Config: Status. For the operator
	PathRestart    = "/v1/restart"    // POST Restart: Status. For the operator
	PathSwitchover = "/v1/switchover" // POST Switchover: Status. For the operator
	PathPublish    = "/v1/publish"    // POST {}: Status. For the operator. A primary publishes its role once more
)

// Config is all that an agent has to know about its SampleDB. The operator keeps
// it in a ConfigMap, from which an agent starts, and sends it on every change.
type Config struct {
	// Revision identifies the contents, without the addresses and the readers. See Revise.
	Revision string `json:"revision"`
	// Cluster and Namespace are the SampleDB's.
	Cluster   string `json:"cluster"`
	Namespace string `json:"namespace"`
	// Major is the PostgreSQL major version.
	Major int `json:"major"`
	// FirstMajor is the one that the SampleDB has begun with, 0 where that is Major.
	FirstMajor int `json:"firstMajor,omitempty"`
	// Members are the instances by ordinal.
	Members []Member `json:"members"`
	// Preferred are the members by name in the order in which they should lead; empty where all are alike. A leader
	// that hands over in order names the first of them that can take over. Agents of release 0.1.0 name nobody.
	Preferred []string `json:"preferred,omitempty"`
	// Readers is how many readers there are: standbys that are no members. A primary keeps a slot for each of the first
	// so many. It is no part of the revision: that they come and go must not reload any server.
	Readers int `json:"readers,omitempty"`
	// SystemIdentifier is PostgreSQL's, once some instance has made the data.
	// While it is empty, the first member may.
	SystemIdentifier string `json:"systemIdentifier,omitempty"`
	// Parameters are those of the user and the operator's defaults under them.
	Parameters map[string]string `json:"parameters,omitempty"`
	// HBA are the user's lines of pg_hba.conf.
	HBA []string `json:"hba,omitempty"`
	// Authority is the certificate (PEM) of the SampleDB's own authority; during a rotation of it, that of the former
	// one and that of the new one.
	Authority string `json:"authority"`
	// Operator is the certificate (PEM) of the authority that vouches for the operator.
	Operator string `json:"operator"`
	// ServerNames are the DNS names and addresses that clients may call the
	// servers by, besides the members' own.
	ServerNames []string `json:"serverNames,omitempty"`
	// Certificate is what the servers are to show to clients, nil for one of the SampleDB's own authority.
	Certificate *Certificate `json:"certificate,omitempty"`
	// Given are the certificates (PEM) of the authorities of such ones that clients have been told, in ca.crt of
	// NAME-app. No certificate of another one is shown.
	Given string `json:"given,omitempty"`
	// Durability is which promise an acknowledged commit makes: DurabilityQuorum
	// or DurabilityAsync.
	Durability string `json:"durability"`
	// Witness is the UID of the Lease that two instances ask which of them may go
	// on alone; empty until it is known. It is named like the SampleDB. One with another
	// UID is not the one that the instances have written to, and says nothing.
	Witness string `json:"witness,omitempty"`
	// Archive is where the WAL goes; nil for nowhere.
	Archive *Archive `json:"archive,omitempty"`
	// Restored is the id of the restore in place whose data the instances are to have, "" for none. RemoveBefore says
	// that what it has replaced may go, Prepares that another is being made on a volume.
	Restored     string `json:"restored,omitempty"`
	RemoveBefore bool   `json:"removeBefore,omitempty"`
	// Survivor is the instance that goes on with its own data as that of Restored, "" where a restore has made it.
	Survivor string `json:"survivor,omitempty"`
	// RestoredBefore is the id of the last restore in place that the spec has asked for, where the operator has begun
	// the one in Restored by itself: it is done, and not to be done again.
	RestoredBefore string `json:"restoredBefore,omitempty"`
	Prepares       bool   `json:"prepares,omitempty"`
	// Upgraded is the id of the last upgrade to another major version, whose data the instances are to have, "" for
	// none. RemoveUpgraded is that of one whose former data may go.
	Upgraded       string `json:"upgraded,omitempty"`
	RemoveUpgraded string `json:"removeUpgraded,omitempty"`
	// Closed lets no client in but our own: the SampleDB is being deleted, and its last backup taken; or it is being
	// upgraded to another major version, or stopped.
	Closed bool `json:"closed,omitempty"`
	// Link says that another side of a blue/green upgrade follows this one, or is about to, by logical replication. It
	// is let in though Closed.
	Link bool `json:"link,omitempty"`
	// Pooler says that poolers may log in, to look up by which verifiers clients are known.
	Pooler bool `json:"pooler,omitempty"`
	// Relay says that the agents are to pass clients on to the primary. Agents of earlier releases pass none on.
	Relay bool `json:"relay,omitempty"`
	// ReadMaxLag is how long a standby may have WAL that it has not replayed, and still be read; 0 for no bound.
	ReadMaxLag time.Duration `json:"readMaxLag,omitempty"`
	// Metrics is what the agents are to serve besides the default; nil for nothing.
	Metrics *Metrics `json:"metrics,omitempty"`
	// Idles says that the agents are to look for how long no client has done anything (Status.Idle), Holds that the
	// primary is to have its poolers hold their clients, because the SampleDB goes to sleep. Neither is a part of the
	// revision: no server has to know them. Agents of earlier releases do neither.
	Idles bool `json:"idles,omitempty"`
	Holds bool `json:"holds,omitempty"`
}

// The values of Config.Durability.
const (
	DurabilityQuorum = "quorum" // a commit is acknowledged when a majority of the voters have it on disk
	DurabilityAsync  = "async"  // a commit is acknowledged when the primary has it on disk
)

// Member is one instance.
type Member struct {
	Name string `json:"name"`
	// Host is its lasting DNS name.
	Host string `json:"host"`
	// Address is where it was last seen, if that is known: an IP address. It
	// saves a look-up that a DNS cache may answer with "no such name" for a while
	// after a Pod's start. It is no part of the revision.
	Address string `json:"address,omitempty"`
}

// Revise returns the config with its revision set: a hash of all but what no server has to know, such as addresses and
// the number of readers.
func (c Config) Revise() Config {
	plain := c
	plain.Revision, plain.Readers, plain.Idles, plain.Holds = "", 0, false, false
	plain.Members = make([]Member, len(c.Members))
	for i, m := range c.Members {
		plain.Members[i] = Member{Name: m.Name, Host: m.Host}
	}
	text, err := json.Marshal(plain)
	if err != nil {
		panic(err) // strings, numbers and maps of them: can't fail
	}
	sum := sha256.Sum256(text)
	c.Revision = hex.EncodeToString(sum[:8])
	return c
}

// Role is what an instance does.
type Role string

// The roles. RoleNone is that of an instance that runs no server (yet).
const (
	RoleNone    Role = ""
	RolePrimary Role = "primary"
	RoleStandby Role = "standby"
)

// Data is what lies in an instance's data directory.
type Data string

// The states of a data directory.
const (
	DataUnknown Data = ""        // it could not be read
	DataEmpty   Data = "empty"   // nothing there
	DataPresent Data = "present" // a whole data directory
)

// Status is what an agent says of its instance.
type Status struct {
	Name string `json:"name"`
	// Protocol is the version of the protocol that it speaks (Version), 0 for release 0.1.0, which says none.
	Protocol int `json:"protocol,omitempty"`
	// Boot is another one for each start of the agent, and Number grows with each
	// change of the status since: of two statuses of one boot, the higher is the later.
	Boot   string `json:"boot,omitempty"`
	Number uint64 `json:"number,omitempty"`
	// Role it has now, and whether it does what that asks, as a query has shown.
	Role  Role `json:"role"`
	Ready bool `json:"ready"`
	// Reason and Message are those of the agent's last decision, or of what keeps
	// the instance from being ready.
	Reason  string `json:"reason"`
	Message string `json:"message,omitempty"`

	// Term is the highest election term this instance has stored, and Leader the primary in it.
	Term   uint64 `json:"term"`
	Leader string `json:"leader,omitempty"`

	Data             Data   `json:"data"`
	SystemIdentifier string `json:"systemIdentifier,omitempty"`
	// ServerVersion is that of the running server or of the programs, e.g. "17.6".
	ServerVersion string       `json:"serverVersion,omitempty"`
	Timeline      wal.Timeline `json:"timeline,omitempty"`
	// LSN is the end of WAL written (primary) or received (standby), in
	// PostgreSQL's own notation; Oldest the start of the oldest WAL still there.
	LSN    string `json:"lsn,omitempty"`
	Oldest string `json:"oldest,omitempty"`
	// Streaming says whether a standby's WAL receiver is streaming, and Standbys
	// which instances stream from a primary.
	Streaming bool     `json:"streaming,omitempty"`
	Standbys  []string `json:"standbys,omitempty"`

	// ConfigRevision is the Config that the server runs with, and ConfigError why
	// the last one given could not be applied.
	ConfigRevision string `json:"configRevision,omitempty"`
	ConfigError    string `json:"configError,omitempty"`
	// RejectedRevision is the Config that ConfigError is about.
	RejectedRevision string `json:"rejectedRevision,omitempty"`
	// PendingRestart are the parameters that wait for a restart of the server.
	PendingRestart []string `json:"pendingRestart,omitempty"`

	// Started tells the run of the server from any other of the instance; "" where it is not known, or the agent is of
	// an earlier release, which does not say so.
	Started string `json:"started,omitempty"`

	// Certificate is which one clients are shown. Release 0.1.0 does not say so.
	Certificate *CertificateStatus `json:"certificate,omitempty"`
	// Identity is what the instance's agent and its server show and trust; nil where that has not been seen yet, or the
	// agent is of an earlier release, which knows one authority only.
	Identity *Identity `json:"identity,omitempty"`

	// Program is which one the agent runs, and how others fared that it was given; nil where that is not known yet, or
	// the agent can't be given one.
	Program *Program `json:"program,omitempty"`

	// Archive is how far a leader's archive is; nil where there is none, or this is no leader.
	Archive *ArchiveStatus `json:"archive,omitempty"`

	// Room is how full its volume is; nil where that is not known yet, or the agent is of an earlier release, which
	// does not look.
	Room *Room `json:"room,omitempty"`
	// WALRoom is the same of its WAL volume; nil also where it has none. SparesWAL says that this one gets full: it is
	// why a primary takes no writes.
	WALRoom   *Room `json:"walRoom,omitempty"`
	SparesWAL bool  `json:"sparesWAL,omitempty"`
	// ReadOnly says that a primary takes no writes, for its volume gets full. Agents of earlier releases take them
	// until it is.
	ReadOnly bool `json:"readOnly,omitempty"`
	// KeptWAL is for whom a primary keeps much WAL; nil where it has not looked yet, or this is no primary, or the
	// agent is of an earlier release, which does not look.
	KeptWAL *KeptWAL `json:"keptWAL,omitempty"`

	// Queries is what became of the users' own queries for metrics; nil where nobody has asked for the metrics of this
	// primary, or this is none, or there are no such queries, or the agent is of an earlier release.
	Queries *QueriesStatus `json:"queries,omitempty"`

	// Collations is what a leader has found of the orders in which texts are sorted; nil where it has not looked yet,
	// or this is no leader, or the agent is of an earlier release, which does not look.
	Collations *maintenance.Report `json:"collations,omitempty"`

	// Closed says that no client is there any more, and none gets in. End is where a primary's WAL ended after that:
	// all that clients have committed is before it. "" is not known; agents of release 0.1.0 don't say it.
	Closed bool   `json:"closed,omitempty"`
	End    string `json:"end,omitempty"`

	// HandOver names the hand-over for which a primary that is about to stop waits until its poolers hold; "" for none.
	HandOver string `json:"handOver,omitempty"`
	// Relays says that the agent passes clients on to the primary.
	Relays bool `json:"relays,omitempty"`
	// Late says that a standby is too late to be read (Config.ReadMaxLag).
	Late bool `json:"late,omitempty"`

	// Idle is for how long no client has done anything; nil where that is not known, or not asked for. Only the
	// operator is told.
	Idle *time.Duration `json:"idle,omitempty"`

	// Slack is how much longer than usual what comes from the instance's machine is waited for (docs/busy.md, "A
	// machine that is busy"): 0 where nothing comes late there, nil where that is not known, or the agent is of an
	// earlier release, which does not say so.
	Slack *time.Duration `json:"slack,omitempty"`
	// InVain is how many times the instance has campaigned in vain since somebody has led for long, 0 where it does not
	// campaign any more. Agents of earlier releases don't say it.
	InVain int `json:"inVain,omitempty"`

	// Voters are the instances whose acknowledgement and vote count, by name, as
	// the leader has recorded them. Only a leader gives them.
	Voters []string `json:"voters,omitempty"`
	// Acknowledgements is how many instances must have a commit on disk before it
	// is acknowledged, the primary included. Only a leader gives it; 0 is not known.
	Acknowledgements int `json:"acknowledgements,omitempty"`
	// Resigned says that the instance has laid down its leadership and waits for
	// another to take it.
	Resigned bool `json:"resigned,omitempty"`
	// Election is what those that vote with it want to know.
	Election Election `json:"election"`
	// Refusal is why no instance is being promoted, in one word. Message has the sentence.
	Refusal string `json:"refusal,omitempty"`
	// SwitchoverError is why the last switchover asked for was refused: a sentence
	// for the user. The next request clears it.
	SwitchoverError string `json:"switchoverError,omitempty"`
}

// Identity says which authorities an instance has to do with, by the ids of their keys (pki.KeyIDs).
type Identity struct {
	// Issuer is the one whose certificate the agent and the server show.
	Issuer string `json:"issuer"`
	// Trusted are those that both believe, in the order of Config.Authority.
	Trusted []string `json:"trusted"`
}

// Restart asks an agent to restart its PostgreSQL server, not its Pod.
type Restart struct {
	// Reason is for the log.
	Reason string `json:"reason"`
	// ConfigRevision guards against a late request: the agent refuses when it runs another one.
	ConfigRevision string `json:"configRevision"`
}

// Switchover asks the primary's agent to hand over to another instance. The
// request is repeated until the primary has changed, so an agent that is
// already at it goes on. One that can't answers with SwitchoverError.
type Switchover struct {
	// To is the instance that should lead; any where it is empty.
	To string `json:"to,omitempty"`
	// Reason is for the log.
	Reason string `json:"reason"`
}

// Version is the version of the protocol that an agent of this release speaks. It says so in its status. Agents of
// several versions mix in one SampleDB, so nothing is asked of one that its version does not have:
//
//	0  release 0.1.0, which says no version
//	1  the status has the version, the limits (ha.Limits), whether the volume stalls, and how far the voter had come
//	   when its agent started; a vote or a configuration with a member that is not known is refused;
//	   the name of a standby has the term in which it follows (ha.FollowerName);
//	   it can be asked for another password of a role (PathPassword), and given another program (PathProgram);
//	   it tells poolers who leads (PathPooler), and waits for them before it stops in order;
//	   a primary keeps slots for readers (Config.Readers), which an agent of version 0 would drop
//
// docs/agentupdate.md has the rules for the next one.
const Version = 1

// ImageResult is what the process in the Pod of a look into an image leaves: what it has found there.
type ImageResult struct {
	// Version is that of PostgreSQL's programs, for instance "17.12".
	Version string `json:"version,omitempty"`
	// CLibrary is the C library with its version, for instance "glibc 2.41", ICU the version of ICU, for instance
	// "76.1". Each is empty where it is not known.
	CLibrary string `json:"cLibrary,omitempty"`
	ICU      string `json:"icu,omitempty"`
	// Extensions are those that can be created, each with its default version: as many as there is room for.
	Extensions []string `json:"extensions,omitempty"`
	// Error is why nothing was found.
	Error string `json:"error,omitempty"`
}
