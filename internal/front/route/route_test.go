package route

import (
	"testing"

	"toban.dev/internal/protocol"
)

func TestWhereClientsGo(t *testing.T) {
	leads := func(name string, term uint64) protocol.InstanceTells {
		return protocol.InstanceTells{Name: name, Address: "10.0.0." + name[len(name)-1:], Leads: true, Term: term}
	}
	follows := func(name string, term uint64) protocol.InstanceTells {
		return protocol.InstanceTells{Name: name, Address: "10.0.0.9", Term: term}
	}
	announces := leads("x-1", 4)
	announces.HandOver = "soon"
	nameless := leads("x-2", 9)
	nameless.Address = ""
	to := func(name string, term uint64) Route { return routeTo(&[]protocol.InstanceTells{leads(name, term)}[0]) }
	const first, second = "x-0", "x-1"
	tells := func(all ...protocol.InstanceTells) []protocol.InstanceTells { return all }
	for name, c := range map[string]struct {
		now  Route
		told []protocol.InstanceTells
		want Decision
	}{
		"nobody has said anything": {Route{}, nil, Decision{NoLeader, Route{}, ""}},
		"the first leader": {
			Route{}, tells(follows(first, 4), leads(second, 4)), Decision{LeaderKnown, to(second, 4), ""},
		},
		"the same": {to(second, 4), tells(leads(second, 4)), Decision{LeaderKnown, to(second, 4), ""}},
		"it leads no more": {
			to(second, 4), tells(follows(second, 4), follows(first, 4)), Decision{NoLeader, to(second, 4), ""},
		},
		"another in a higher term": {
			to(second, 4), tells(leads(second, 4), leads(first, 5)), Decision{LeaderKnown, to(first, 5), ""},
		},
		"one of a former term alone": {
			to(first, 5), tells(leads(second, 4)), Decision{NoLeader, to(first, 5), ""},
		},
		"the same in a higher term": {
			to(second, 4), tells(leads(second, 6)), Decision{LeaderKnown, to(second, 6), ""},
		},
		"it is about to stop": {to(second, 4), tells(announces), Decision{HandOver, to(second, 4), "soon"}},
		"a former one is about to": {
			to(first, 5), tells(announces, leads(first, 5)), Decision{LeaderKnown, to(first, 5), ""},
		},
		"one without an address": {
			to(second, 4), tells(nameless, leads(second, 4)), Decision{LeaderKnown, to(second, 4), ""},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Decide(c.now, c.told); got != c.want {
				t.Errorf("it decides %+v, want %+v", got, c.want)
			}
		})
	}
}
