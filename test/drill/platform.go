package main

import (
	"context"
	"fmt"
	"syscall"
)

// stopKubelet ends the kubelet of the primary's node; the Pods run on.
func stopKubelet(ctx context.Context, s *scene) error {
	node := s.primary.node
	s.later("the kubelet of "+node+" runs again", func(ctx context.Context) error {
		return s.localkube.do(ctx, "node", "start-kubelet", node)
	})
	return s.localkube.do(ctx, "node", "stop-kubelet", node)
}

// loseKubelet is stopKubelet as the fault itself.
func loseKubelet(ctx context.Context, s *scene) error {
	s.strike()
	return stopKubelet(ctx, s)
}

// restartRuntime kills containerd on the primary's node and starts it again. What
// runs in containers has parents of its own, and goes on.
func restartRuntime(ctx context.Context, s *scene) error {
	node := s.primary.node
	now, err := s.localkube.status(ctx)
	if err != nil {
		return err
	}
	runtime, err := now.process(node + "-containerd")
	if err != nil {
		return err
	}
	start := func(ctx context.Context) error { return s.localkube.do(ctx, "node", "start", node) }
	s.later("the container runtime of "+node+" runs again", start)
	s.strike()
	if err := send([]process{runtime}, syscall.SIGKILL); err != nil {
		return err
	}
	return start(ctx)
}

// process finds one of localkube's own processes by its name.
func (c cluster) process(name string) (process, error) {
	for _, p := range c.Processes {
		if p.Name != name || p.State != "running" {
			continue
		}
		handle, err := findProcess(p.PID, func() bool { return ofLocalkube(arguments(p.PID), name) })
		if err != nil {
			return process{}, err
		}
		return process{pid: p.PID, handle: handle}, nil
	}
	return process{}, fmt.Errorf("localkube runs no %s", name)
}

// How much is lost between nodes, in percent.
const (
	allPackets     = 100
	halfThePackets = 50
)

// loseBetween drops that many percent of what one node sends to another, where hits
// says so.
func loseBetween(percent int, hits func(s *scene, sender, receiver string) bool) injection {
	return func(ctx context.Context, s *scene) error {
		s.later("no more packets are lost", s.cluster.mend)
		s.strike()
		return s.cluster.lose(ctx, percent, func(sender, receiver string) bool { return hits(s, sender, receiver) })
	}
}

func toPrimary(s *scene, _, receiver string) bool { return receiver == s.primary.node }
func fromPrimary(s *scene, sender, _ string) bool { return sender == s.primary.node }
