package protocol

// SidesWork is what a Job of a blue/green upgrade does (docs/bluegreen.md).
type SidesWork string

// The work. All but SidesChange is done when its Pod starts. Each can be done again, wherever it was cut off.
const (
	// SidesPublish looks on blue for what can't follow, and makes publications, slots and notes there. Its result has
	// the position, or refusals.
	SidesPublish SidesWork = "publish"
	// SidesFollow has green follow from the position, or go on, and waits until it has caught up once.
	SidesFollow SidesWork = "follow"
	// SidesCompare compares all rows of both sides, and brings materialized views up to date.
	SidesCompare SidesWork = "compare"
	// SidesPrepare makes the link back, which does not begin.
	SidesPrepare SidesWork = "prepare"
	// SidesChange waits until it is told to begin: no client is in any more. Then it hands over: it looks for what is
	// in the way, sets the sequences, and waits until the following side has all.
	SidesChange SidesWork = "change"
	// SidesSettle has the former side begin to follow the one that serves now, and removes the former link.
	SidesSettle SidesWork = "settle"
	// SidesLeave has blue stop following, and forget its subscriptions: it is upgraded in place. Where they were is
	// noted on blue, in the transaction that removes them. The slots on green stay.
	SidesLeave SidesWork = "leave"
	// SidesReturn has blue follow green again from there, and waits until it has caught up once.
	SidesReturn SidesWork = "return"
	// SidesCancel removes all that there is of the links on blue, and on green if it can be reached.
	SidesCancel SidesWork = "cancel"
)

// SidesSettings is all that the Pods of a blue/green upgrade have to know; it is in a ConfigMap. What is secret is
// mounted. What a Pod is to do is in its command: SidesWork, and whether the serving side is green.
type SidesSettings struct {
	// ID is the upgrade's.
	ID string `json:"id"`
	// Position is that of the copy (an LSN), "" before it is known.
	Position string `json:"position,omitempty"`
	// To is the newer one of the major versions of both sides, 0 where it is not known.
	To int `json:"to,omitempty"`
	// Blue and Green are the sides. Green has no hosts before it is there.
	Blue  SidesOf `json:"blue"`
	Green SidesOf `json:"green"`
	// Operator is the same as in Config.
	Operator string `json:"operator"`
}

// SidesOf is one side.
type SidesOf struct {
	// Hosts are the DNS names of its instances.
	Hosts []string `json:"hosts,omitempty"`
	// Given is the same as in Config.
	Given string `json:"given,omitempty"`
}

// SidesResult is what a Pod of a blue/green upgrade leaves as its termination message. That of SidesChange says it to
// the operator before.
type SidesResult struct {
	// Error is why its work is not done; another try may help. "" where it is done, or Refusals or Broken say why not.
	Error string `json:"error,omitempty"`
	// Refusals are what is in the way, a sentence each with what to do.
	Refusals []UpgradeFinding `json:"refusals,omitempty"`
	// Broken is why the following side can't go on following, "" where it can.
	Broken string `json:"broken,omitempty"`
	// Position is where the copy is to end, exclusively (an LSN), after SidesPublish.
	Position string `json:"position,omitempty"`
	// Tables and Rows are what was compared, Differences those tables that differ, a sentence each.
	Tables      int      `json:"tables,omitempty"`
	Rows        int64    `json:"rows,omitempty"`
	Differences []string `json:"differences,omitempty"`
	// Seconds is how long it took, for SidesChange from when it was told to begin.
	Seconds float64 `json:"seconds,omitempty"`
	// Done says that its work is done.
	Done bool `json:"done,omitempty"`
}
