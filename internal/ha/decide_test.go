package ha

import "testing"

func three(self string) View {
	return View{Self: self, Members: []string{"db-0", "db-1", "db-2"}, Peers: map[string]Peer{}}
}

func with(v View, change func(*View)) View { change(&v); return v }

func TestDecide(t *testing.T) {
	leading := Peer{Data: DataPresent, SystemIdentifier: "7", Ballot: Ballot{1, "db-0"}, Leading: true, Oldest: 100}
	present := Local{Data: DataPresent, SystemIdentifier: "7"}
	for name, c := range map[string]struct {
		view   View
		action Action
		target string
		reason string
		ballot Ballot
	}{
		"the first instance of a new cluster makes the data, though nobody answers": {
			with(three("db-0"), func(v *View) { v.Local.Data = DataEmpty }), Initialise, "", "NewCluster", Ballot{1, "db-0"}},
		"the first instance tries again when making the data was cut short": {
			with(three("db-0"), func(v *View) { v.Local = Local{Data: DataEmpty, Ballot: Ballot{1, "db-0"}} }), Initialise, "", "NewCluster", Ballot{1, "db-0"}},
		"another instance of a new cluster waits": {
			with(three("db-1"), func(v *View) { v.Local.Data = DataEmpty }), Wait, "", "NoPrimaryYet", Ballot{}},
		"a new instance clones the primary": {
			with(three("db-1"), func(v *View) { v.Local.Data = DataEmpty; v.Peers["db-0"] = leading }), Clone, "db-0", "NoData", Ballot{1, "db-0"}},
		"a new instance does not clone a primary that takes no writes yet": {
			with(three("db-1"), func(v *View) {
				v.Local.Data = DataEmpty
				v.Peers["db-0"] = Peer{Data: DataPresent, Ballot: Ballot{1, "db-0"}}
			}), Wait, "", "PrimaryUnreachable", Ballot{1, "db-0"}},
		"a primary whose volume is lost never starts over": {
			with(three("db-0"), func(v *View) {
				v.SystemIdentifier = "7"
				v.Local = Local{Data: DataEmpty, Ballot: Ballot{3, "db-0"}}
			}), Wait, "", "DataLost", Ballot{3, "db-0"}},
		"a primary whose volume and memory are lost never starts over": {
			with(three("db-0"), func(v *View) { v.SystemIdentifier = "7"; v.Local.Data = DataEmpty }), Wait, "", "NoPrimaryYet", Ballot{}},
		"an empty first instance does not start over while a peer has data": {
			with(three("db-0"), func(v *View) { v.Local.Data = DataEmpty; v.Peers["db-1"] = Peer{Data: DataPresent} }), Wait, "", "NoPrimaryYet", Ballot{}},
		"an empty first instance does not start over while a peer does not know its data": {
			with(three("db-0"), func(v *View) { v.Local.Data = DataEmpty; v.Peers["db-1"] = Peer{} }), Wait, "", "NoPrimaryYet", Ballot{}},
		"the primary leads with nobody to be asked": {
			with(three("db-0"), func(v *View) { v.Local = present; v.Local.Ballot = Ballot{4, "db-0"} }), Lead, "", "Leader", Ballot{4, "db-0"}},
		"a former primary follows the one of a higher term": {
			with(three("db-0"), func(v *View) {
				v.Local = present
				v.Local.Ballot = Ballot{4, "db-0"}
				v.Peers["db-2"] = Peer{Data: DataPresent, SystemIdentifier: "7", Ballot: Ballot{5, "db-2"}, Leading: true}
			}), Follow, "db-2", "Follower", Ballot{5, "db-2"}},
		"a standby follows a primary that does not answer": {
			with(three("db-1"), func(v *View) { v.Local = present; v.Local.Ballot = Ballot{1, "db-0"} }), Follow, "db-0", "Follower", Ballot{1, "db-0"}},
		"a standby whose WAL is gone is cloned anew": {
			with(three("db-1"), func(v *View) { v.Local = present; v.Local.Received = 99; v.Peers["db-0"] = leading }), Clone, "db-0", "WALRemoved", Ballot{1, "db-0"}},
		"a standby that streams is not cloned, whatever the numbers say": {
			with(three("db-1"), func(v *View) {
				v.Local = present
				v.Local.Received, v.Local.Streaming = 99, true
				v.Peers["db-0"] = leading
			}), Follow, "db-0", "Follower", Ballot{1, "db-0"}},
		"a standby that does not know where it is is not cloned": {
			with(three("db-1"), func(v *View) { v.Local = present; v.Peers["db-0"] = leading }), Follow, "db-0", "Follower", Ballot{1, "db-0"}},
		"unreadable data is not empty data": {
			three("db-0"), Wait, "", "DataUnknown", Ballot{}},
		"data of another system is left alone": {
			with(three("db-1"), func(v *View) {
				v.SystemIdentifier = "8"
				v.Local = present
				v.Peers["db-0"] = leading
			}), Wait, "", "ForeignData", Ballot{1, "db-0"}},
		"data of a foreign primary is not cloned": {
			with(three("db-1"), func(v *View) { v.SystemIdentifier = "8"; v.Local.Data = DataEmpty; v.Peers["db-0"] = leading }), Wait, "", "PrimaryUnreachable", Ballot{1, "db-0"}},
		"an instance that was removed stops": {
			with(three("db-3"), func(v *View) { v.Local = present; v.Local.Ballot = Ballot{1, "db-3"} }), Wait, "", "NotAMember", Ballot{1, "db-3"}},
		"a lone instance with data and no memory leads": {
			View{Self: "db-0", Members: []string{"db-0"}, Local: present}, Lead, "", "OnlyMember", Ballot{1, "db-0"}},
		"one of several with data and no memory waits": {
			with(three("db-0"), func(v *View) { v.Local = present }), Wait, "", "LeaderUnknown", Ballot{}},
	} {
		t.Run(name, func(t *testing.T) {
			d := Decide(c.view)
			if d.Action != c.action || d.Target != c.target || d.Reason != c.reason || d.Ballot != c.ballot {
				t.Errorf("decided %+v,\nexpected %s %s, reason %s, ballot %+v", d, c.action, c.target, c.reason, c.ballot)
			}
			if d.Message == "" {
				t.Error("the decision has no sentence for people")
			}
		})
	}
}

func TestLSN(t *testing.T) {
	for _, text := range []string{"0/0", "16/B374D848", "FFFFFFFF/FFFFFFFF"} {
		l, err := ParseLSN(text)
		if err != nil || l.String() != text {
			t.Errorf("%s became %s, %v", text, l, err)
		}
	}
	for _, text := range []string{"", "1", "x/1", "1/x", "100000000/0"} {
		if _, err := ParseLSN(text); err == nil {
			t.Errorf("%q was taken for a WAL position", text)
		}
	}
	start, err := SegmentStart("0000000100000002000000A1", 16<<20)
	if err != nil || start.String() != "2/A1000000" {
		t.Errorf("the segment starts at %s, %v", start, err)
	}
}
