package sampledb

import (
	"context"
	"errors"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrlevent "sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"toban.dev/internal/operator/agents"
	"toban.dev/internal/protocol"
)

// patience is how long an agent may take to do what it is asked for.
const patience = 2 * time.Second

// pauseDoubted is until a SampleDB is looked at again of which an agent is being asked beside, if nothing is told of
// it.
const pauseDoubted = 3 * time.Second

// patiencePassword is how long it may take to change a password, a commit that waits for standbys as others do.
const patiencePassword = 10 * time.Second

// Agents talks to the agents of SampleDBs; package agents has the real one. The cluster is the SampleDB's UID,
// the host an instance's address.
type Agents interface {
	// Sync gives an agent its config and returns how its instance is. It does not wait long for one that is not known
	// to be slow: its error is agents.ErrDoubted then, and more is told by Changed.
	Sync(ctx context.Context, cluster types.UID, host string, config protocol.Config) (protocol.Status, error)
	// Restart asks an agent to restart its server.
	Restart(ctx context.Context, cluster types.UID, host string, config protocol.Config, reason string) error
	// Switchover asks the primary's agent to hand over, and returns how its instance is.
	Switchover(ctx context.Context, cluster types.UID, host string, config protocol.Config,
		request protocol.Switchover) (protocol.Status, error)
	// Password asks the primary's agent to give a role another password.
	Password(ctx context.Context, cluster types.UID, host string, config protocol.Config,
		request protocol.PasswordRequest) (protocol.PasswordResult, error)
	// Changed has an event for each SampleDB of which more is known than before about who answers.
	Changed() <-chan ctrlevent.GenericEvent
	// Forget drops what is kept for a SampleDB that is gone.
	Forget(cluster types.UID)
}

// syncAgents gives the agents of all Pods that can have a server running their config at once. The answers are those of
// the agents that answered; doubted says that it is not known yet whether another one will.
func (s *scope) syncAgents(
	ctx context.Context, pods map[int]*corev1.Pod,
) (answers map[string]protocol.Status, doubted bool) {
	config := withAddresses(s.config, s.seen.pods)
	answers = map[string]protocol.Status{}
	if config.Authority == "" {
		return answers, false // nothing has been created yet
	}
	var mu sync.Mutex
	var wait sync.WaitGroup
	for _, pod := range pods {
		if !reachable(pod) {
			continue
		}
		wait.Go(func() {
			status, err := s.Agents.Sync(ctx, s.db.UID, pod.Status.PodIP, config)
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				answers[pod.Name] = status
				return
			}
			doubted = doubted || errors.Is(err, agents.ErrDoubted)
			log.FromContext(ctx).V(1).Info("an agent could not be asked", "instance", pod.Name, "reason", err.Error())
		})
	}
	wait.Wait()
	return answers, doubted
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
