package pooler

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"toban.dev/internal/front/route"
	"toban.dev/internal/protocol"
)

// target is where a pooler's clients go: to one of the servers. The zero value is nowhere.
type target struct {
	route.Decision
	servers []route.Route
	// late are addresses of standbys that are too late to be read: transactions there end by themselves.
	late []netip.Addr
}

// next is where they go by what the instances have told last.
func (t target) next(settings protocol.PoolSettings, told *instances) target {
	if !settings.Reads {
		d := route.Decide(t.Route, told.all())
		if d.Route == (route.Route{}) {
			return target{Decision: d}
		}
		return target{Decision: d, servers: []route.Route{d.Route}}
	}
	members, readers := told.of(settings.Hosts), told.of(settings.Readers)
	late := tooLate(settings.Mode, slices.Concat(members, readers))
	if !settings.ReadersOnly {
		members, readers = append(members, readers...), nil
	}
	d, servers := route.DecideReads(t.Route, members, readers)
	return target{d, servers, late}
}

// tooLate are the standbys that only are too late. A session that PgBouncer keeps on one server would go on to read
// what is too late there, so it is not spared.
func tooLate(mode string, told []protocol.InstanceTells) (out []netip.Addr) {
	for _, t := range told {
		if address, err := netip.ParseAddr(t.Address); err == nil && t.Late && mode != protocol.PoolSession {
			out = append(out, address)
		}
	}
	return out
}

// same says that no session has to leave where it is. The term of a standby does not matter.
func (t target) same(as target) bool {
	if t.Reason != route.StandbysServe || as.Reason != route.StandbysServe {
		return slices.Equal(t.servers, as.servers)
	}
	return slices.EqualFunc(t.servers, as.servers, func(a, b route.Route) bool { return a.Address == b.Address })
}

// addresses are those where sessions stay, and those that are spared, where a transaction may end by itself: the
// leader's where only standbys serve, and those of standbys that are too late.
func (t target) addresses() (stay, spared []netip.Addr, err error) {
	for _, s := range t.servers {
		address, err := netip.ParseAddr(s.Address)
		if err != nil {
			return nil, nil, fmt.Errorf("understand the address of %s: %w", s.Instance, err)
		}
		stay = append(stay, address)
	}
	spared = t.late
	if leader, err := netip.ParseAddr(t.Route.Address); err == nil && t.Reason == route.StandbysServe {
		spared = append(slices.Clip(spared), leader)
	}
	return stay, spared, nil
}

// names are those of the servers.
func (t target) names() string {
	names := make([]string, len(t.servers))
	for i, s := range t.servers {
		names[i] = s.Instance
	}
	return strings.Join(names, ", ")
}
