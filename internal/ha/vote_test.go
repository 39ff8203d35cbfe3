package ha

import (
	"testing"

	"toban.dev/internal/wal"
)

// remembers is a voter's hard state in a term, with WAL of the first one.
func remembers(term uint64, leader string) HardState {
	return HardState{Voter: "db-1.b", Ballot: Ballot{term, leader}, Configuration: ofThree, TermHistory: history}
}

// asks is a request of db-2 to db-1.
func asks(term uint64, end wal.LSN) VoteRequest {
	return VoteRequest{Term: term, Candidate: "db-2.c", Voter: "db-1.b", Position: Position{1, end}}
}

func TestConsiderAndGrant(t *testing.T) {
	t.Parallel()
	able := Voting{HardState: remembers(3, "db-0"), HasData: true, LeaderLost: true, End: 100, Known: true}
	with := func(change func(*Voting)) Voting { v := able; change(&v); return v }
	resigned := asks(4, 100)
	resigned.Resigned = 3
	earlier := resigned
	earlier.Resigned = 2
	mistaken := asks(4, 100)
	mistaken.Voter = "db-1.z"
	hears := with(func(v *Voting) { v.LeaderLost = false })
	for name, c := range map[string]struct {
		voting     Voting
		request    VoteRequest
		considered string
		granted    string // after the promise
	}{
		"who has lost its leader votes":             {able, asks(4, 100), "", ""},
		"for one that has more":                     {able, asks(4, 101), "", ""},
		"not for one that has less":                 {able, asks(4, 99), RefusedBehind, RefusedBehind},
		"not while it hears its leader":             {hears, asks(4, 100), RefusedLeaderAlive, ""},
		"but when that has resigned, as it is told": {hears, resigned, "", ""},
		"not as a primary, whatever it is told": {
			with(func(v *Voting) { v.Primary, v.HardState.Ballot.Leader = true, "db-1" }),
			resigned, RefusedLeaderAlive, "",
		},
		"though not an earlier term":    {hears, earlier, RefusedLeaderAlive, ""},
		"not in a term that has passed": {able, asks(2, 100), RefusedOldTerm, ""},
		"not twice in a term":           {able, asks(3, 100), RefusedOldTerm, ""},
		"again for the same": {
			with(func(v *Voting) { v.HardState.Ballot.Leader = "db-2" }), asks(3, 100), "", "",
		},
		"not as another voter": {able, mistaken, RefusedOtherVoter, ""},
		"not without data":     {with(func(v *Voting) { v.HasData = false }), asks(4, 100), RefusedNoData, ""},
		"it is considered before the end is known": {
			with(func(v *Voting) { v.Known = false }), asks(4, 99), "", RefusedEndUnknown,
		},
		"what follows its last whole record is no more": {
			with(func(v *Voting) { v.Received = 107 }), asks(4, 100), "", "",
		},
		"the witness looks at no position": {
			with(func(v *Voting) { v.Witness, v.Known, v.HasData = true, false, false }), asks(4, 1), "", "",
		},
		"the witness too votes once in a term": {
			with(func(v *Voting) { v.Witness = true }), asks(3, 100), RefusedOldTerm, "",
		},
		"who never had a leader votes for the first": {
			with(func(v *Voting) { v.HardState.Ballot = Ballot{} }), asks(1, 100), "", "",
		},
		"WAL of a later term is more than a longer one": {with(func(v *Voting) {
			v.HardState.TermHistory = termHistoryOf(TermStart{Term: 1}, TermStart{Term: 2, LSN: 99})
		}), asks(4, 500), RefusedBehind, RefusedBehind},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reply := Consider(c.voting, c.request)
			if reply.Reason != c.considered || reply.Granted != (c.considered == "") ||
				reply.Ballot != c.voting.HardState.Ballot {
				t.Errorf("considered: %+v", reply)
			}
			c.voting.HardState = Promise(c.voting.HardState, c.request)
			if reply := Grant(c.voting, c.request); reply.Reason != c.granted || reply.Granted != (c.granted == "") {
				t.Errorf("granted: %+v", reply)
			}
		})
	}
}

func TestGrantKeepsToTheNewestPromise(t *testing.T) {
	t.Parallel()
	voting := Voting{
		HardState: Promise(remembers(3, "db-0"), asks(5, 100)), HasData: true, LeaderLost: true, Known: true,
	}
	if reply := Grant(voting, asks(4, 100)); reply.Granted || reply.Reason != RefusedOldTerm {
		t.Errorf("gave the vote of a term that has passed: %+v", reply)
	}
}

func TestCount(t *testing.T) {
	t.Parallel()
	me := HardState{Voter: "db-0.a", Ballot: Ballot{4, "db-0"}, Configuration: ofThree}
	two := me
	two.Configuration = Configuration{
		Term: 1, Version: 3, Now: Quorum{Voters: []Voter{"db-0.a", "db-1.b"}, Witness: "uid", Acknowledgements: 2},
	}
	joint := me
	joint.Configuration = Configuration{Term: 1, Version: 4, Now: ofThree.Now, Next: &Quorum{
		Voters: []Voter{"db-0.a", "db-3.d"}, Witness: "uid", Acknowledgements: 2,
	}}
	yes := VoteReply{Granted: true, Ballot: Ballot{4, "db-0"}, Configuration: ofThree}
	no := VoteReply{Reason: RefusedBehind, Ballot: Ballot{3, "db-1"}, Configuration: ofThree}
	newer, later := yes, no
	newer.Configuration.Version++
	later.Ballot.Term = 5
	for name, c := range map[string]struct {
		memory  HardState
		replies map[Voter]VoteReply
		witness *VoteReply
		won     bool
	}{
		"a majority is enough":       {me, map[Voter]VoteReply{"db-0.a": yes, "db-1.b": yes}, nil, true},
		"also with one against":      {me, map[Voter]VoteReply{"db-0.a": yes, "db-1.b": yes, "db-2.c": no}, nil, true},
		"the own vote alone is none": {me, map[Voter]VoteReply{"db-0.a": yes}, nil, false},
		"who is no voter has none":   {me, map[Voter]VoteReply{"db-0.a": yes, "db-1.z": yes}, nil, false},
		"a later term ends it": {
			me, map[Voter]VoteReply{"db-0.a": yes, "db-1.b": yes, "db-2.c": later}, nil, false,
		},
		"a newer record too": {
			me, map[Voter]VoteReply{"db-0.a": yes, "db-1.b": newer, "db-2.c": yes}, nil, false,
		},
		"of two, the witness decides":          {two, map[Voter]VoteReply{"db-0.a": yes}, &yes, true},
		"for it or against":                    {two, map[Voter]VoteReply{"db-0.a": yes}, &no, false},
		"with three it has no say":             {me, map[Voter]VoteReply{"db-0.a": yes}, &yes, false},
		"what the witness knows counts anyway": {me, map[Voter]VoteReply{"db-0.a": yes, "db-1.b": yes}, &later, false},
		"during a change both must agree":      {joint, map[Voter]VoteReply{"db-0.a": yes, "db-1.b": yes}, nil, false},
		"each by its own majority":             {joint, map[Voter]VoteReply{"db-0.a": yes, "db-1.b": yes}, &yes, true},
		"and the next alone is not enough either": {
			joint, map[Voter]VoteReply{"db-0.a": yes, "db-3.d": yes}, nil, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tally := Count(c.memory, 4, c.replies, c.witness); tally.Won != c.won {
				t.Errorf("counted %+v", tally)
			}
		})
	}
}

func TestCountTellsWhatItHasSeen(t *testing.T) {
	t.Parallel()
	newer := ofThree
	newer.Version = 9
	tally := Count(remembers(4, "db-1"), 4, map[Voter]VoteReply{
		"db-1.b": {Granted: true, Ballot: Ballot{4, "db-1"}},
		"db-2.c": {Reason: RefusedOldTerm, Ballot: Ballot{7, "db-0"}, Configuration: newer},
	}, nil)
	if tally.Won || tally.Term != 7 || tally.Newest.Version != 9 || len(tally.Refusals) != 1 ||
		tally.Refusals["db-2.c"].Reason != RefusedOldTerm {
		t.Errorf("counted %+v", tally)
	}
}

func TestAccept(t *testing.T) {
	t.Parallel()
	record := func(term, version uint64) Configuration {
		return Configuration{Term: term, Version: version, Now: ofThree.Now}
	}
	for name, c := range map[string]struct {
		memory   HardState
		record   Configuration
		accepted bool
		ballot   Ballot
		version  uint64
	}{
		"the leader's next record is kept":      {remembers(1, "db-0"), record(1, 4), true, Ballot{1, "db-0"}, 4},
		"an older one is heard, and not kept":   {remembers(1, "db-0"), record(1, 2), true, Ballot{1, "db-0"}, 3},
		"one of an earlier term is refused":     {remembers(2, "db-2"), record(1, 4), false, Ballot{2, "db-2"}, 3},
		"one of a later term brings its ballot": {remembers(1, "db-2"), record(5, 1), true, Ballot{5, "db-0"}, 1},
		"who has promised another the term hears who won": {
			remembers(5, "db-2"), record(5, 1), true, Ballot{5, "db-0"}, 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, reply := AcceptConfiguration(c.memory, "db-0", c.record)
			if reply.Accepted != c.accepted || reply.Ballot != c.ballot || m.Ballot != c.ballot ||
				m.Configuration.Version != c.version {
				t.Errorf("accepted %+v, remembers %+v", reply, m)
			}
		})
	}
}

func TestLearn(t *testing.T) {
	t.Parallel()
	record := func(term, version uint64) Configuration {
		return Configuration{Term: term, Version: version, Now: ofThree.Now}
	}
	leader := remembers(1, "db-1")
	leader.Won = 1
	for name, c := range map[string]struct {
		memory  HardState
		told    Ballot
		record  Configuration
		ballot  Ballot
		version uint64
	}{
		"a newer record of the term is taken": {
			remembers(1, "db-0"), Ballot{1, "db-0"}, record(1, 4), Ballot{1, "db-0"}, 4,
		},
		"an older one is not": {remembers(1, "db-0"), Ballot{1, "db-0"}, record(1, 2), Ballot{1, "db-0"}, 3},
		"one of a later term brings who won that": {
			remembers(1, "db-0"), Ballot{2, "db-2"}, record(2, 4), Ballot{2, "db-2"}, 4,
		},
		"a promise after that is not taken for a victory": {
			remembers(1, "db-0"), Ballot{3, "db-2"}, record(2, 4), Ballot{Term: 2}, 4,
		},
		"nor does anybody learn that it has won itself": {
			remembers(1, "db-0"), Ballot{2, "db-1"}, record(2, 4), Ballot{Term: 2}, 4,
		},
		"a promise of its own stays": {
			remembers(4, "db-1"), Ballot{2, "db-2"}, record(2, 4), Ballot{4, "db-1"}, 4,
		},
		"a leader has the records of its term itself": {leader, Ballot{1, "db-1"}, record(1, 4), Ballot{1, "db-1"}, 3},
		"but learns that a later one was won":         {leader, Ballot{2, "db-2"}, record(2, 4), Ballot{2, "db-2"}, 4},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if m := LearnConfiguration(c.memory, c.told, c.record); m.Ballot != c.ballot ||
				m.Configuration.Version != c.version {
				t.Errorf("remembers %+v", m)
			}
		})
	}
}

func TestConfirm(t *testing.T) {
	t.Parallel()
	request := VoteRequest{Term: 3, Candidate: "db-2.c", Voter: "db-1.b", Confirm: true}
	mistaken := request
	mistaken.Voter = "db-1.z"
	for name, c := range map[string]struct {
		voting  Voting
		request VoteRequest
		refused string
		ballot  Ballot
	}{
		"its leader": {
			Voting{HardState: remembers(3, "db-2"), LeaderLost: true}, request, "", Ballot{3, "db-2"},
		},
		"the winner of a term asked in vain": {Voting{HardState: remembers(3, "db-1")}, request, "", Ballot{3, "db-2"}},
		"the leader of a later term":         {Voting{HardState: remembers(2, "db-0")}, request, "", Ballot{3, "db-2"}},
		"not that of an earlier one": {
			Voting{HardState: remembers(4, "db-0")}, request, RefusedOldTerm, Ballot{4, "db-0"},
		},
		"not for a memory that is lost": {
			Voting{HardState: remembers(3, "db-2")}, mistaken, RefusedOtherVoter, Ballot{3, "db-2"},
		},
		"the witness says only what it has": {
			Voting{HardState: remembers(2, "db-0"), Witness: true}, request, "", Ballot{2, "db-0"},
		},
		"nor does it confirm the earlier one": {
			Voting{HardState: remembers(4, "db-0"), Witness: true}, request, RefusedOldTerm, Ballot{4, "db-0"},
		},
	} {
		m, reply := Confirm(c.voting, c.request)
		if reply.Granted != (c.refused == "") || reply.Reason != c.refused || m.Ballot != c.ballot ||
			reply.Ballot != c.ballot {
			t.Errorf("%s: %+v, and the ballot %v", name, reply, m.Ballot)
		}
	}
}
