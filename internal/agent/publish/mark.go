package publish

import (
	"context"
	"log/slog"
	"time"

	"toban.dev/internal/agent/pause"
)

// markInterval is how often it is looked whether the mark is right.
const markInterval = time.Second

// Marker marks this instance in the cluster while it takes no writes, so that the operator looks at once: it asks a
// database at rest every few minutes only.
type Marker struct {
	// Cluster is nil where there is none.
	Cluster Cluster
	// ReadOnly says that the instance takes no writes.
	ReadOnly func() bool
	Log      *slog.Logger
}

// Run marks the instance, and takes the mark away, until ctx ends. What an agent before has marked is put right first.
func (m *Marker) Run(ctx context.Context) error {
	var marked *bool
	for failed := ""; pause.For(ctx, markInterval); {
		now := m.ReadOnly()
		if m.Cluster == nil || marked != nil && *marked == now {
			continue
		}
		once, cancel := context.WithTimeout(ctx, publishDeadline)
		err := m.Cluster.MarkReadOnly(once, now)
		cancel()
		if err == nil {
			marked, failed = &now, ""
		} else if err.Error() != failed {
			failed = err.Error()
			m.Log.Warn("the instance could not be marked", "readOnly", now, "error", failed)
		}
	}
	return nil
}
