package serve

import (
	"context"
	"io"
	"net/http"

	"toban.dev/internal/naming"
)

// Probes answer the kubelet.
type Probes struct {
	// Listen is the address to listen on, "" for all, ListenAt listens there.
	Listen   string
	ListenAt ListenAt
	// Alive is nil where the process does not hang, Ready where it does what it is for; else they say why not.
	Alive, Ready func(context.Context) error
}

// Serve serves the kubelet's probes.
func (p *Probes) Serve(ctx context.Context) error {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /livez", probe(p.Alive))
	mux.HandleFunc("GET /readyz", probe(p.Ready))
	server := PlainServer(mux)
	return serveUntil(ctx, server, p.ListenAt, at(p.Listen, naming.PortProbe), server.Serve)
}

func probe(look func(context.Context) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := look(r.Context()); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		_, _ = io.WriteString(w, "ok\n") // the kubelet that hung up asks again
	}
}
