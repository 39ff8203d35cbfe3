package serve

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5"

	"toban.dev/internal/agent/status"
	"toban.dev/internal/naming"
	"toban.dev/internal/pause"
	"toban.dev/internal/protocol"
)

// metricsAgain is after how long it is tried again to serve metrics.
const metricsAgain = 5 * time.Second

// Measured is an instance, for who tells Prometheus of it.
type Measured struct {
	Server Statistics
	Status *status.Board
	Config func() protocol.Config
	Log    *slog.Logger
}

// Statistics are what its server is asked for: a postgres.Server.
type Statistics interface {
	ConnectStatistics(ctx context.Context) (*pgx.Conn, error)
	ConnectMetrics(ctx context.Context, database string) (*pgx.Conn, error)
	EnsureMetricsRole(ctx context.Context, reads string) error
}

// Metrics are served to Prometheus, to whom the NetworkPolicy lets in.
type Metrics struct {
	// Listen is the address to listen on, "" for all, ListenAt listens there.
	Listen   string
	ListenAt ListenAt
	// Handler answers, nil where there are none.
	Handler http.Handler
	Log     *slog.Logger
}

// Serve serves metrics until ctx ends. Nothing else depends on them: where they can't be served, it is tried again.
// Their listener is not handed over to another program: one of an earlier release would not know what to do with it.
func (m *Metrics) Serve(ctx context.Context) error {
	if m.Handler == nil {
		<-ctx.Done()
		return nil
	}
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
