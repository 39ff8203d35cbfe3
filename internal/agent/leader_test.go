package agent

import (
	"testing"

	"toban.dev/internal/ha"
	"toban.dev/internal/protocol"
)

func TestWhatTheLeaderSays(t *testing.T) {
	members := func() []protocol.Member { return []protocol.Member{{Name: "db-0"}, {Name: "db-1"}, {Name: "db-2"}} }
	leads := func(term uint64, role protocol.Role, standbys ...string) protocol.Status {
		return protocol.Status{
			Term: term, Role: role, Standbys: standbys, Archive: &protocol.ArchiveStatus{LSN: "0/5000000"},
		}
	}
	for name, c := range map[string]struct {
		leader string
		own    protocol.Status
		others map[string]protocol.Status
		hasAll bool
		where  string // the archive is
	}{
		"it leads, and all stream": {
			"db-0", leads(4, protocol.RolePrimary, "db-1", "db-2"), nil, true, "0/5000000",
		},
		"it leads, and one is missing": {"db-0", leads(4, protocol.RolePrimary, "db-2"), nil, false, "0/5000000"},
		"another leads, and all stream": {
			"db-1", protocol.Status{},
			map[string]protocol.Status{"db-1": leads(4, protocol.RolePrimary, "db-0", "db-2")}, true, "0/5000000",
		},
		"another leads that says of a former": {
			"db-1", protocol.Status{},
			map[string]protocol.Status{"db-1": leads(3, protocol.RolePrimary, "db-0", "db-2")}, false, "0/5000000",
		},
		"another leads that is no primary": {
			"db-1", protocol.Status{},
			map[string]protocol.Status{"db-1": leads(4, protocol.RoleStandby, "db-0", "db-2")}, false, "0/5000000",
		},
		"another leads that says nothing": {"db-1", leads(4, protocol.RolePrimary, "db-0", "db-2"), nil, false, ""},
		"it archives nothing": {
			"db-0", protocol.Status{Term: 4, Role: protocol.RolePrimary}, nil, false, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := &leader{
				self: "db-0", members: members, own: func() protocol.Status { return c.own },
				hardState: func() ha.HardState { return ha.HardState{Ballot: ha.Ballot{Term: 4, Leader: c.leader}} },
				last:      func(name string) (protocol.Status, bool) { s, ok := c.others[name]; return s, ok },
			}
			if l.hasAll() != c.hasAll || l.archived() != c.where {
				t.Errorf("all stream: %t; archived up to %q", l.hasAll(), l.archived())
			}
		})
	}
}
