package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"toban.dev/internal/agent/serve"
	"toban.dev/internal/agent/status"
	"toban.dev/internal/ha/machine"
	"toban.dev/internal/naming"
	"toban.dev/internal/pki"
	"toban.dev/internal/protocol"
	"toban.dev/internal/work/maintenance"
)

const (
	systemIdentifier = "7710296685985419287"
	serverVersion    = "17.6"
	archivedLSN      = "0/5000000"
	// restartTakes is how long a server is away that restarts.
	restartTakes = time.Second
	// needsRestart is the parameter of the bench whose change restarts servers, reloads is one that does not.
	needsRestart = "max_connections"
	reloads      = "work_mem"
)

// agent answers for one instance, by the real agent's own server of the protocol. There is no PostgreSQL: it takes each
// config at once, and says that its instance is well.
type agent struct {
	key    string // its namespace and its name
	name   string
	host   string // where it listens
	board  *status.Board
	ledger *ledger

	mutex  sync.Mutex
	config protocol.Config
	runs   string // the value of needsRestart that the server runs with
	starts int
	pair   tls.Certificate
	pools  map[string]*x509.CertPool
	hangs  *hanging
}

// authority is what a Pod mounts of the Secret NAME-ca.
type authority struct{ cert, key []byte }

// newAgent makes the agent of an instance from what its Pod mounts. The first instance leads.
func newAgent(
	key types.NamespacedName, leads bool, config protocol.Config, held authority, seen *ledger,
) (*agent, error) {
	own, err := pki.ParseAuthority(held.cert, held.key)
	if err != nil {
		return nil, err
	}
	leaf, err := own.Issue(naming.IdentityInstance, []string{key.Name}, time.Now())
	if err != nil {
		return nil, err
	}
	a := &agent{
		key: key.String(), name: key.Name, ledger: seen, hangs: &hanging{},
		config: config, runs: config.Parameters[needsRestart], starts: 1,
		board: status.New(firstStatus(key.Name, leads)),
	}
	if a.pair, err = leaf.TLS(); err != nil {
		return nil, fmt.Errorf("use the certificate of %s: %w", key, err)
	}
	if err := a.trust(config); err != nil {
		return nil, err
	}
	a.configure(config)
	return a, nil
}

func firstStatus(name string, leads bool) protocol.Status {
	s := protocol.Status{
		Name: name, Protocol: protocol.Version, Boot: "1", Role: protocol.RoleStandby, Ready: true, Streaming: true,
		Reason: "Follower", Data: protocol.DataPresent, SystemIdentifier: systemIdentifier,
		ServerVersion: serverVersion, Term: 1, Started: "1",
	}
	if leads {
		s.Role, s.Streaming, s.Reason = protocol.RolePrimary, false, "Leader"
		s.Election.Leading, s.Collations = true, &maintenance.Report{}
	}
	return s
}

// trust has the authorities of a config believed.
func (a *agent) trust(config protocol.Config) error {
	instances, err := pki.Pool(config.Authority)
	if err != nil {
		return err
	}
	operator, err := pki.Pool(config.Operator)
	if err != nil {
		return err
	}
	a.pools = map[string]*x509.CertPool{
		naming.IdentityInstance: instances, naming.IdentityPooler: instances, naming.IdentityOperator: operator,
	}
	return nil
}

// serve answers the operator at an address until ctx ends.
func (a *agent) serve(ctx context.Context, address string) error {
	api := &serve.API{
		Name: a.name, Listen: address, ListenAt: a.hangs.listen, Major: a.current().Major,
		Status: a.board, Config: a.current,
		Certificate: func() (tls.Certificate, error) { return a.pair, nil },
		ClientCAs:   func() (map[string]*x509.CertPool, error) { return a.pools, nil },
		Post:        a.post, Configure: a.configure,
		Complete: func(s protocol.Status) protocol.Status { return s },
		OnStatus: func(protocol.Status) {},
		Log:      slog.New(slog.DiscardHandler),
	}
	return api.Serve(ctx)
}

func (a *agent) current() protocol.Config {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	return a.config
}

// configure runs the server with a config. A parameter that needs a restart waits for one.
func (a *agent) configure(config protocol.Config) {
	a.mutex.Lock()
	a.config = config
	waits := config.Parameters[needsRestart] != a.runs
	a.mutex.Unlock()
	a.board.Change(func(s *protocol.Status) {
		s.ConfigRevision, s.PendingRestart = config.Revision, nil
		if waits {
			s.PendingRestart = []string{needsRestart}
		}
		trusted := pki.KeyIDs(config.Authority)
		s.Identity = &protocol.Identity{Issuer: trusted[0], Trusted: trusted}
		if s.Archive = nil; config.Archive != nil && s.Role == protocol.RolePrimary {
			s.Archive = &protocol.ArchiveStatus{LSN: archivedLSN} // nothing is written, so it stays
		}
		if s.Role == protocol.RolePrimary {
			s.Voters = members(config)
			s.Acknowledgements = len(s.Voters)/2 + 1
		}
	})
	a.ledger.note(agentHas(a.key, config.Parameters[reloads]))
}

func members(config protocol.Config) []string {
	var out []string
	for _, m := range config.Members {
		out = append(out, m.Name)
	}
	slices.Sort(out)
	return out
}

// post takes what the operator asks for: restarts.
func (a *agent) post(event machine.Event) {
	if _, restart := event.(machine.RestartAsked); restart {
		time.AfterFunc(restartTakes, a.restarted)
	}
}

func (a *agent) restarted() {
	a.mutex.Lock()
	a.starts++
	a.runs = a.config.Parameters[needsRestart]
	starts, runs := a.starts, a.runs
	a.mutex.Unlock()
	a.board.Change(func(s *protocol.Status) {
		s.Ready, s.PendingRestart, s.Started = true, nil, fmt.Sprint(starts)
	})
	a.ledger.note(agentRuns(a.key, runs))
}

// agentHas and agentRuns are what a ledger has of an agent: that it was given a value, that its server runs with one.
func agentHas(name, value string) string  { return "the agent of " + name + " has " + value }
func agentRuns(name, value string) string { return "the server of " + name + " runs with " + value }

// hanging is a network that is there, and through which nothing comes while it hangs: as from a node that is frozen.
type hanging struct {
	mutex sync.Mutex
	// over is closed when it is over; nil while nothing hangs.
	over chan struct{}
}

func (h *hanging) listen(ctx context.Context, address string) (net.Listener, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	return hangingListener{listener, h}, err
}

// begin lets it hang, end ends that.
func (h *hanging) begin() {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.over = make(chan struct{})
}

func (h *hanging) end() {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	close(h.over)
	h.over = nil
}

func (h *hanging) wait() {
	h.mutex.Lock()
	over := h.over
	h.mutex.Unlock()
	if over != nil {
		<-over
	}
}

type hangingListener struct {
	net.Listener
	hangs *hanging
}

func (l hangingListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	return hangingConn{conn, l.hangs}, err
}

type hangingConn struct {
	net.Conn
	hangs *hanging
}

func (c hangingConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.hangs.wait()
	return n, err
}
