package serve

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"toban.dev/internal/naming"
	"toban.dev/internal/pause"
)

// metricsAgain is after how long it is tried again to serve metrics.
const metricsAgain = 5 * time.Second

// Metrics are served to Prometheus, to whom the NetworkPolicy lets in.
type Metrics struct {
	// Listen is the address to listen on, "" for all, ListenAt listens there.
	Listen   string
	ListenAt ListenAt
	Handler  http.Handler
	Log      *slog.Logger
}

// Serve serves metrics until ctx ends. Nothing else depends on them: where they can't be served, it is tried again.
// Their listener is not handed over to another program: one of an earlier release would not know what to do with it.
func (m *Metrics) Serve(ctx context.Context) error {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", m.Handler)
	told := ""
	for ctx.Err() == nil {
		server := PlainServer(mux)
		err := serveUntil(ctx, server, m.ListenAt, at(m.Listen, naming.PortMetrics), server.Serve)
		if err != nil && ctx.Err() == nil && err.Error() != told {
			told = err.Error()
			m.Log.Warn("metrics are not served", "error", told)
		}
		pause.For(ctx, metricsAgain)
	}
	return nil
}
