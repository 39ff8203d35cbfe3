// Package agents is the operator's one client to what it runs: the agents of instances, and the Pods that work on an
// archive. Both speak internal/protocol. It must not know why somebody is asked.
package agents

import (
	"context"
	"crypto/tls"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"toban.dev/internal/naming"
	"toban.dev/internal/pki"
	"toban.dev/internal/protocol"
)

const (
	// patienceDatabase is how long it may take to make a database and its extensions.
	patienceDatabase = 45 * time.Second
	// patienceProgress is how long a Pod may take to answer. One that takes longer is not known in this round.
	patienceProgress = 2 * time.Second
)

// HTTPS asks over HTTPS, with the operator's certificate. It keeps a client for each SampleDB, since each has an
// authority of its own. It is safe for concurrent use.
type HTTPS struct {
	// Certificate is the operator's own.
	Certificate func() (tls.Certificate, error)

	mu      sync.Mutex
	clients map[types.UID]agentClient
}

type agentClient struct {
	authority string
	*protocol.Client
}

// Sync gives an agent its config, and returns how its instance is.
func (a *HTTPS) Sync(
	ctx context.Context, cluster types.UID, host string, config protocol.Config,
) (protocol.Status, error) {
	c, err := a.client(cluster, config.Authority)
	if err != nil {
		return protocol.Status{}, err
	}
	return c.Sync(ctx, host, config)
}

// Restart asks an agent to restart its server.
func (a *HTTPS) Restart(
	ctx context.Context, cluster types.UID, host string, config protocol.Config, reason string,
) error {
	c, err := a.client(cluster, config.Authority)
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
	c, err := a.client(cluster, config.Authority)
	if err != nil {
		return protocol.Status{}, err
	}
	return c.Switchover(ctx, host, request)
}

// Password asks the primary's agent to give the application another password.
func (a *HTTPS) Password(
	ctx context.Context, cluster types.UID, host string, config protocol.Config, request protocol.PasswordRequest,
) (protocol.PasswordResult, error) {
	c, err := a.client(cluster, config.Authority)
	if err != nil {
		return protocol.PasswordResult{}, err
	}
	return c.Password(ctx, host, request)
}

// Database asks the agent of a SampleDB's primary, at a host, to make a database as declared. The authority
// (PEM) is the SampleDB's.
func (a *HTTPS) Database(
	ctx context.Context, cluster types.UID, authority, host string, request protocol.DatabaseRequest,
) (protocol.DatabaseResult, error) {
	ctx, cancel := context.WithTimeout(ctx, patienceDatabase)
	defer cancel()
	c, err := a.client(cluster, authority)
	if err != nil {
		return protocol.DatabaseResult{}, err
	}
	return c.Database(ctx, host, request)
}

// Progress asks a Pod that works on an archive, at a host, how far it is. Its certificate is for an identity, by the
// SampleDB's authority (PEM). It is asked every few seconds for as long as it runs, so there is no connection to keep.
func (a *HTTPS) Progress(ctx context.Context, identity, authority, host string) (protocol.BackupProgress, error) {
	roots, err := pki.Pool(authority)
	if err != nil {
		return protocol.BackupProgress{}, err
	}
	c := protocol.NewClient(pki.ClientTLS(a.Certificate, roots, identity), naming.PortAgent)
	defer c.Close()
	ctx, cancel := context.WithTimeout(ctx, patienceProgress)
	defer cancel()
	return c.Backup(ctx, host)
}

// Forget drops what is kept for a SampleDB that is gone.
func (a *HTTPS) Forget(cluster types.UID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if c, ok := a.clients[cluster]; ok {
		c.Close()
		delete(a.clients, cluster)
	}
}

func (a *HTTPS) client(cluster types.UID, authority string) (agentClient, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if c, ok := a.clients[cluster]; ok && c.authority == authority {
		return c, nil
	}
	roots, err := pki.Pool(authority)
	if err != nil {
		return agentClient{}, err
	}
	config := pki.ClientTLS(a.Certificate, roots, naming.IdentityInstance)
	c := agentClient{authority, protocol.NewClient(config, naming.PortAgent)}
	if a.clients == nil {
		a.clients = map[types.UID]agentClient{}
	}
	if old, ok := a.clients[cluster]; ok {
		old.Close()
	}
	a.clients[cluster] = c
	return c, nil
}
