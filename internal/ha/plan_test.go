package ha

import (
	"slices"
	"testing"
	"time"
)

func TestPlanQuorum(t *testing.T) {
	t.Parallel()
	one := Quorum{Voters: []Voter{"db-0.a"}, Acknowledgements: 1}
	two := Quorum{Voters: []Voter{"db-0.a", "db-1.b"}, Witness: "uid", Acknowledgements: 2}
	three := Quorum{Voters: []Voter{"db-0.a", "db-1.b", "db-2.c"}, Acknowledgements: 2}
	streams := func(v Voter) Standby { return Standby{Voter: v, Streaming: true, Answers: true} }
	unheard := func(v Voter) Standby { return Standby{Voter: v, Streaming: true} }
	gone := func(v Voter) Standby { return Standby{Voter: v, Gone: time.Minute} }
	for name, c := range map[string]struct {
		now      Quorum
		members  int
		standbys map[string]Standby
		voters   []Voter
		reason   string
	}{
		"nothing changes while all are there": {two, 2, map[string]Standby{"db-1": streams("db-1.b")}, nil, ""},
		"of two, one that is gone is dropped": {
			two, 2, map[string]Standby{"db-1": gone("db-1.b")}, []Voter{"db-0.a"}, "Weakened",
		},
		"of two, one that lost its memory is dropped before it comes back as another": {
			two, 2, map[string]Standby{"db-1": streams("db-1.z")}, []Voter{"db-0.a"}, "Weakened"},
		"of three, one that lost its memory is replaced": {
			three, 3, map[string]Standby{"db-1": streams("db-1.z"), "db-2": streams("db-2.c")},
			[]Voter{"db-0.a", "db-1.z", "db-2.c"}, "VoterReplaced"},
		"of two, one whose volume stalls is dropped, though it seems to stream": {
			two, 2, map[string]Standby{"db-1": stalling(streams("db-1.b"))}, []Voter{"db-0.a"}, "Weakened"},
		"one whose volume stalls is not added": {
			one, 2, map[string]Standby{"db-1": stalling(streams("db-1.b"))}, nil, "",
		},
		"of three, one whose volume stalls keeps its vote": {
			three, 3, map[string]Standby{"db-1": stalling(streams("db-1.b")), "db-2": streams("db-2.c")}, nil, ""},
		"one that streams is added": {
			one, 2, map[string]Standby{"db-1": streams("db-1.b")}, two.Voters, "VoterAdded",
		},
		"one that streams and does not answer is not": {
			one, 2, map[string]Standby{"db-1": unheard("db-1.b")}, nil, "",
		},
		"nor one that answered long ago": {
			one, 2, map[string]Standby{"db-1": {Voter: "db-1.b", Streaming: true, Answers: true, Age: AnswerLimit + 1}},
			nil, "",
		},
		"nor does it replace the one that it was": {
			three, 3, map[string]Standby{"db-1": unheard("db-1.z"), "db-2": streams("db-2.c")}, nil, "",
		},
		"one that leaves keeps its vote while no majority of the others answers": {
			three, 2, map[string]Standby{"db-1": gone("db-1.b"), "db-2": streams("db-2.c")}, nil, "",
		},
		"and loses it when there is none with it either": {
			three, 2, map[string]Standby{"db-1": gone("db-1.b"), "db-2": gone("db-2.c")},
			[]Voter{"db-0.a", "db-1.b"}, "VoterRemoved"},
		"one that does not is not":     {one, 2, map[string]Standby{"db-1": gone("db-1.b")}, nil, ""},
		"one that is no member is not": {one, 1, map[string]Standby{"db-1": streams("db-1.b")}, nil, ""},
		"one after the other": {
			one, 3, map[string]Standby{"db-1": streams("db-1.b"), "db-2": streams("db-2.c")}, two.Voters, "VoterAdded",
		},
		"of three, one that is gone keeps its vote": {
			three, 3, map[string]Standby{"db-1": gone("db-1.b"), "db-2": streams("db-2.c")}, nil, "",
		},
		"one that lost its memory waits until it streams": {
			three, 3, map[string]Standby{"db-1": gone("db-1.z"), "db-2": streams("db-2.c")}, nil, "",
		},
		"the leader itself stays until it has handed over": {
			Quorum{Voters: []Voter{"db-0.a", "db-3.d"}, Witness: "uid", Acknowledgements: 2}, 0,
			map[string]Standby{"db-3": streams("db-3.d")}, []Voter{"db-0.a"}, "VoterRemoved"},
		"what was acknowledged by one is by two from now on": {
			Quorum{Voters: three.Voters, Acknowledgements: 1}, 3, map[string]Standby{
				"db-1": streams("db-1.b"), "db-2": streams("db-2.c"),
			}, three.Voters, "DurabilityChanged"},
		"of those that leave, the one that is gone goes first": {
			three, 1, map[string]Standby{"db-1": streams("db-1.b"), "db-2": gone("db-2.c")},
			[]Voter{"db-0.a", "db-1.b"}, "VoterRemoved"},
	} {
		t.Run(name, func(t *testing.T) {
			q, reason := PlanQuorum(Electorate{Self: "db-0.a", Members: []string{"db-0", "db-1", "db-2"}[:c.members],
				Witness: "uid", WitnessReachable: true, Now: c.now, Standbys: c.standbys})
			if reason != c.reason || (q == nil) != (c.voters == nil) || q != nil && !slices.Equal(q.Voters, c.voters) {
				t.Errorf("planned %v, %s", q, reason)
			}
		})
	}
}

// stalling is a standby whose volume stalls.
func stalling(s Standby) Standby { s.Stalls = true; return s }

func TestPlanQuorumOfTwo(t *testing.T) {
	t.Parallel()
	gone := Electorate{Self: "db-0.a", Members: []string{"db-0", "db-1"}, Witness: "uid", WitnessReachable: true,
		Now:      Quorum{Voters: []Voter{"db-0.a", "db-1.b"}, Witness: "uid", Acknowledgements: 2},
		Standbys: map[string]Standby{"db-1": {Voter: "db-1.b", Gone: time.Minute}}}
	for name, c := range map[string]struct {
		change func(*Electorate)
		reason string
	}{
		"one goes on alone":   {func(*Electorate) {}, "Weakened"},
		"not without the API": {func(e *Electorate) { e.WitnessReachable = false }, ""},
		"not before the other is gone for a while": {
			func(e *Electorate) { e.Standbys["db-1"] = Standby{Voter: "db-1.b", Gone: WeakenLimit} }, "",
		},
		"not without a witness on record":      {func(e *Electorate) { e.Now.Witness, e.Witness = "", "" }, ""},
		"in async nobody is waited for anyway": {func(e *Electorate) { e.Async, e.Now.Acknowledgements = true, 1 }, ""},
		"another witness is put on record": {
			func(e *Electorate) { e.Witness, e.Standbys = "other", nil }, "DurabilityChanged",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := gone
			e.Standbys = map[string]Standby{"db-1": gone.Standbys["db-1"]}
			c.change(&e)
			if q, reason := PlanQuorum(e); reason != c.reason || (q == nil) != (c.reason == "") {
				t.Errorf("planned %v, %s", q, reason)
			}
		})
	}
}

// A leader hears a majority of the next quorum, or has as little of the present one.
func TestAChangeKeepsAMajority(t *testing.T) {
	t.Parallel()
	two := Quorum{Voters: []Voter{"db-0.a", "db-1.b"}, Acknowledgements: 2}
	witnessed, three := two, two
	witnessed.Witness, three.Voters = "uid", []Voter{"db-0.a", "db-1.b", "db-2.c"}
	heard := map[string]Standby{"db-2": {Voter: "db-2.c", Answers: true, Age: AnswerLimit}}
	long := map[string]Standby{"db-2": {Voter: "db-2.c", Answers: true, Age: AnswerLimit + 1}}
	for name, c := range map[string]struct {
		now, next Quorum
		standbys  map[string]Standby
		keeps     bool
	}{
		"one of the next is heard": {two, three, heard, true},
		"of neither":               {two, three, long, true},
		"the leader may go on by the word of the witness":      {witnessed, three, long, false},
		"and goes on by that of another":                       {witnessed, three, heard, true},
		"the witness stays":                                    {witnessed, witnessed, long, true},
		"alone it needs nobody":                                {witnessed, Quorum{Voters: two.Voters[:1]}, nil, true},
		"to add one that has not answered lately to one alone": {Quorum{Voters: two.Voters[:1]}, two, nil, false},
	} {
		e := Electorate{Self: "db-0.a", Now: c.now, Standbys: c.standbys}
		if keeps := KeepsMajority(e, c.next); keeps != c.keeps {
			t.Errorf("%s: %v", name, keeps)
		}
	}
}
