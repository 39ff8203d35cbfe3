package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"toban.dev/internal/naming"
)

// killAll sends SIGKILL to one process of every instance, as close together as can be.
func killAll(what string, which func(process) bool) injection {
	return func(_ context.Context, s *scene) error {
		var all []process
		for _, i := range append([]instance{s.primary}, s.standbys...) {
			found, err := pick(i.uid, what, which)
			if err != nil {
				return fmt.Errorf("%s: %w", i.name, err)
			}
			all = append(all, found...)
		}
		s.strike()
		return send(all, syscall.SIGKILL)
	}
}

// deleteAllPods deletes the Pods of all instances by one request.
func deleteAllPods(ctx context.Context, s *scene) error {
	s.strike()
	all := client.MatchingLabels(naming.InstanceSelector(name))
	return s.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace(namespace), all)
}

// together makes faults at the same moment.
func together(all ...injection) injection {
	return func(ctx context.Context, s *scene) error {
		// Each on a scene of its own, because they write to it at the same time.
		scenes, errs := make([]scene, len(all)), make([]error, len(all))
		var running sync.WaitGroup
		for i, inject := range all {
			scenes[i] = *s
			scenes[i].undo, scenes[i].absent, scenes[i].notes = nil, nil, nil
			running.Go(func() { errs[i] = inject(ctx, &scenes[i]) })
		}
		running.Wait()
		for _, own := range scenes {
			s.join(own)
		}
		return errors.Join(errs...)
	}
}

// join takes over what has been noted on another scene.
func (s *scene) join(other scene) {
	if s.t0 == 0 || other.t0 != 0 && other.t0 < s.t0 {
		s.t0 = other.t0
	}
	s.last = max(s.last, other.last)
	s.undo = append(s.undo, other.undo...)
	s.absent = append(s.absent, other.absent...)
	s.notes = append(s.notes, other.notes...)
}

// nextLeader is how long somebody may take to be the primary again.
const nextLeader = time.Minute

// repeat makes a fault several times, that far apart, on whoever is the primary then. It
// waits for somebody who is, but not until all is whole.
func repeat(times int, pause time.Duration, inject injection) injection {
	return func(ctx context.Context, s *scene) error {
		if err := inject(ctx, s); err != nil {
			return err
		}
		for range times - 1 {
			if err := wait(ctx, pause); err != nil {
				return err
			}
			err := until(ctx, nextLeader, func(ctx context.Context) error {
				if err := s.recast(ctx, time.Second); err != nil {
					return err
				}
				return inject(ctx, s)
			})
			if err != nil {
				return err
			}
			s.say("struck again: %s", s.primary.name)
		}
		return nil
	}
}
