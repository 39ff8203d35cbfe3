package sampledb

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"toban.dev/internal/protocol"
)

// patience is how long an agent may take to answer. One that takes longer is not
// known in this round.
const patience = 2 * time.Second

// patiencePassword is how long it may take to change a password, a commit that waits for standbys as others do.
const patiencePassword = 10 * time.Second

// Agents talks to the agents of SampleDBs; package agents has the real one. The cluster is the SampleDB's UID,
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
