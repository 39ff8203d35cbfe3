package v1

// ConditionPassed is true when a FaultDrill has met all of its objectives. It exists when the drill has ended with a
// result.
const ConditionPassed = "Passed"

// Reasons of Complete that are those of a FaultDrill alone.
const (
	// ReasonDrillNotAllowed: the SampleDB does not allow drills, so that nobody breaks a database by mistake. With
	// `spec.drills` it is also a reason of DrillsPassed.
	// To do: if it may be broken, `kubectl annotate sampledb NAME toban.dev/fault-drills=allowed`.
	ReasonDrillNotAllowed = "DrillNotAllowed"

	// ReasonNotReadyForDrill: the SampleDB is not Ready and Durable, does something else, or has another drill: no
	// fault is added to that. The message says what it is.
	// To do: wait; it begins by itself. Or correct what the message names.
	ReasonNotReadyForDrill = "NotReadyForDrill"
)

// Reasons of Passed. They are those of a FaultDrill.
const (
	// ReasonObjectivesMet: no acknowledged write is lost, and every objective of `spec.objectives` was met.
	// To do: nothing.
	ReasonObjectivesMet = "ObjectivesMet"

	// ReasonWritesLost: writes that were acknowledged are not in the database.
	// To do: with `spec.durability: async` a failover may lose writes. In any other case please report it, with
	// `kubectl toban report`.
	ReasonWritesLost = "WritesLost"

	// ReasonOutageTooLong: a client was without an acknowledged write for longer than `spec.objectives.maxOutage`, or
	// for `spec.abortAfter`, which ended the drill.
	// To do: `status.clients` says which client and for how long, docs/failover.md what decides about that.
	ReasonOutageTooLong = "OutageTooLong"

	// ReasonAbortedByQuery: the query of `spec.abortWhen` was true, which ended the drill.
	// To do: see what the query has found.
	ReasonAbortedByQuery = "AbortedByQuery"

	// ReasonNotWholeInTime: the SampleDB was not Ready and Durable again within `spec.objectives.wholeWithin`.
	// To do: its conditions and `kubectl toban status NAME` say what it waits for.
	ReasonNotWholeInTime = "NotWholeInTime"
)

// Reasons of DrillsPassed. None of them keeps Ready from being true.
const (
	// ReasonLastDrillPassed: the last FaultDrill has met all of its objectives; the message says when that was.
	// To do: nothing.
	ReasonLastDrillPassed = "LastDrillPassed"

	// ReasonLastDrillNotPassed: the last FaultDrill has missed an objective; the message says which.
	// To do: `kubectl toban drill NAME` has all drills, and the condition Passed of the last one what was missed.
	ReasonLastDrillNotPassed = "LastDrillNotPassed"

	// ReasonNoDrillYet: no FaultDrill of the SampleDB has ended with a result, so it is not known whether it would
	// pass.
	// To do: nothing: the message says when the next one is. Or read why the last one had no result, in its condition
	// Complete.
	ReasonNoDrillYet = "NoDrillYet"
)
