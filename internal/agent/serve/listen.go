package serve

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
)

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
