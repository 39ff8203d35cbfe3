package serve

import (
	"context"
	"io"
	"net/http"

	"toban.dev/internal/agent/status"
	"toban.dev/internal/naming"
)

// Probes answer the kubelet.
type Probes struct {
	// Listen is the address to listen on, "" for all, ListenAt listens there.
	Listen   string
	ListenAt ListenAt
	Status   *status.Board
	// Alive says that the agent does not hang, Ready that the instance does what its role asks.
	Alive, Ready func() bool
}

// Serve serves the kubelet's probes.
func (p *Probes) Serve(ctx context.Context) error {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) {
		probe(w, p.Alive(), "the elections have not moved for a minute")
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		status := p.Status.Get()
		probe(w, p.Ready(), status.Reason+": "+status.Message)
	})
	server := PlainServer(mux)
	return serveUntil(ctx, server, p.ListenAt, at(p.Listen, naming.PortProbe), server.Serve)
}

func probe(w http.ResponseWriter, ok bool, why string) {
	if !ok {
		http.Error(w, why, http.StatusServiceUnavailable)
		return
	}
	_, _ = io.WriteString(w, "ok\n") // the kubelet that hung up asks again
}
