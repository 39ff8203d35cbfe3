package publish

import (
	"context"
	"log/slog"
	"time"

	"toban.dev/internal/pause"
)

// markInterval is how often it is looked whether the mark is right.
const markInterval = time.Second

// Marker marks this instance in the cluster while its volume gets full, so that the operator looks at once: it asks a
// database at rest every few minutes only.
type Marker struct {
	// Cluster is nil where there is none.
	Cluster Cluster
	// Room says how it is with the volume, "" where there is enough room.
	Room func() string
	Log  *slog.Logger
}

// Run marks the instance, and takes the mark away, until ctx ends. What an agent before has marked is put right first.
func (m *Marker) Run(ctx context.Context) error {
	var marked *string
	for failed := ""; pause.Every(ctx, markInterval); {
		now := m.Room()
		if m.Cluster == nil || marked != nil && *marked == now {
			continue
		}
		once, cancel := context.WithTimeout(ctx, publishDeadline)
		err := m.Cluster.MarkRoom(once, now)
		cancel()
		if err == nil {
			marked, failed = &now, ""
		} else if err.Error() != failed {
			failed = err.Error()
			m.Log.Warn("the instance could not be marked", "room", now, "error", failed)
		}
	}
	return nil
}
