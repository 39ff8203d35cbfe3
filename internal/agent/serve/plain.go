package serve

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"
)

// Bounds of a server that everybody may ask. A probe has a short header and no body, and is answered at once.
const (
	plainConnections = 64
	plainHeader      = 4 << 10 // bytes; net/http adds as many
	plainTimeout     = 5 * time.Second
)

// PlainServer answers the kubelet's probes over HTTP. Whoever else asks can't take much of the process that they are
// about: neither memory, nor files, nor the place of the kubelet.
func PlainServer(handler http.Handler) *http.Server {
	bounded := &crowd{most: plainConnections}
	return &http.Server{
		Handler: handler, ConnState: bounded.track, MaxHeaderBytes: plainHeader,
		ReadHeaderTimeout: plainTimeout, ReadTimeout: plainTimeout,
		WriteTimeout: plainTimeout, IdleTimeout: plainTimeout,
	}
}

// crowd bounds how many connections are open: for one too many, the oldest is closed. To let the new one wait would let
// those who open many keep the kubelet out, which then restarts the container.
type crowd struct {
	most  int
	mutex sync.Mutex
	open  []net.Conn
}

// track is told of every connection when it comes and when it goes.
func (c *crowd) track(conn net.Conn, state http.ConnState) {
	if oldest := c.note(conn, state); oldest != nil {
		_ = oldest.Close() // its own goroutine sees that
	}
}

// note returns the connection that is to be closed, nil for none.
func (c *crowd) note(conn net.Conn, state http.ConnState) net.Conn {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	switch state {
	case http.StateNew:
		c.open = append(c.open, conn)
		if len(c.open) > c.most {
			oldest := c.open[0]
			c.open = c.open[1:]
			return oldest
		}
	case http.StateClosed, http.StateHijacked:
		c.open = slices.DeleteFunc(c.open, func(o net.Conn) bool { return o == conn })
	case http.StateActive, http.StateIdle:
	}
	return nil
}

// ListenAt listens at an address, until ctx ends.
type ListenAt func(ctx context.Context, address string) (net.Listener, error)

// at is an address to listen at.
func at(host string, port int) string { return net.JoinHostPort(host, strconv.Itoa(port)) }

// serveUntil serves until ctx ends.
func serveUntil(
	ctx context.Context, server *http.Server, listen ListenAt, address string, serve func(net.Listener) error,
) error {
	listener, err := listen(ctx, address)
	if err != nil {
		return fmt.Errorf("serve peers, operator, probes or metrics: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() }) // an answer cut off is asked for again
	defer stop()
	if err := serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve %s: %w", address, err)
	}
	return nil
}
