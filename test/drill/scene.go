package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"toban.dev/test/outside"
)

// scene is one fault being made: on whom, when, and how to undo it.
type scene struct {
	world
	localkube localkube
	cluster   cluster
	history   *history
	book      *book
	// access is the way through the Service as it is now.
	access   func() outside.Access
	primary  instance
	standbys []instance
	// t0 is when the fault struck, and last when it did so for the last time.
	t0, last time.Duration
	undo     []undo
	// absent complain while something that was taken away is not there again.
	absent []func(context.Context) error
	// notes are what is worth knowing of the round, and nothing wrong.
	notes []string
	say   func(string, ...any)
}

type undo struct {
	what string
	do   func(context.Context) error
}

// strike notes the moment of the fault. Where there are several, the clock starts at the
// first, and the fault lasts from the last on.
func (s *scene) strike() {
	s.last = s.history.now()
	if s.t0 == 0 {
		s.t0 = s.last
	}
}

// later notes how something is undone, before it is done.
func (s *scene) later(what string, do func(context.Context) error) {
	s.undo = append(s.undo, undo{what, do})
}

// healing is how long it may take to undo all of a fault.
const healing = 3 * time.Minute

// heal undoes all, the last first. What can't be undone is tried again: it may need
// something that is undone after it, as a Pod needs its node.
func (s *scene) heal(ctx context.Context) error {
	return outside.Until(ctx, healing, func(ctx context.Context) error {
		var left []undo
		var errs []error
		for _, u := range slices.Backward(s.undo) {
			if err := u.within(ctx); err != nil {
				left, errs = append(left, u), append(errs, fmt.Errorf("%s: %w", u.what, err))
				continue
			}
			s.say("healed: %s", u.what)
		}
		slices.Reverse(left)
		s.undo = left
		return errors.Join(errs...)
	})
}

// within undoes it once.
func (u undo) within(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	return u.do(ctx)
}

// note keeps what is worth knowing of the round, and nothing wrong.
func (s *scene) note(format string, args ...any) {
	s.notes = append(s.notes, fmt.Sprintf(format, args...))
}

// complete complains while something that was taken away is not there again.
func (s *scene) complete(ctx context.Context) error {
	for _, look := range s.absent {
		if err := look(ctx); err != nil {
			return err
		}
	}
	return nil
}

// cast gives the parts: who is the primary, and which standby is hit where one is. It
// is one on another node, where there is one.
func (s *scene) cast(primary string) error {
	s.standbys = nil
	for _, name := range s.shape.members() {
		one, known := s.book.where(name)
		switch {
		case !known:
			return fmt.Errorf("%s has no Pod", name)
		case name == primary:
			s.primary = one
		default:
			s.standbys = append(s.standbys, one)
		}
	}
	elsewhere := func(i instance) int {
		if i.node == s.primary.node {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(s.standbys, func(a, b instance) int { return elsewhere(a) - elsewhere(b) })
	return nil
}

// recast gives the parts anew, as soon as somebody says that it is the primary.
func (s *scene) recast(ctx context.Context, patience time.Duration) error {
	return until(ctx, patience, func(context.Context) error {
		newest := sight{}
		for _, seen := range s.history.latest(steadyGap) {
			if seen.primary && seen.end > newest.end {
				newest = seen
			}
		}
		if newest.instance == "" {
			return errors.New("nobody is primary")
		}
		return s.cast(newest.instance)
	})
}

// otherNodes are those of the standbys.
func (s *scene) otherNodes() []string {
	var names []string
	for _, i := range s.standbys {
		if i.node != s.primary.node && !slices.Contains(names, i.node) {
			names = append(names, i.node)
		}
	}
	return names
}

// clientsNode is the one by which clients reach the Service: the primary's and that
// of the standby that is hit are not, so that no fault takes it away.
func (s *scene) clientsNode() string {
	for _, n := range s.cluster.Nodes {
		hit := n.Name == s.primary.node || len(s.standbys) > 0 && n.Name == s.standbys[0].node
		if !hit {
			return n.Name
		}
	}
	return s.primary.node
}

func primaryOf(s *scene) instance { return s.primary }
func standbyOf(s *scene) instance { return s.standbys[0] }
