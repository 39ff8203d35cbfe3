package pooler

import (
	"net/netip"
	"slices"
	"testing"

	"toban.dev/internal/front/route"
	"toban.dev/internal/protocol"
)

// toldBy is what instances have told, by host.
func toldBy(all map[string]protocol.InstanceTells) *instances { return &instances{told: all} }

func TestWhichServersAPoolerGoesTo(t *testing.T) {
	told := toldBy(map[string]protocol.InstanceTells{
		"x-0": {Name: "x-0", Address: "10.0.0.1", Leads: true, Term: 4},
		"x-1": {Name: "x-1", Address: "10.0.0.2", Reads: true, Term: 4},
		"r":   {Name: "r-0", Address: "10.0.0.3", Reads: true, Term: 4},
	})
	reads := protocol.PoolSettings{Hosts: []string{"x-0", "x-1", "x-2"}, Reads: true}
	writes, withReaders, readersOnly, away, alone := reads, reads, reads, reads, reads
	writes.Reads = false
	withReaders.Readers = []string{"r"}
	readersOnly.Readers, readersOnly.ReadersOnly = []string{"r"}, true
	away.Readers, away.ReadersOnly = []string{"q"}, true
	alone.Hosts = reads.Hosts[:1]
	for name, c := range map[string]struct {
		settings protocol.PoolSettings
		want     string
	}{
		"of those who write":              {writes, "x-0"},
		"of those who read":               {reads, "x-1"},
		"with readers":                    {withReaders, "x-1, r-0"},
		"with readers only":               {readersOnly, "r-0"},
		"with readers only that are away": {away, "x-1"},
		"of an instance without standbys": {alone, "x-0"},
	} {
		if got := (target{}).next(c.settings, told).names(); got != c.want {
			t.Errorf("%s: it goes to %s, want %s", name, got, c.want)
		}
	}
}

func TestWhichStandbysAreSparedForBeingLate(t *testing.T) {
	told := toldBy(map[string]protocol.InstanceTells{
		"x-0": {Name: "x-0", Address: "10.0.0.1", Reads: true, Term: 4},
		"x-1": {Name: "x-1", Address: "10.0.0.2", Late: true, Term: 4},
		"x-2": {Name: "x-2", Address: "10.0.0.3", Term: 4}, // its server may hang
		"x-3": {Name: "x-3", Late: true, Term: 4},
	})
	settings := protocol.PoolSettings{Hosts: []string{"x-0", "x-1", "x-2", "x-3"}, Reads: true}
	for mode, want := range map[string]int{protocol.PoolTransaction: 1, protocol.PoolSession: 0} {
		settings.Mode = mode
		late := (target{}).next(settings, told).late
		if len(late) != want || want > 0 && late[0] != netip.MustParseAddr("10.0.0.2") {
			t.Errorf("in mode %s transactions end by themselves at %v", mode, late)
		}
	}
}

func TestWhenSessionsLeave(t *testing.T) {
	at := func(reason route.Reason, servers ...route.Route) target {
		d := route.Decision{Reason: reason, Route: route.Route{Address: "10.0.0.9"}}
		return target{Decision: d, servers: servers}
	}
	a := route.Route{Instance: "a", Address: "10.0.0.1", Term: 4}
	b := route.Route{Instance: "b", Address: "10.0.0.2", Term: 4}
	later := a
	later.Term = 5
	for name, c := range map[string]struct {
		is, was target
		same    bool
	}{
		"the same leader":           {at(route.LeaderKnown, a), at(route.LeaderKnown, a), true},
		"the same in another term":  {at(route.LeaderKnown, later), at(route.LeaderKnown, a), false},
		"another leader":            {at(route.LeaderKnown, b), at(route.LeaderKnown, a), false},
		"the same standbys":         {at(route.StandbysServe, a, b), at(route.StandbysServe, a, b), true},
		"a standby in another term": {at(route.StandbysServe, later, b), at(route.StandbysServe, a, b), true},
		"another standby":           {at(route.StandbysServe, b), at(route.StandbysServe, a), false},
		"one more":                  {at(route.StandbysServe, a, b), at(route.StandbysServe, a), false},
		"the leader after standbys": {at(route.LeaderKnown, a), at(route.StandbysServe, b), false},
		"standbys after the leader": {at(route.StandbysServe, b), at(route.LeaderKnown, a), false},
	} {
		if got := c.is.same(c.was); got != c.same {
			t.Errorf("%s: no session has to leave: %v, want %v", name, got, c.same)
		}
	}
	leader, late := netip.MustParseAddr("10.0.0.9"), netip.MustParseAddr("10.0.0.3")
	withLate := at(route.StandbysServe, a, b)
	withLate.late = []netip.Addr{late}
	stay, spared, err := withLate.addresses()
	if err != nil || len(stay) != 2 || !slices.Equal(spared, []netip.Addr{late, leader}) {
		t.Errorf("sessions stay at %v, and those at %v may end by themselves: %v", stay, spared, err)
	}
	stay, spared, err = at(route.LeaderKnown, a).addresses()
	if err != nil || !slices.Equal(stay, []netip.Addr{netip.MustParseAddr(a.Address)}) || len(spared) > 0 {
		t.Errorf("sessions stay at %v, spared is %v: %v", stay, spared, err)
	}
	if _, _, err := at(route.LeaderKnown, route.Route{Address: "x"}).addresses(); err == nil {
		t.Error("x is an address")
	}
}
