package main

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestTheStandbyThatIsHitIsOnAnotherNode(t *testing.T) {
	like, err := shapeNamed("five")
	if err != nil {
		t.Fatal(err)
	}
	s := &scene{world: world{shape: like}, book: &book{all: map[string]instance{}}}
	for i, on := range []string{"a", "a", "b", "c", "b"} {
		member := like.members()[i]
		s.book.all[member] = instance{name: member, node: on}
	}
	s.cluster = cluster{Nodes: []node{{Name: "a"}, {Name: "b"}, {Name: "c"}}}
	if err := s.cast("drill-0"); err != nil {
		t.Fatal(err)
	}
	if got := standbyOf(s).name; got != "drill-2" {
		t.Errorf("the standby is %s, which the primary's node has too", got)
	}
	if got := s.otherNodes(); !slices.Equal(got, []string{"b", "c"}) {
		t.Errorf("the other nodes are %q", got)
	}
	if got := s.clientsNode(); got != "c" {
		t.Errorf("clients reach the Service by %s, which is hit", got)
	}
	delete(s.book.all, "drill-3")
	if err := s.cast("drill-0"); err == nil {
		t.Error("an instance without a Pod has a part")
	}
}

func TestTogetherKeepsWhatEachHasNoted(t *testing.T) {
	one := func(name string, at time.Duration, err error) injection {
		return func(_ context.Context, s *scene) error {
			s.t0 = at
			s.later(name, func(context.Context) error { return nil })
			s.note("%s", name)
			return err
		}
	}
	wrong := errors.New("it can't be broken")
	s := &scene{}
	err := together(one("a", 30*ms, nil), one("b", 20*ms, wrong), one("c", 40*ms, nil))(t.Context(), s)
	if !errors.Is(err, wrong) {
		t.Errorf("the error is %v", err)
	}
	if s.t0 != 20*ms || len(s.undo) != 3 || len(s.notes) != 3 {
		t.Errorf("struck at %s, %d to undo, %d notes", s.t0, len(s.undo), len(s.notes))
	}
}

func TestAFaultIsRepeatedOnWhoIsPrimaryThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := someScene(t)
		var hit []string
		kill := func(_ context.Context, s *scene) error {
			hit = append(hit, s.primary.name)
			return nil
		}
		var watchers sync.WaitGroup
		defer watchers.Wait()
		watchers.Go(func() {
			time.Sleep(5 * time.Second) // longer than the pause: nobody leads meanwhile
			for range 50 {              // from then on it is seen again and again, as instances are
				s.history.noteSight(sight{instance: "drill-1", primary: true, end: s.history.now()})
				time.Sleep(100 * ms)
			}
		})
		if err := repeat(2, 2*time.Second, kill)(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(hit, []string{"drill-0", "drill-1"}) {
			t.Errorf("hit %q", hit)
		}
	})
}

func TestWhatWasTakenAwayIsWaitedFor(t *testing.T) {
	gone := errors.New("the Lease is not there again")
	s := &scene{}
	if err := s.complete(t.Context()); err != nil {
		t.Errorf("nothing was taken: %v", err)
	}
	s.absent = append(s.absent, func(context.Context) error { return nil }, func(context.Context) error { return gone })
	if err := s.complete(t.Context()); !errors.Is(err, gone) {
		t.Errorf("complete = %v", err)
	}
}

func TestWhatNeedsSomethingThatIsHealedLaterIsHealedAfterIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scene{say: t.Logf}
		var order []string
		node := false
		s.later("the node is joined", func(context.Context) error {
			order, node = append(order, "node"), true
			return nil
		})
		s.later("the Pod's disk has room", func(context.Context) error {
			if !node {
				return errors.New("the Pod can't be reached")
			}
			order = append(order, "disk")
			return nil
		})
		s.later("the processors are free", func(context.Context) error {
			order = append(order, "processors")
			return nil
		})
		if err := s.heal(t.Context()); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(order, []string{"processors", "node", "disk"}) || len(s.undo) > 0 {
			t.Errorf("healed in the order %q, %d are left", order, len(s.undo))
		}
	})
}

func TestWhatCanNotBeHealedStaysToBeHealed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scene{say: t.Logf}
		never := errors.New("localkube says no")
		s.later("this can't be", func(context.Context) error { return never })
		s.later("this can", func(context.Context) error { return nil })
		if err := s.heal(t.Context()); !errors.Is(err, never) || len(s.undo) != 1 {
			t.Errorf("%v, %d are left", err, len(s.undo))
		}
	})
}
