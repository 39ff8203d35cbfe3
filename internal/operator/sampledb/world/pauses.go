package world

import (
	"time"
)

// Pauses until a SampleDB is looked at again when nothing happens before. Most
// changes are watched; what is asked for again is what only agents know.
const (
	PauseConflict = 100 * time.Millisecond
	PauseStarting = time.Second
	// PauseShort is while no client is let in.
	PauseShort   = 200 * time.Millisecond
	PauseWorking = 2 * time.Second
	PauseStuck   = 10 * time.Second
	PauseResting = 5 * time.Minute
	// PauseArchiving is how old what the status says of the archive may be: only the
	// agents know it, and that it goes on must not be believed for long.
	PauseArchiving = 30 * time.Second

	// StuckAfter is when what is under way is looked at less often.
	StuckAfter = 2 * time.Minute
	// PauseStuckLong is for what has been stuck for long, or waits for something of which nobody tells.
	PauseStuckLong = 30 * time.Second
)
