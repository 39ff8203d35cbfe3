package agent

import (
	"reflect"
	"testing"
	"time"

	"toban.dev/internal/agent/publish"
	"toban.dev/internal/protocol"
)

func TestWhoTellsThatItLeadsOrServesReads(t *testing.T) {
	standby := func(s *protocol.Status) { s.Role = protocol.RoleStandby }
	leads := protocol.Status{Name: "x-1", Role: protocol.RolePrimary, Ready: true, Leader: "x-1", Term: 4}
	const tooLate = "one that is too late"
	for name, c := range map[string]struct {
		change func(*protocol.Status)
		closed bool
		want   bool // whether it leads
		reads  bool
	}{
		"one that leads":                   {func(*protocol.Status) {}, false, true, false},
		"one that lets nobody in yet":      {func(s *protocol.Status) { s.Ready = false }, false, false, false},
		"one that lets nobody in any more": {func(*protocol.Status) {}, true, false, false},
		"one that knows of another":        {func(s *protocol.Status) { s.Leader = "x-2" }, false, false, false},
		"one that is about to stop":        {func(s *protocol.Status) { s.HandOver = "soon" }, false, true, false},
		"a standby":                        {standby, false, false, true},
		"one that lets nobody in": {
			func(s *protocol.Status) { standby(s); s.Ready = false }, false, false, false,
		},
		tooLate: {
			func(s *protocol.Status) { standby(s); s.Late = true }, false, false, false,
		},
		"one whose clients are to go": {standby, true, false, false},
		"one whose server does not run": {
			func(s *protocol.Status) { s.Role = protocol.RoleNone }, false, false, false,
		},
		"one whose volume takes no writes": {func(s *protocol.Status) { s.ReadOnly = true }, false, true, false},
	} {
		status := leads
		c.change(&status)
		want := protocol.InstanceTells{
			Name: "x-1", Address: "10.0.0.1", Leads: c.want, Reads: c.reads, Term: 4, HandOver: status.HandOver,
			Late: name == tooLate,
		}
		if got := tells(status, "10.0.0.1", c.closed); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
}

func TestWhichInstancesTheServiceLeadsTo(t *testing.T) {
	own := protocol.Status{Name: "x-0", Boot: "a", Relays: true}
	peer := func(name string, relays bool, silence time.Duration) heard {
		return heard{name, protocol.Status{Name: name, Boot: "b", Relays: relays}, silence}
	}
	const now, long = 100 * time.Millisecond, 2 * time.Second
	yes, no := publish.Passes{Boot: "b", Leads: true}, publish.Passes{Boot: "b"}
	for name, c := range map[string]struct {
		others []heard
		want   map[string]publish.Passes
	}{
		"all are heard": {
			[]heard{peer("x-1", true, now), peer("x-2", true, now)}, map[string]publish.Passes{"x-1": yes, "x-2": yes},
		},
		"one is silent": {
			[]heard{peer("x-1", true, long), peer("x-2", true, now)}, map[string]publish.Passes{"x-1": no, "x-2": yes},
		},
		"one passes nobody on": {
			[]heard{peer("x-1", false, now), peer("x-2", true, now)}, map[string]publish.Passes{"x-1": no, "x-2": yes},
		},
		"it hears nobody of three": {[]heard{peer("x-1", true, long), peer("x-2", true, long)}, nil},
		"it hears one of four": {
			[]heard{peer("x-1", true, now), peer("x-2", true, long), peer("x-3", true, long)}, nil,
		},
		"it hears nobody of two": {[]heard{peer("x-1", true, long)}, map[string]publish.Passes{"x-1": no}},
		"it is alone":            {nil, map[string]publish.Passes{}},
	} {
		if c.want != nil {
			c.want["x-0"] = publish.Passes{Boot: "a", Leads: true}
		}
		if got := passing(own, c.others); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}
