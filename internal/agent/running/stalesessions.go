package running

import (
	"context"
	"log/slog"
	"time"

	"toban.dev/internal/pause"
)

// staleAfter are the times after which clients of a former primary are ended, counted from the moment at which its Pod
// bore another label: the nodes need one or two seconds to lead no more of them here, and some nodes longer.
var staleAfter = []time.Duration{2 * time.Second, 8 * time.Second}

// staleDeadline is for ending them once.
const staleDeadline = 3 * time.Second

// StaleSessions ends the clients that have come to a former primary since it is a standby. The Service led to it as to
// the primary until its label was another. Such a session could only read, and one of a pool would stay for ever.
// Clients that want a standby open another session.
type StaleSessions struct {
	Connect func(ctx context.Context) (Session, error)
	Log     *slog.Logger
}

// EndLater ends them in a while, and again.
func (m StaleSessions) EndLater(ctx context.Context) {
	deposed := time.Now()
	for _, after := range staleAfter {
		if !pause.For(ctx, time.Until(deposed.Add(after))) {
			return
		}
		switch ended, err := m.end(ctx); {
		case err != nil:
			m.Log.Warn("clients that look for the primary could not be ended", "error", err.Error())
		case ended > 0:
			m.Log.Info("clients of a former primary were ended: they find the present one", "sessions", ended)
		}
	}
}

func (m StaleSessions) end(ctx context.Context) (ended int, err error) {
	ctx, cancel := context.WithTimeout(ctx, staleDeadline)
	defer cancel()
	session, err := m.Connect(ctx)
	if err != nil {
		return 0, err
	}
	defer session.Close()
	return session.EndMisled(ctx)
}
