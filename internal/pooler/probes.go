package pooler

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"

	"toban.dev/internal/agent/serve"
	"toban.dev/internal/naming"
)

// serveProbes answers the kubelet until ctx ends. A pooler is ready once it has had a route: while no instance leads
// it has to take clients, and to hold them.
func (p *Pooler) serveProbes(ctx context.Context) error {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, r *http.Request) {
		_, err := p.console.quick(r.Context(), "SHOW VERSION")
		probe(w, err)
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if p.State().Route == (Route{}) {
			probe(w, errors.New("no instance has said yet that it leads"))
			return
		}
		probe(w, nil)
	})
	listen := p.options.Listen
	if listen == everywhere {
		listen = ""
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort(listen, strconv.Itoa(naming.PortProbe)))
	if err != nil {
		return fmt.Errorf("listen for probes: %w", err)
	}
	server := serve.PlainServer(mux)
	context.AfterFunc(ctx, func() { _ = server.Close() })
	go func() { _ = server.Serve(listener) }() // it ends with ctx
	return nil
}

func probe(w http.ResponseWriter, err error) {
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	_, _ = io.WriteString(w, "ok\n") // the kubelet that hung up asks again
}
