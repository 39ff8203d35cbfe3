package sampledb

import (
	"context"
	"errors"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"toban.dev/internal/operator/agents"
	"toban.dev/internal/operator/sampledb/world"
	"toban.dev/internal/protocol"
)

// pauseDoubted is until a SampleDB is looked at again of which an agent is being asked beside, if nothing is told of
// it.
const pauseDoubted = 3 * time.Second

// syncAgents gives the agents of all Pods that can have a server running their config at once. The answers are those of
// the agents that answered; doubted says that it is not known yet whether another one will.
func (s *scope) syncAgents(
	ctx context.Context, pods map[int]*corev1.Pod,
) (answers map[string]protocol.Status, doubted bool) {
	config := withAddresses(s.Config, s.Seen.Pods)
	answers = map[string]protocol.Status{}
	if config.Authority == "" {
		return answers, false // nothing has been created yet
	}
	var mu sync.Mutex
	var wait sync.WaitGroup
	for _, pod := range pods {
		if !world.Reachable(pod) {
			continue
		}
		wait.Go(func() {
			status, err := s.Agents.Sync(ctx, s.DB.UID, pod.Status.PodIP, config)
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
		if pod, ok := pods[i]; ok && world.Reachable(pod) {
			m.Address = pod.Status.PodIP
		}
		members[i] = m
	}
	config.Members = members
	return config
}
