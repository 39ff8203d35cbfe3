package sampledb

import (
	"context"
	"crypto/tls"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"toban.dev/internal/naming"
	"toban.dev/internal/pki"
	"toban.dev/internal/protocol"
)

// patience is how long an agent may take to answer. One that takes longer is not
// known in this round.
const patience = 2 * time.Second

// patiencePassword is how long it may take to change a password, a commit that waits for standbys as others do.
const patiencePassword = 10 * time.Second

// patienceDatabase is how long it may take to make a database and its extensions.
const patienceDatabase = 45 * time.Second

// Agents talks to the agents of SampleDBs. The cluster is the SampleDB's UID,
// the host an instance's address.
type Agents interface {
	// Sync gives an agent its config and returns how its instance is.
	Sync(ctx context.Context, cluster types.UID, host string, config protocol.Config) (protocol.Status, error)
	// Restart asks an agent to restart its server.
	Restart(ctx context.Context, cluster types.UID, host string, config protocol.Config, reason string) error
	// Switchover asks the primary's agent to hand over, and returns how its instance is.
	Switchover(ctx context.Context, cluster types.UID, host string, config protocol.Config,
		request protocol.Switchover) (protocol.Status, error)
	// Password asks the primary's agent to give a role another password.
	Password(ctx context.Context, cluster types.UID, host string, config protocol.Config,
		request protocol.PasswordRequest) (protocol.PasswordResult, error)
	// Forget drops what is kept for a SampleDB that is gone.
	Forget(cluster types.UID)
}

// HTTPSAgents are the real ones. It keeps a client for each SampleDB, since each
// has an authority of its own.
type HTTPSAgents struct {
	// Certificate is the operator's own.
	Certificate func() (tls.Certificate, error)

	mu      sync.Mutex
	clients map[types.UID]agentClient
}

type agentClient struct {
	authority string
	*protocol.Client
}

// Sync is of Agents.
func (a *HTTPSAgents) Sync(
	ctx context.Context, cluster types.UID, host string, config protocol.Config,
) (protocol.Status, error) {
	c, err := a.client(cluster, config.Authority)
	if err != nil {
		return protocol.Status{}, err
	}
	return c.Sync(ctx, host, config)
}

// Restart is of Agents.
func (a *HTTPSAgents) Restart(
	ctx context.Context, cluster types.UID, host string, config protocol.Config, reason string,
) error {
	c, err := a.client(cluster, config.Authority)
	if err != nil {
		return err
	}
	_, err = c.Restart(ctx, host, protocol.Restart{Reason: reason, ConfigRevision: config.Revision})
	return err
}

// Switchover is of Agents.
func (a *HTTPSAgents) Switchover(
	ctx context.Context, cluster types.UID, host string, config protocol.Config, request protocol.Switchover,
) (protocol.Status, error) {
	c, err := a.client(cluster, config.Authority)
	if err != nil {
		return protocol.Status{}, err
	}
	return c.Switchover(ctx, host, request)
}

// Password is of Agents.
func (a *HTTPSAgents) Password(
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
func (a *HTTPSAgents) Database(
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

// Forget is of Agents.
func (a *HTTPSAgents) Forget(cluster types.UID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if c, ok := a.clients[cluster]; ok {
		c.Close()
		delete(a.clients, cluster)
	}
}

func (a *HTTPSAgents) client(cluster types.UID, authority string) (agentClient, error) {
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

// syncAgents gives all agents that can have a server running their config at
// once, and returns the answers of those that answered in time.
func (r *Reconciler) syncAgents(ctx context.Context, s *scope) map[string]protocol.Status {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	config := withAddresses(s.config, s.seen.pods)
	answers := map[string]protocol.Status{}
	if config.Authority == "" {
		return answers // nothing has been created yet
	}
	var mu sync.Mutex
	var wait sync.WaitGroup
	for _, pod := range s.seen.pods {
		if !reachable(pod) {
			continue
		}
		wait.Go(func() {
			status, err := r.Agents.Sync(ctx, s.db.UID, pod.Status.PodIP, config)
			if err != nil {
				log.FromContext(ctx).V(1).Info("an agent could not be asked",
					"instance", pod.Name, "reason", err.Error())
				return
			}
			mu.Lock()
			defer mu.Unlock()
			answers[pod.Name] = status
		})
	}
	wait.Wait()
	return answers
}

// withAddresses is the config with the addresses that Pods have now.
func withAddresses(config protocol.Config, pods map[int]*corev1.Pod) protocol.Config {
	members := make([]protocol.Member, len(config.Members))
	for i, m := range config.Members {
		if pod, ok := pods[i]; ok && reachable(pod) {
			m.Address = pod.Status.PodIP
		}
		members[i] = m
	}
	config.Members = members
	return config
}

// reachable says that a Pod has an address at which its agent may listen.
func reachable(pod *corev1.Pod) bool {
	return pod.Status.PodIP != "" && pod.Status.Phase == corev1.PodRunning
}
