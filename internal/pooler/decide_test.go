package pooler

import (
	"testing"

	"toban.dev/internal/protocol"
)

func TestWhereServerConnectionsGo(t *testing.T) {
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
	for name, c := range map[string]struct {
		now  Route
		told []protocol.InstanceTells
		want Decision
	}{
		"nobody has said anything":   {Route{}, nil, Decision{NoLeader, Route{}, ""}},
		"the first leader":           {Route{}, []protocol.InstanceTells{follows("x-0", 4), leads("x-1", 4)}, Decision{LeaderKnown, to("x-1", 4), ""}},
		"the same":                   {to("x-1", 4), []protocol.InstanceTells{leads("x-1", 4)}, Decision{LeaderKnown, to("x-1", 4), ""}},
		"it leads no more":           {to("x-1", 4), []protocol.InstanceTells{follows("x-1", 4), follows("x-0", 4)}, Decision{NoLeader, to("x-1", 4), ""}},
		"another in a higher term":   {to("x-1", 4), []protocol.InstanceTells{leads("x-1", 4), leads("x-0", 5)}, Decision{LeaderKnown, to("x-0", 5), ""}},
		"one of a former term alone": {to("x-0", 5), []protocol.InstanceTells{leads("x-1", 4)}, Decision{NoLeader, to("x-0", 5), ""}},
		"the same in a higher term":  {to("x-1", 4), []protocol.InstanceTells{leads("x-1", 6)}, Decision{LeaderKnown, to("x-1", 6), ""}},
		"it is about to stop":        {to("x-1", 4), []protocol.InstanceTells{announces}, Decision{HandOver, to("x-1", 4), "soon"}},
		"a former one is about to":   {to("x-0", 5), []protocol.InstanceTells{announces, leads("x-0", 5)}, Decision{LeaderKnown, to("x-0", 5), ""}},
		"one without an address":     {to("x-1", 4), []protocol.InstanceTells{nameless, leads("x-1", 4)}, Decision{LeaderKnown, to("x-1", 4), ""}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Decide(c.now, c.told); got != c.want {
				t.Errorf("it decides %+v, want %+v", got, c.want)
			}
		})
	}
}
