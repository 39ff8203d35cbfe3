package ha

import "testing"

// TestDecideUnderChange holds what the simulation found: decisions while members come and go.
func TestDecideUnderChange(t *testing.T) {
	for name, c := range map[string]struct {
		view   View
		action Action
		reason string
	}{
		"a leader that is no member any more is still copied from": {View{Self: "db-0", Members: []string{"db-0"}, Local: Local{Data: DataEmpty},
			Peers: map[string]Peer{"db-2": {Data: DataPresent, Ballot: Ballot{4, "db-2"}, Leading: true}}}, Clone, "NoData"},
		"a copy without a record is not the first of its kind": {View{Self: "db-0", Members: []string{"db-0"},
			Local: Local{Data: DataPresent, Memory: Memory{Voter: "db-0.a", Ballot: Ballot{5, "db-2"}}}}, Await, "LeaderExpected"},
		"a lone instance with data and no memory leads": {View{Self: "db-0", Members: []string{"db-0"}, Local: Local{Data: DataPresent}}, Initialise, "OnlyMember"},
		"an instance that was removed votes while it runs": {View{Self: "db-3", Members: []string{"db-0"},
			Local: Local{Data: DataPresent, Memory: Memory{Voter: "db-3.a", Ballot: Ballot{1, "db-0"}}}}, Await, "LeaderExpected"},
		"an instance that was removed copies nothing": {View{Self: "db-3", Members: []string{"db-0"}, Local: Local{Data: DataEmpty}}, Wait, "NotAMember"},
	} {
		t.Run(name, func(t *testing.T) {
			if d := Decide(c.view); d.Action != c.action || d.Reason != c.reason {
				t.Errorf("decided %+v", d)
			}
		})
	}
}
