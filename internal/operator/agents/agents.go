// Package agents is the operator's one client to what it runs: the agents of instances, and the Pods that work on an
// archive. Both speak internal/protocol. It must not know why somebody is asked.
package agents

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"toban.dev/internal/naming"
	"toban.dev/internal/pki"
	"toban.dev/internal/protocol"
)

// patienceDatabase is how long it may take to make a database and its extensions.
const patienceDatabase = 45 * time.Second

// kept is how long a connection to an agent is kept: for what takes some steps. At rest an agent is asked every half
// minute at most, and thousands of connections would only take memory.
const kept = 5 * time.Second

// backlog is how many SampleDBs may wait to be looked at because more is known of their agents. What does not fit is
// seen at their next reconcile.
const backlog = 1024

// HTTPS asks over HTTPS, with the operator's certificate. It keeps a client for each SampleDB, since each has an
// authority of its own. It is safe for concurrent use.
type HTTPS struct {
	// Certificate is the operator's own for those who trust these authorities (PEM; protocol.Config.Operator).
	Certificate func(operator string) (tls.Certificate, error)
	// Dial connects, where it is not the network that is to do it.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)

	mu       sync.Mutex
	clients  map[types.UID]agentClient
	changed  chan event.GenericEvent
	silences silences
	poolers  heardPoolers
}

type agentClient struct {
	authority, operator string
	*protocol.Client
}

// Changed has an event for each SampleDB of which an agent has turned out to answer, or not to, after it was asked
// beside.
func (a *HTTPS) Changed() <-chan event.GenericEvent {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.changed == nil {
		a.changed = make(chan event.GenericEvent, backlog)
	}
	return a.changed
}

// tell has a SampleDB looked at.
func (a *HTTPS) tell(namespace, name string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	object := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	select {
	case a.changed <- event.GenericEvent{Object: object}:
	default:
	}
}

// Sync gives an agent its config, and returns how its instance is. The error is ErrDoubted where the agent is not
// quick, and ErrSilent where it was not asked, because it did not answer before.
func (a *HTTPS) Sync(
	ctx context.Context, cluster types.UID, host string, config protocol.Config,
) (protocol.Status, error) {
	var out protocol.Status
	c, err := a.client(cluster, config)
	if err != nil {
		return out, err
	}
	err = a.silences.sync(ctx, inquiry{
		who: at{cluster, host},
		ask: func(ctx context.Context) (err error) {
			out, err = c.Sync(ctx, host, config)
			return err
		},
		// Without the config: there may be another one by now.
		again: func(ctx context.Context) error {
			_, err := c.Status(ctx, host)
			return err
		},
		tell: func() { a.tell(config.Namespace, config.Cluster) },
	})
	return out, err
}

// Restart asks an agent to restart its server.
func (a *HTTPS) Restart(
	ctx context.Context, cluster types.UID, host string, config protocol.Config, reason string,
) error {
	c, err := a.client(cluster, config)
	if err != nil {
		return err
	}
	_, err = c.Restart(ctx, host, protocol.Restart{Reason: reason, ConfigRevision: config.Revision})
	return err
}

// Switchover asks the primary's agent to hand over, and returns how its instance is.
func (a *HTTPS) Switchover(
	ctx context.Context, cluster types.UID, host string, config protocol.Config, request protocol.Switchover,
) (protocol.Status, error) {
	c, err := a.client(cluster, config)
	if err != nil {
		return protocol.Status{}, err
	}
	return c.Switchover(ctx, host, request)
}

// Publish asks the primary's agent to have the Services lead to its instance, and to no other.
func (a *HTTPS) Publish(ctx context.Context, cluster types.UID, host string, config protocol.Config) error {
	c, err := a.client(cluster, config)
	if err != nil {
		return err
	}
	_, err = c.Publish(ctx, host)
	return err
}

// Password asks the primary's agent to give the application another password.
func (a *HTTPS) Password(
	ctx context.Context, cluster types.UID, host string, config protocol.Config, request protocol.PasswordRequest,
) (protocol.PasswordResult, error) {
	c, err := a.client(cluster, config)
	if err != nil {
		return protocol.PasswordResult{}, err
	}
	return c.Password(ctx, host, request)
}

// Fault orders an agent to break its own instance.
func (a *HTTPS) Fault(
	ctx context.Context, cluster types.UID, host string, config protocol.Config, order protocol.FaultOrder,
) (protocol.FaultResult, error) {
	c, err := a.client(cluster, config)
	if err != nil {
		return protocol.FaultResult{}, err
	}
	return c.Fault(ctx, host, order)
}

// Status asks an agent how its instance is. The caller says for how long that may take.
func (a *HTTPS) Status(
	ctx context.Context, cluster types.UID, host string, config protocol.Config,
) (protocol.Status, error) {
	c, err := a.client(cluster, config)
	if err != nil {
		return protocol.Status{}, err
	}
	return c.Status(ctx, host)
}

// patienceProgram is how long it may take to give an agent a program, and the agent to rehearse it.
const patienceProgram = time.Minute

// ownProgram is the operator's own, read once.
var ownProgram = sync.OnceValues(func() (protocol.Program, error) {
	file, err := os.Open("/proc/self/exe")
	if err != nil {
		return protocol.Program{}, fmt.Errorf("read this program: %w", err)
	}
	defer file.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, file); err != nil {
		return protocol.Program{}, fmt.Errorf("read this program: %w", err)
	}
	return protocol.Program{SHA256: hex.EncodeToString(sum.Sum(nil)), Architecture: runtime.GOARCH}, nil
})

// Program is the operator's own.
func (a *HTTPS) Program() (protocol.Program, error) { return ownProgram() }

// GiveProgram gives an agent the operator's own program to go on as.
func (a *HTTPS) GiveProgram(ctx context.Context, cluster types.UID, host string, config protocol.Config) error {
	ctx, cancel := context.WithTimeout(ctx, patienceProgram)
	defer cancel()
	c, err := a.client(cluster, config)
	if err != nil {
		return err
	}
	is, err := ownProgram()
	if err != nil {
		return err
	}
	file, err := os.Open("/proc/self/exe")
	if err != nil {
		return fmt.Errorf("read this program: %w", err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return fmt.Errorf("read this program: %w", err)
	}
	_, err = c.GiveProgram(ctx, host, is, info.Size(), file)
	return err
}

// Database asks the agent of a SampleDB's primary, at a host, to make a database as declared. The config is the
// SampleDB's.
func (a *HTTPS) Database(
	ctx context.Context, cluster types.UID, host string, config protocol.Config, request protocol.DatabaseRequest,
) (protocol.DatabaseResult, error) {
	ctx, cancel := context.WithTimeout(ctx, patienceDatabase)
	defer cancel()
	c, err := a.client(cluster, config)
	if err != nil {
		return protocol.DatabaseResult{}, err
	}
	return c.Database(ctx, host, request)
}

// Progress asks a Pod that works on an archive, at a host, how far it is. Its certificate is for an identity, by the
// authority in the SampleDB's config. It is asked every few seconds for as long as it runs, so there is no connection
// to keep.
func (a *HTTPS) Progress(
	ctx context.Context, identity, host string, config protocol.Config,
) (protocol.BackupProgress, error) {
	roots, err := pki.Pool(config.Authority)
	if err != nil {
		return protocol.BackupProgress{}, err
	}
	ask := func(ctx context.Context) (protocol.BackupProgress, error) {
		c := a.connect(pki.ClientTLS(a.by(config.Operator), roots, identity))
		defer c.Close()
		return c.Backup(ctx, host)
	}
	var out protocol.BackupProgress
	err = a.silences.sync(ctx, inquiry{
		who: at{types.UID(identity), host},
		ask: func(ctx context.Context) (err error) {
			out, err = ask(ctx)
			return err
		},
		again: func(ctx context.Context) error {
			_, err := ask(ctx)
			return err
		},
		tell: func() {}, // it is asked again in a moment anyway
	})
	return out, err
}

// Begin tells a Pod, at a host, to begin. Its certificate is for an identity, by the authority in the SampleDB's
// config.
func (a *HTTPS) Begin(
	ctx context.Context, identity, host string, config protocol.Config, begin protocol.UpgradeBegin,
) error {
	roots, err := pki.Pool(config.Authority)
	if err != nil {
		return err
	}
	c := a.connect(pki.ClientTLS(a.by(config.Operator), roots, identity))
	defer c.Close()
	_, err = c.Begin(ctx, host, begin)
	return err
}

// Cut tells the Pod of a backup, at a host, that the snapshot of the volume is cut.
func (a *HTTPS) Cut(ctx context.Context, host string, config protocol.Config, cut protocol.Cut) error {
	roots, err := pki.Pool(config.Authority)
	if err != nil {
		return err
	}
	c := a.connect(pki.ClientTLS(a.by(config.Operator), roots, naming.IdentityBackup))
	defer c.Close()
	_, err = c.Cut(ctx, host, cut)
	return err
}

// Forget drops what is kept for a SampleDB that is gone.
func (a *HTTPS) Forget(cluster types.UID) {
	a.silences.forget(cluster)
	a.poolers.forget(cluster)
	a.mu.Lock()
	defer a.mu.Unlock()
	if c, ok := a.clients[cluster]; ok {
		c.Close()
		delete(a.clients, cluster)
	}
}

// by is the operator's certificate for those who trust these authorities.
func (a *HTTPS) by(operator string) func() (tls.Certificate, error) {
	return func() (tls.Certificate, error) { return a.Certificate(operator) }
}

func (a *HTTPS) client(cluster types.UID, config protocol.Config) (agentClient, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if c, ok := a.clients[cluster]; ok && c.authority == config.Authority && c.operator == config.Operator {
		return c, nil
	}
	roots, err := pki.Pool(config.Authority)
	if err != nil {
		return agentClient{}, err
	}
	c := agentClient{config.Authority, config.Operator,
		a.connect(pki.ClientTLS(a.by(config.Operator), roots, naming.IdentityInstance))}
	if a.clients == nil {
		a.clients = map[types.UID]agentClient{}
	}
	if old, ok := a.clients[cluster]; ok {
		old.Close()
	}
	a.clients[cluster] = c
	return c, nil
}

// connect makes a client.
func (a *HTTPS) connect(config *tls.Config) *protocol.Client {
	c := protocol.NewClient(config, naming.PortAgent)
	c.KeepIdle(kept)
	if a.Dial != nil {
		c.DialBy(a.Dial)
	}
	return c
}
