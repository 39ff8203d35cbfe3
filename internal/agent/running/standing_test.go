package running

import (
	"errors"
	"reflect"
	"testing"

	"toban.dev/internal/agent/status"
	"toban.dev/internal/ha"
	"toban.dev/internal/ha/machine"
	"toban.dev/internal/postgres"
	"toban.dev/internal/protocol"
)

// What was seen of streaming is not said of another leader.
func TestWhoFollowsAnotherHasSeenNothingOfItYet(t *testing.T) {
	s := &Standing{upstream: ha.Ballot{Term: 4, Leader: "db-1"}}
	s.See(func(s *Seen) { s.streaming, s.Known, s.End, s.received = true, true, 9, 8 })
	s.follow(ha.Ballot{Term: 5, Leader: "db-2"})
	if now := s.lastSeen(); now.streaming || now.Known || now.received != 8 || s.following().Term != 5 {
		t.Errorf("it has seen %+v of %v", now, s.following())
	}
}

// A server is a primary when it was told to take writes, and not when it is made ready for that.
func TestAServerIsAPrimaryOnceItIsPromoted(t *testing.T) {
	s := &Standing{upstream: ha.Ballot{Term: 4, Leader: "db-1"}}
	s.bePrimary()
	if s.Role() != ha.ServerStandby || !s.IsPrimary() || s.following() != (ha.Ballot{}) {
		t.Errorf("it is a %v that follows %v", s.Role(), s.following())
	}
	s.SetPromoted()
	if s.Role() != ha.ServerPrimary {
		t.Errorf("it is a %v", s.Role())
	}
}

func TestTheSettingsOfARole(t *testing.T) {
	leader := ha.Ballot{Term: 4, Leader: "db-1"}
	least, upstream := map[string]int{"max_connections": 100}, &postgres.Upstream{Host: "h1", Term: 4}
	m := ha.HardState{Voter: "db-0.a", Configuration: ha.Configuration{
		Term: 4, Version: 2, Now: ha.Quorum{Voters: []ha.Voter{"db-0.a", "db-1.b"}, Acknowledgements: 2},
	}}
	sparing := &postgres.Sparing{MaxWAL: 32 << 20}
	for name, c := range map[string]struct {
		standing *Standing
		closed   bool
		want     postgres.Settings
	}{
		"a standby": {
			&Standing{upstream: leader, opened: true, least: least},
			false, postgres.Settings{Standby: true, Upstream: upstream, Least: least, Link: true},
		},
		"one that follows nobody": {&Standing{opened: true}, false, postgres.Settings{Standby: true}},
		"a primary": {
			&Standing{primary: true, opened: true, upstream: leader}, false, postgres.Settings{},
		},
		"a promoted one": {
			&Standing{primary: true, opened: true, least: least}, false, postgres.Settings{Least: least},
		},
		"one that lets nobody in":    {&Standing{primary: true}, false, postgres.Settings{Closed: true}},
		"one of a cluster that ends": {&Standing{primary: true, opened: true}, true, postgres.Settings{Closed: true}},
	} {
		t.Run(name, func(t *testing.T) {
			r := &role{
				standing: c.standing, closed: func() bool { return c.closed },
				rule:      func() ha.Rule { return twoOthers },
				hardState: func() ha.HardState { return m }, upstream: func(of ha.Ballot) (postgres.Upstream, error) {
					if of != leader {
						return postgres.Upstream{}, errors.New("another leader")
					}
					return *upstream, nil
				},
				sparing: func() *postgres.Sparing { return sparing }, link: func() bool { return true },
			}
			c.want.Sparing = sparing
			c.want.Name, c.want.Synchronous = "db-0", twoOthers.String()
			if c.want.Standby { // as if it were elected now
				c.want.Synchronous = ha.CommitRule(m.Configuration, m.Voter).String()
			}
			got, err := r.add(postgres.Settings{
				Name: "db-0", Upstream: &postgres.Upstream{Host: "before"}, Link: true,
			})
			if err != nil || !reflect.DeepEqual(got, c.want) {
				t.Errorf("they are %+v, %v; want %+v", got, err, c.want)
			}
		})
	}
}

func TestTheMachineHearsWhatWasSeen(t *testing.T) {
	var heard []machine.Event
	f, board := &Flags{}, status.New(protocol.Status{Ready: true, Streaming: true})
	f.full.Store(true)
	s := &Standing{upstream: ha.Ballot{Term: 4, Leader: "db-1"}}
	s.See(func(s *Seen) { s.streaming, s.received = true, 77 })
	r := &reporter{
		run: 3, standing: s, status: board, full: &f.full, post: func(e machine.Event) { heard = append(heard, e) },
	}
	r.report(true)
	r.unelected()
	want := machine.ServerSeen{Run: 3, Following: 4, Answers: true, Streaming: true, Received: 77, Full: true}
	after := want
	after.Unelected = true
	if !reflect.DeepEqual(heard, []machine.Event{want, after}) {
		t.Errorf("it hears %+v", heard)
	}
	if now := board.Get(); now.Ready || now.Streaming {
		t.Errorf("a server that was promoted without an election is %+v", now)
	}
}
