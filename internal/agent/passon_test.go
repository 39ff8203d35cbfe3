package agent

import (
	"testing"

	"toban.dev/internal/protocol"
)

func TestWhoClientsArePassedOnTo(t *testing.T) {
	leads := protocol.Status{Name: "x-1", Role: protocol.RolePrimary, Ready: true, Leader: "x-1", Term: 4}
	for name, c := range map[string]struct {
		change func(*protocol.Status)
		want   bool
	}{
		"one that leads":                       {func(*protocol.Status) {}, true},
		"one that lets nobody in yet":          {func(s *protocol.Status) { s.Ready = false }, false},
		"one that knows of another":            {func(s *protocol.Status) { s.Leader = "x-2" }, false},
		"one that is about to stop":            {func(s *protocol.Status) { s.HandOver = "soon" }, false},
		"a standby":                            {func(s *protocol.Status) { s.Role = protocol.RoleStandby }, false},
		"one whose server does not run":        {func(s *protocol.Status) { s.Role = protocol.RoleNone }, false},
		"one whose volume takes no writes":     {func(s *protocol.Status) { s.ReadOnly = true }, true},
		"one that lets no client in, by order": {func(s *protocol.Status) { s.Closed = true }, true},
	} {
		status := leads
		c.change(&status)
		if got := takesClients(status); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
