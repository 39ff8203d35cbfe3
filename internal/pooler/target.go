package pooler

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"toban.dev/internal/protocol"
	"toban.dev/internal/route"
)

// target is where a pooler's clients go: to one of the servers. The zero value is nowhere.
type target struct {
	route.Decision
	servers []route.Route
}

// next is where they go by what the instances have told last.
func (t target) next(settings protocol.PoolSettings, told *instances) target {
	if !settings.Reads {
		d := route.Decide(t.Route, told.all())
		if d.Route == (route.Route{}) {
			return target{Decision: d}
		}
		return target{d, []route.Route{d.Route}}
	}
	members, readers := told.of(settings.Hosts), told.of(settings.Readers)
	if !settings.ReadersOnly {
		members, readers = append(members, readers...), nil
	}
	d, servers := route.DecideReads(t.Route, members, readers)
	return target{d, servers}
}

// same says that no session has to leave where it is. The term of a standby does not matter.
func (t target) same(as target) bool {
	if t.Reason != route.StandbysServe || as.Reason != route.StandbysServe {
		return slices.Equal(t.servers, as.servers)
	}
	return slices.EqualFunc(t.servers, as.servers, func(a, b route.Route) bool { return a.Address == b.Address })
}

// addresses are those where sessions stay, and the leader's where only standbys serve: a transaction there may end by
// itself.
func (t target) addresses() (stay []netip.Addr, spared netip.Addr, err error) {
	for _, s := range t.servers {
		address, err := netip.ParseAddr(s.Address)
		if err != nil {
			return nil, spared, fmt.Errorf("understand the address of %s: %w", s.Instance, err)
		}
		stay = append(stay, address)
	}
	if t.Reason == route.StandbysServe {
		spared, _ = netip.ParseAddr(t.Route.Address) // none where nobody is known to lead
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
