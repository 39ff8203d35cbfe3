package v1

// ConditionReadersReady is true when there are as many readers as are wanted, and all of them stream and answer
// queries. It is there with `spec.readers`. Neither Ready nor anything else waits for it.
const ConditionReadersReady = "ReadersReady"

// Reasons of ReadersReady. The other ones of it are those of Ready that are about one object: NameTaken and Stopped.
const (
	// ReasonReadersServe: all readers stream and answer queries.
	// To do: nothing.
	ReasonReadersServe = "ReadersServe"

	// ReasonReadersComing: readers are being made, copy the data, are replaced, or don't stream. The message names the
	// first of them, and says what it does.
	// To do: wait. If it stays, see the lines of the readers in `kubectl toban status NAME`.
	ReasonReadersComing = "ReadersComing"

	// ReasonReadersLater: there are no readers now, because the database is being set up, restored in place or upgraded
	// to another major version.
	// To do: wait. They are made when that is done.
	ReasonReadersLater = "ReadersLater"

	// ReasonAgentsTooOld: an agent is of a release that does not know readers. The message says of which instance.
	// To do: replace the agents: `kubectl annotate sampledb NAME toban.dev/replace-agents=now`.
	ReasonAgentsTooOld = "AgentsTooOld"
)
