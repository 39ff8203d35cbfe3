package v1

// Reasons of Ready and Available of a database that is stopped. docs/stop.md has the steps.
const (
	// ReasonStopping: the database is being stopped, as `spec.stopped` or `spec.stopWindows` say; the message names the
	// step, or what the stop waits for.
	// To do: wait. To take it back: `kubectl toban start NAME`.
	ReasonStopping = "Stopping"

	// ReasonStopped: the database is stopped, as `spec.stopped` or `spec.stopWindows` say. All its data is on its
	// volumes; the message says whether the archive has it too. It is also a reason of Archiving, Restored, and of
	// conditions that only running instances can tell.
	// To do: nothing. To start it: `kubectl toban start NAME`.
	ReasonStopped = "Stopped"

	// ReasonSleeping: the database was stopped because no client had done anything for `spec.sleepAfter`.
	// To do: nothing. A client that connects through the pooler starts it, and so does `kubectl toban start NAME`.
	ReasonSleeping = "Sleeping"

	// ReasonStarting: the database was stopped, and is being started; no instance takes writes yet.
	// To do: wait some seconds. If it stays, the message says what the instances wait for.
	ReasonStarting = "Starting"
)

// Reasons of Archiving of a database that is stopped.
const (
	// ReasonArchiveIncomplete: the database is stopped, and the archive is not known to have all of its WAL; the
	// message says up to where it goes. The rest is on the volumes.
	// To do: nothing if the archive was away: the rest is archived after the start. Don't delete the volumes before.
	ReasonArchiveIncomplete = "ArchiveIncomplete"
)
