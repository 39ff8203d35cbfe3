package ha

import (
	"slices"
	"testing"
	"time"
)

func TestPlanQuorum(t *testing.T) {
	two := Quorum{Voters: []Voter{"db-0.a", "db-1.b"}, Witness: "uid", Acknowledgements: 2}
	three := Quorum{Voters: []Voter{"db-0.a", "db-1.b", "db-2.c"}, Acknowledgements: 2}
	streams := func(v Voter) Standby { return Standby{Voter: v, Streaming: true} }
	gone := func(v Voter) Standby { return Standby{Voter: v, Gone: time.Minute} }
	for name, c := range map[string]struct {
		now      Quorum
		members  int
		standbys map[string]Standby
		voters   []Voter
		reason   string
	}{
		"nothing changes while all are there": {two, 2, map[string]Standby{"db-1": streams("db-1.b")}, nil, ""},
		"of two, one that is gone is dropped": {two, 2, map[string]Standby{"db-1": gone("db-1.b")}, []Voter{"db-0.a"}, "Weakened"},
		"of two, one that lost its memory is dropped before it comes back as another": {
			two, 2, map[string]Standby{"db-1": streams("db-1.z")}, []Voter{"db-0.a"}, "Weakened"},
		"of three, one that lost its memory is replaced": {
			three, 3, map[string]Standby{"db-1": streams("db-1.z"), "db-2": streams("db-2.c")}, []Voter{"db-0.a", "db-1.z", "db-2.c"}, "VoterReplaced"},
		"of those that leave, the one that is gone goes first": {
			three, 1, map[string]Standby{"db-1": streams("db-1.b"), "db-2": gone("db-2.c")}, []Voter{"db-0.a", "db-1.b"}, "VoterRemoved"},
	} {
		t.Run(name, func(t *testing.T) {
			q, reason := PlanQuorum(Electorate{Self: "db-0.a", Members: []string{"db-0", "db-1", "db-2"}[:c.members], Witness: "uid",
				WitnessReachable: true, Now: c.now, Standbys: c.standbys})
			if reason != c.reason || (q == nil) != (c.voters == nil) || q != nil && !slices.Equal(q.Voters, c.voters) {
				t.Errorf("planned %v, %s", q, reason)
			}
		})
	}
}
