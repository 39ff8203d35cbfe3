package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"golang.org/x/sys/unix"

	"toban.dev/internal/naming"
	"toban.dev/test/outside"
)

// connectTimeout is for one address; answerTimeout for one statement. A client
// gives up then, and does not know what became of it.
const (
	connectTimeout = time.Second
	answerTimeout  = time.Second
	// foreverPatience is longer than any fault lasts.
	foreverPatience = 10 * time.Minute
)

// door is a way to open sessions.
type door struct {
	path Path
	// settings are made anew for each session, because addresses change.
	settings func() (*pgx.ConnConfig, error)
	// dial is the network to be in; nil is the machine's own.
	dial pgconn.DialFunc
	// patience is how long a statement may take.
	patience time.Duration
}

// patient is a door through which a client waits for its answer as long as it takes,
// as one without a timeout does: a server that stood still may answer after all.
func (d door) patient() door {
	d.patience = foreverPatience
	return d
}

// serviceDoor leads through the read-write Service, looked up for each session.
func serviceDoor(access func() outside.Access) door {
	settings := func() (*pgx.ConnConfig, error) { return access().Settings() }
	return door{path: PathService, patience: answerTimeout, settings: settings}
}

// poolerPatience is longer than the pooler holds its clients in any drill: they wait, and do not hang up.
const poolerPatience = 15 * time.Second

// thirdDoor leads through the Service of a third way.
func thirdDoor(path Path, access func() outside.Access) door {
	out := serviceDoor(access)
	if out.path = path; path == PathPooler {
		out.patience = poolerPatience
	}
	return out
}

// multiDoor is what libpq does with a list of hosts and target_session_attrs=read-write:
// one after the other, the first one that takes writes. The hosts are the instances'
// lasting names, looked up in the cluster's DNS for each session, as by an application.
func multiDoor(access outside.Access, hosts []string, resolver *net.Resolver) door {
	return door{path: PathMulti, patience: answerTimeout, settings: func() (*pgx.ConnConfig, error) {
		var all *pgx.ConnConfig
		for _, host := range hosts {
			one, err := access.At(host, host).Settings()
			if err != nil {
				return nil, err
			}
			if all == nil {
				all = one
				continue
			}
			all.Fallbacks = append(all.Fallbacks,
				&pgconn.FallbackConfig{Host: host, Port: one.Port, TLSConfig: one.TLSConfig})
		}
		all.LookupFunc = func(ctx context.Context, host string) ([]string, error) {
			return resolver.LookupHost(ctx, host+".cluster.local.")
		}
		all.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
		return all, nil
	}}
}

// localDoor leads to one instance from inside of its node's network, which reaches
// it whatever is cut off.
func localDoor(access outside.Access, name, host string, where func(name string) (instance, bool)) door {
	var node atomic.Value
	return door{
		path: PathLocal, patience: answerTimeout,
		settings: func() (*pgx.ConnConfig, error) {
			i, known := where(name)
			if !known || i.ip == "" || i.node == "" {
				return nil, fmt.Errorf("%s has no address", name)
			}
			node.Store(i.node)
			return access.At(i.ip, host).Settings()
		},
		dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			on, _ := node.Load().(string) // settings have stored it
			return dialFrom(ctx, on, network, address)
		},
	}
}

// dialFrom connects from a node's network. The thread that goes there never comes
// back: it ends with its goroutine.
func dialFrom(ctx context.Context, node, network, address string) (net.Conn, error) {
	type result struct {
		conn net.Conn
		err  error
	}
	done := make(chan result, 1)
	go func() {
		runtime.LockOSThread()
		namespace, err := os.Open("/run/netns/localkube-" + node)
		if err == nil {
			err = unix.Setns(int(namespace.Fd()), unix.CLONE_NEWNET)
			_ = namespace.Close() // it has been read only
		}
		if err != nil {
			done <- result{err: fmt.Errorf("enter the network of %s: %w", node, err)}
			return
		}
		var d net.Dialer
		conn, err := d.DialContext(ctx, network, address)
		done <- result{conn, err}
	}()
	r := <-done
	return r.conn, r.err
}

// session is a connection that never cancels. PostgreSQL acknowledges a commit whose
// wait for a standby is cancelled, with no more than a warning; and pgx sends a
// cancel request whenever it gives a connection up.
type session struct {
	conn     *pgx.Conn
	patience time.Duration
	warned   bool
}

var errNoCancel = errors.New("this session opens no second connection")

// open opens a session.
func (d door) open(ctx context.Context) (*session, error) {
	config, err := d.settings()
	if err != nil {
		return nil, err
	}
	dial := d.dial
	if dial == nil {
		dial = (&net.Dialer{}).DialContext
	}
	s := &session{patience: d.patience}
	var connected atomic.Bool
	config.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		if connected.Load() {
			return nil, errNoCancel
		}
		return dial(ctx, network, address)
	}
	config.ConnectTimeout = connectTimeout
	config.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol // a statement is one message, and one answer
	config.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) {
		if n.SeverityUnlocalized == "WARNING" || n.Severity == "WARNING" {
			s.warned = true
		}
	}
	most, cancel := context.WithTimeout(ctx, time.Duration(1+len(config.Fallbacks))*connectTimeout)
	defer cancel()
	s.conn, err = pgx.ConnectConfig(most, config)
	connected.Store(true)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	return s, nil
}

// row runs a statement that returns one row.
func (s *session) row(ctx context.Context, into []any, statement string, args ...any) error {
	once, cancel := context.WithTimeout(ctx, s.patience)
	defer cancel()
	s.warned = false
	return s.conn.QueryRow(once, statement, args...).Scan(into...)
}

// outcome is what a client knows after a statement has ended so. Only an ERROR says
// for certain that nothing is committed: FATAL may come while a commit waits.
func (s *session) outcome(err error) Outcome {
	var refused *pgconn.PgError
	switch {
	case err == nil && !s.warned:
		return Acked
	case errors.As(err, &refused) && refused.SeverityUnlocalized == "ERROR":
		return Failed
	}
	return Unknown
}

// hangUp lets go of a session, without waiting.
func hangUp(s *session) {
	if s == nil {
		return
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	_ = s.conn.Close(ended) // the other end may be gone
}

// instanceHost is an instance's lasting name.
func instanceHost(ordinal int) string { return naming.InstanceHost(name, namespace, ordinal) }
