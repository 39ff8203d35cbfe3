package protocol

import (
	"context"
	"time"
)

// PathBegin is of the server in the Pod of an upgrade. POST UpgradeBegin: BackupProgress. For the operator. Until then
// the Pod touches nothing on the volume.
const PathBegin = "/v1/begin"

// StepAwaitsBegin is the step of an upgrade's Pod that is ready, and waits for PathBegin.
const StepAwaitsBegin = "waits until it is told to begin"

// UpgradeBegin tells the Pod of an upgrade that no instance runs any more.
type UpgradeBegin struct {
	// ID is the upgrade's: a Pod of another one refuses.
	ID string `json:"id"`
}

// The methods of an upgrade: how the new data gets the files with the rows of the old data.
const (
	// MethodClone has both share the blocks until one of them writes. The file system must be able to (reflinks).
	MethodClone = "clone"
	// MethodLink has both share the files. The old data can be used until the new server has started.
	MethodLink = "link"
	// MethodCopy copies, for which the volume must have the room.
	MethodCopy = "copy"
	// MethodSwap moves the old data's folders into the new data (PostgreSQL 18). There is no way back from its
	// beginning on: it is never chosen unless asked for.
	MethodSwap = "swap"
)

// UpgradeSettings is all that the Pod of an upgrade has to know; it is in a ConfigMap. What is secret is mounted.
type UpgradeSettings struct {
	// ID is the upgrade's. The instance takes the new data over by it, as that of a restore in place.
	ID string `json:"id"`
	// Instance is the one whose volume has the data.
	Instance string `json:"instance"`
	// From and To are major versions.
	From int `json:"from"`
	To   int `json:"to"`
	// Method is one of the methods, "" for clone where the file system can, and else link.
	Method string `json:"method,omitempty"`
	// Parameters are those of the SampleDB.
	Parameters map[string]string `json:"parameters,omitempty"`
	// Hosts are the DNS names of the instances, for the check.
	Hosts []string `json:"hosts,omitempty"`
	// OnRequest says that what the upgrade leaves in the databases is done when somebody asks for it, UpdateExtensions
	// that extensions are updated then. Both are for the check's warnings.
	OnRequest        bool `json:"onRequest,omitempty"`
	UpdateExtensions bool `json:"updateExtensions,omitempty"`
	// Operator and Given are the same as in Config.
	Operator string `json:"operator"`
	Given    string `json:"given,omitempty"`
}

// UpgradeResult is what the Pod of an upgrade leaves as its termination message.
type UpgradeResult struct {
	// Error is why there is no new data, "" where there is.
	Error string `json:"error,omitempty"`
	// From and To are the exact versions, for instance "15.14" and "18.1".
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
	// Method is the one that was used.
	Method string `json:"method,omitempty"`
	// SystemIdentifier is that of the new data, LSN where its WAL begins, Timeline the one it is on.
	SystemIdentifier string `json:"systemIdentifier,omitempty"`
	LSN              string `json:"lsn,omitempty"`
	Timeline         uint32 `json:"timeline,omitempty"`
	// Recovered says that the old data was not shut down in order, or as a standby, and has been changed for that: the
	// old server has replayed its WAL.
	Recovered bool `json:"recovered,omitempty"`
	// Statistics says that the planner's statistics came along. Else ANALYZE has to be run.
	Statistics bool `json:"statistics,omitempty"`
	// Extensions are those for which pg_upgrade says that they should be updated, each as "DATABASE: EXTENSION", of
	// many the first; More is how many there are besides.
	Extensions []string `json:"extensions,omitempty"`
	More       int      `json:"more,omitempty"`
	// Steps are what was done, with the seconds that it took.
	Steps []UpgradeStep `json:"steps,omitempty"`
}

// UpgradeStep is a part of an upgrade.
type UpgradeStep struct {
	Name    string  `json:"name"`
	Seconds float64 `json:"seconds"`
}

// UpgradeBack is what the Pod leaves that gives the old data back.
type UpgradeBack struct {
	// Error is why the old data is not back, "" where it is as it was.
	Error string `json:"error,omitempty"`
	// Forked says that the old data has been recovered, where it was a standby's: it has to follow the leader anew.
	Forked bool `json:"forked,omitempty"`
}

// UpgradeCheck is what the Pod leaves that looks whether an upgrade can be done.
type UpgradeCheck struct {
	// Error is why it was not found out, "" where it was.
	Error string `json:"error,omitempty"`
	// From and To are the exact versions.
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
	// Refusals are why it can't be done as things are; none where it can. Warnings are what will be otherwise after it.
	Refusals []UpgradeFinding `json:"refusals,omitempty"`
	Warnings []UpgradeFinding `json:"warnings,omitempty"`
	// Databases and Relations are how many there are, Bytes the size of all, Catalogs that of their system catalogs.
	Databases int   `json:"databases,omitempty"`
	Relations int   `json:"relations,omitempty"`
	Bytes     int64 `json:"bytes,omitempty"`
	Catalogs  int64 `json:"catalogs,omitempty"`
	// Steps are what was done, with the seconds that it took.
	Steps []UpgradeStep `json:"steps,omitempty"`
}

// RehearsalResult is what the Pod leaves that upgrades a copy.
type RehearsalResult struct {
	// Error is why it has not come to its end, so that it is not known whether there are (more) problems; "" where it
	// has.
	Error string `json:"error,omitempty"`
	// Problems are what is in the way of an upgrade, a sentence each; of many the first.
	Problems []string `json:"problems,omitempty"`
	// From and To are the exact versions, Method how the files became those of the new version.
	From   string `json:"from,omitempty"`
	To     string `json:"to,omitempty"`
	Method string `json:"method,omitempty"`
	// WithoutWrites is how long the part took that clients wait for (seconds), 0 where it did not come to its end.
	WithoutWrites float64 `json:"withoutWrites,omitempty"`
	// Commit is the time of the last transaction in the copy, Bytes the size of its databases.
	Commit time.Time `json:"commit,omitzero"`
	Bytes  int64     `json:"bytes,omitempty"`
	// Steps are what was done, those of the restore included.
	Steps []VerifyStep `json:"steps,omitempty"`
}

// UpgradeFinding is something that is in the way of an upgrade, or is to be known before it.
type UpgradeFinding struct {
	// Reason is its name, for instance "PreparedTransactions".
	Reason string `json:"reason"`
	// Message says what it is, and what to do.
	Message string `json:"message"`
	// Objects are those that it is about, of many the first; More is how many there are besides.
	Objects []string `json:"objects,omitempty"`
	More    int      `json:"more,omitempty"`
}

// Begin tells the Pod of an upgrade that no instance runs any more.
func (c *Client) Begin(ctx context.Context, host string, begin UpgradeBegin) (BackupProgress, error) {
	return call[BackupProgress](ctx, c, host, PathBegin, begin)
}
