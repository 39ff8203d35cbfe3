package agent

import (
	"context"
	"time"

	"toban.dev/internal/agent/pause"
)

// misledAfter are the times after which clients of a former primary are ended, counted from the moment at which its Pod
// bore another label: the nodes need one or two seconds to lead no more of them here, and some nodes longer.
var misledAfter = []time.Duration{2 * time.Second, 8 * time.Second}

// misledDeadline is for ending them once.
const misledDeadline = 3 * time.Second

// endMisledLater ends the clients that have come to a former primary since it is a standby. The Service led to it as to
// the primary until its label was another. Such a session could only read, and one of a pool would stay for ever.
// Clients that want a standby open another session.
func (a *Agent) endMisledLater() {
	deposed := time.Now()
	go func() {
		for _, after := range misledAfter {
			if !pause.For(a.life, time.Until(deposed.Add(after))) {
				return
			}
			a.endMisled(a.life)
		}
	}()
}

func (a *Agent) endMisled(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, misledDeadline)
	defer cancel()
	session, err := a.server.Connect(ctx)
	if err != nil {
		a.options.Log.Warn("clients that look for the primary could not be ended", "error", err.Error())
		return
	}
	defer session.Close()
	switch ended, err := session.EndMisled(ctx); {
	case err != nil:
		a.options.Log.Warn("clients that look for the primary could not be ended", "error", err.Error())
	case ended > 0:
		a.options.Log.Info("clients of a former primary were ended: they find the present one", "sessions", ended)
	}
}
