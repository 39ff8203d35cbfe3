package agent

import (
	"context"
	"net"
	"os"
	"time"

	"toban.dev/internal/agent/running"
	"toban.dev/internal/naming"
	"toban.dev/internal/postgres"
	"toban.dev/internal/protocol"
)

// Surroundings are what an agent touches of the machine that it runs on. What is nil is the real thing. Tests that run
// whole clusters in virtual time have others (test/virtual).
type Surroundings struct {
	// Server is the PostgreSQL server.
	Server running.PostgreSQL
	// ListenAt listens for peers, operator and probes.
	ListenAt func(ctx context.Context, address string) (net.Listener, error)
	// Dial connects to peers.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// WriteFile replaces a file of the hard state; when it returns, the new one is on disk.
	WriteFile func(path string, content []byte, mode os.FileMode) error
	// Allocate makes a file with that many bytes on disk.
	Allocate func(path string, bytes int64) error
	// Stalled is for how long, in all, tasks on the machine have waited for what it lacks.
	Stalled func() time.Duration
	// Die ends the agent's process at once, with all that it has started.
	Die func()
}

// postgreSQL is the server, with the version of its programs.
func (o *Options) postgreSQL(ctx context.Context, major int) (server running.PostgreSQL, version string, err error) {
	if o.Server != nil {
		return o.Server, "", nil
	}
	if o.found.Major != major {
		if o.found, err = postgres.FindPrograms(ctx, major); err != nil {
			return nil, "", err
		}
	}
	return running.Real{Server: &postgres.Server{
		Programs: o.found, Data: postgres.DataDirectory{Volume: o.Volume, WALVolume: o.WALVolume}, Run: o.Run,
		Listen: listenAddresses(o.Listen), Port: naming.PortPostgreSQL,
	}}, o.found.Version, nil
}

func listenAddresses(listen string) string {
	if listen == "" {
		return "*"
	}
	return listen
}

// listener listens at an address.
func (o *Options) listener(ctx context.Context, address string) (net.Listener, error) {
	if o.ListenAt != nil {
		return o.ListenAt(ctx, address)
	}
	return protocol.Listen(ctx, address)
}
