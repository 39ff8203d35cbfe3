package protocol

import (
	"context"
	"fmt"
	"net"
)

// Listen listens at an address for those who talk to an agent. Connections that
// it accepts are thin. Multipath TCP, which Go would offer, would not pass that on.
func Listen(ctx context.Context, address string) (net.Listener, error) {
	config := net.ListenConfig{Control: thin}
	config.SetMultipathTCP(false)
	listener, err := config.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	return listener, nil
}
