package agent

import (
	"testing"

	"toban.dev/internal/agent/status"
	"toban.dev/internal/protocol"
)

// An instance tells that it leads by what its server is now: the status may say so later, and says that it is not ready
// while it is only slow.
func TestAnInstanceTellsWhatItsServerIsNow(t *testing.T) {
	for name, c := range map[string]struct {
		ready  bool
		server *standing
		ending bool
		want   bool
	}{
		"a primary":                       {true, &standing{promoted: true, opened: true}, false, true},
		"a primary that is slow":          {false, &standing{promoted: true, opened: true}, false, true},
		"a primary that lets nobody in":   {true, &standing{promoted: true}, false, false},
		"a primary that is about to stop": {true, &standing{promoted: true, opened: true}, true, false},
		"a server that does not run":      {true, nil, false, false},
	} {
		a := &Agent{status: status.New(protocol.Status{
			Name: "x-0", Leader: "x-0", Role: protocol.RolePrimary, Ready: c.ready, Term: 4,
		})}
		if c.server != nil {
			r := &running{standing: c.server}
			r.ending.Store(c.ending)
			a.current.Store(r)
		}
		if got := a.tellsPoolers(); got.Leads != c.want || got.Term != 4 {
			t.Errorf("%s tells %+v", name, got)
		}
	}
}
