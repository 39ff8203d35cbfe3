package agent

import (
	"testing"

	"toban.dev/internal/agent/running"
	"toban.dev/internal/agent/status"
	"toban.dev/internal/protocol"
)

// stands is what a server is.
func stands(primary, open bool) *running.Standing {
	s := &running.Standing{}
	if primary {
		s.SetPromoted()
	}
	if open {
		s.Open()
	}
	return s
}

// An instance tells that it leads by what its server is now: the status may say so later, and says that it is not ready
// while it is only slow.
func TestAnInstanceTellsWhatItsServerIsNow(t *testing.T) {
	for name, c := range map[string]struct {
		ready  bool
		server *running.Standing
		ending bool
		want   bool
	}{
		"a primary":                       {true, stands(true, true), false, true},
		"a primary that is slow":          {false, stands(true, true), false, true},
		"a primary that lets nobody in":   {true, stands(true, false), false, false},
		"a primary that is about to stop": {true, stands(true, true), true, false},
		"a server that does not run":      {true, nil, false, false},
	} {
		a := &Agent{status: status.New(protocol.Status{
			Name: "x-0", Leader: "x-0", Role: protocol.RolePrimary, Ready: c.ready, Term: 4,
		})}
		if c.server != nil {
			r := &running.Server{Standing: c.server}
			r.Ending.Store(c.ending)
			a.current.Store(r)
		}
		if got := a.tellsPoolers(); got.Leads != c.want || got.Term != 4 {
			t.Errorf("%s tells %+v", name, got)
		}
	}
}

// Before the database goes to sleep the poolers are told to hold their clients, those for reading too.
func TestAnInstanceThatGoesToSleepHasItsPoolersHold(t *testing.T) {
	leads, reads := protocol.InstanceTells{Leads: true}, protocol.InstanceTells{Reads: true}
	holds, other, none := leads, leads, protocol.InstanceTells{}
	holds.HandOver, other.HandOver = goesToSleep, "x"
	sleepsSoon := protocol.Config{Holds: true}
	for name, c := range map[string]struct {
		role   protocol.Role
		config protocol.Config
		now    string // the hand-over that the status has
		want   protocol.InstanceTells
	}{
		"a primary":               {protocol.RolePrimary, protocol.Config{}, "", leads},
		"one that sleeps soon":    {protocol.RolePrimary, sleepsSoon, "", holds},
		"one that hands over":     {protocol.RolePrimary, sleepsSoon, "x", other},
		"one that lets nobody in": {protocol.RolePrimary, protocol.Config{Holds: true, Closed: true}, "", none},
		"a standby":               {protocol.RoleStandby, protocol.Config{}, "", reads},
		"a standby of such a one": {protocol.RoleStandby, sleepsSoon, "", none},
	} {
		a := &Agent{status: status.New(protocol.Status{
			Name: "x-0", Leader: "x-0", Role: c.role, Ready: true, HandOver: c.now,
		})}
		a.configs.set(c.config)
		primary := c.role == protocol.RolePrimary
		a.current.Store(&running.Server{Standing: stands(primary, true)})
		got := a.tellsPoolers()
		if got.Leads != c.want.Leads || got.Reads != c.want.Reads || got.HandOver != c.want.HandOver {
			t.Errorf("%s tells %+v", name, got)
		}
	}
}
