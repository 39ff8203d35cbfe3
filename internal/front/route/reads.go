package route

import (
	"cmp"
	"slices"

	"toban.dev/internal/protocol"
)

// StandbysServe is the reason why clients that only read go on where one standby or more serve.
const StandbysServe Reason = "StandbysServe"

// DecideReads says where clients go that only read: to each of the standbys, by address, or where Decide says while no
// standby serves. Preferred are standbys that come before all others. Route is the one of Decide. See
// docs/connections.md, invariants 12 and 13.
func DecideReads(now Route, told, preferred []protocol.InstanceTells) (Decision, []Route) {
	d := Decide(now, slices.Concat(told, preferred))
	for _, some := range [][]protocol.InstanceTells{preferred, told} {
		if standbys := serving(some); len(standbys) > 0 {
			d.Reason = StandbysServe
			return d, standbys
		}
	}
	if d.Route == (Route{}) {
		return d, nil
	}
	return d, []Route{d.Route}
}

// serving are the standbys that serve.
func serving(told []protocol.InstanceTells) []Route {
	var out []Route
	for _, t := range told {
		if t.Reads && t.Address != "" {
			out = append(out, routeTo(&t))
		}
	}
	slices.SortFunc(out, func(a, b Route) int { return cmp.Compare(a.Address, b.Address) })
	return out
}
