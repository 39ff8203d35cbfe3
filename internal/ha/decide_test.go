package ha

import (
	"testing"
	"time"

	"toban.dev/internal/wal"
)

// term history is that of the first term; ofThree the configuration of the usual quorum.
var (
	history = []TermStart{{Term: 1, LSN: 0, Timeline: 1}}
	ofThree = Configuration{
		Term: 1, Version: 3, Now: Quorum{Voters: []Voter{"db-0.a", "db-1.b", "db-2.c"}, Acknowledgements: 2},
	}
	alone = Configuration{Term: 1, Version: 1, Now: Quorum{Voters: []Voter{"db-0.a"}, Acknowledgements: 1}}
)

// voterOf is the usual voter of an instance.
func voterOf(name string) Voter {
	return map[string]Voter{"db-0": "db-0.a", "db-1": "db-1.b", "db-2": "db-2.c"}[name]
}

// three is the view of one of three instances that hears nobody.
func three(self string, local Local, changes ...func(*View)) View {
	v := View{Self: self, Members: []string{"db-0", "db-1", "db-2"}, Local: local, Peers: map[string]Peer{}}
	for _, change := range changes {
		change(&v)
	}
	return v
}

// standby is an instance with data, in the term of a leader whose standby it is.
func standby(name string, term uint64, leader string) Local {
	return Local{Data: DataPresent, SystemIdentifier: "7", Server: ServerStandby, Following: term,
		LocalWAL: LocalWAL{Received: 100}, Answers: true,
		HardState: HardState{
			Voter: voterOf(name), Ballot: Ballot{term, leader}, Configuration: ofThree, TermHistory: history,
		}}
}

// stopped is the same without a server, all of its WAL being known.
func stopped(name string, term uint64, leader string) Local {
	l := standby(name, term, leader)
	l.Server, l.Following, l.Received, l.Known, l.End = ServerStopped, 0, 0, true, 100
	return l
}

// primary is an instance that leads a term.
func primary(name string, term uint64) Local {
	l := standby(name, term, name)
	l.Server, l.Following, l.Received, l.HardState.Won = ServerPrimary, 0, 0, term
	return l
}

// empty is an instance without data.
func empty(name string, term uint64, leader string) Local {
	return Local{Data: DataEmpty, HardState: HardState{Voter: voterOf(name), Ballot: Ballot{term, leader}}}
}

// hears puts a peer into the view.
func hears(name string, p Peer) func(*View) { return func(v *View) { v.Peers[name] = p } }

// leader is what a leader says, follower what a standby does.
func leader(name string, term uint64) Peer {
	return Peer{Voter: voterOf(name), Data: DataPresent, SystemIdentifier: "7", Ballot: Ballot{term, name},
		Leading: true, Oldest: 50, TermHistory: history, Position: Position{1, 100}}
}

func follower(name string, term uint64, of string) Peer {
	return Peer{Voter: voterOf(name), Data: DataPresent, SystemIdentifier: "7", Ballot: Ballot{term, of},
		Streaming: true, Eligible: true, TermHistory: history, Position: Position{1, 100}}
}

// without is a peer that has lost its leader.
func without(p Peer) Peer { p.Streaming, p.LeaderLost = false, true; return p }

// system says which database system the SampleDB is.
func system(id string) func(*View) { return func(v *View) { v.SystemIdentifier = id } }

// local changes the instance itself.
func local(change func(*Local)) func(*View) { return func(v *View) { change(&v.Local) } }

// silent says that the leader has been silent for longer than any limit.
func silent(v *View) {
	v.Local.Silence, v.Local.Leaderless, v.Local.Lost = time.Minute, time.Minute, time.Minute
}

// decided is a view with what is to be decided.
type decided struct {
	view   View
	action Action
	target string
	reason string
}

func check(t *testing.T, table map[string]decided) {
	t.Helper()
	for name, c := range table {
		t.Run(name, func(t *testing.T) {
			d := Decide(c.view)
			if d.Action != c.action || d.Target != c.target || d.Reason != c.reason {
				t.Errorf("decided %+v,\nexpected %s %s, reason %s", d, c.action, c.target, c.reason)
			}
			if d.Message == "" {
				t.Error("the decision has no sentence for people")
			}
			if d.Ballot.Term < c.view.Local.HardState.Ballot.Term {
				t.Errorf("the ballot goes back to %v", d.Ballot)
			}
		})
	}
}

func TestDecideWithoutData(t *testing.T) {
	t.Parallel()
	alike := func(l Local) Local { l.Data = DataUnknown; return l }
	check(t, map[string]decided{
		"the first instance of a new cluster makes the data, though nobody answers": {
			three("db-0", empty("db-0", 0, "")), Initialise, "", "NewCluster"},
		"the first instance tries again when making the data was cut short": {
			three("db-0", empty("db-0", 1, "db-0")), Initialise, "", "NewCluster"},
		"another instance of a new cluster waits": {three("db-1", empty("db-1", 0, "")), Wait, "", "NoPrimaryYet"},
		"a new instance copies the primary": {
			three("db-1", empty("db-1", 0, ""), hears("db-0", leader("db-0", 1))), Clone, "db-0", "NoData",
		},
		"unreadable data is not empty data":        {three("db-0", Local{}), Wait, "", "DataUnknown"},
		"unreadable data is not that of a primary": {three("db-0", alike(primary("db-0", 3))), Wait, "", "DataUnknown"},
		"a new instance does not copy a primary that takes no writes yet": {
			three("db-1", empty("db-1", 1, "db-0"), hears("db-0", Peer{Data: DataPresent, Ballot: Ballot{1, "db-0"}})),
			Wait, "", "PrimaryUnreachable"},
		"a new instance does not copy the primary of an earlier term": {
			three("db-1", empty("db-1", 2, "db-2"), hears("db-0", leader("db-0", 1))), Wait, "", "PrimaryUnknown"},
		"data of a foreign primary is not copied": {
			three("db-1", empty("db-1", 1, "db-0"), system("8"), hears("db-0", leader("db-0", 1))), Wait,
			"", "PrimaryUnreachable"},
		"a primary whose data is lost never starts over": {
			three("db-0", empty("db-0", 3, "db-0"), system("7")), Wait, "", "DataLost"},
		"a primary whose data and memory are lost never starts over": {
			three("db-0", empty("db-0", 0, ""), system("7")), Wait, "", "PrimaryUnknown"},
		"an empty first instance does not start over while a peer has data": {
			three("db-0", empty("db-0", 0, ""), hears("db-1", follower("db-1", 0, ""))), Wait, "", "PrimaryUnknown"},
		"an empty first instance does not start over while a peer does not know its data": {
			three("db-0", empty("db-0", 0, ""), hears("db-1", Peer{})), Wait, "", "PrimaryUnknown"},
		"a rewind that was cut short is made good by a copy": {
			three("db-1", Local{Data: DataIncomplete}, hears("db-0", leader("db-0", 1))), Clone,
			"db-0", "DataIncomplete"},
		"a rewind that was cut short waits for a leader": {
			three("db-1", Local{Data: DataIncomplete}), Wait, "", "DataIncomplete",
		},
	})
}

// A standby follows whom a majority has elected while the server there is being promoted.
func TestWhoWasElectedIsFollowed(t *testing.T) {
	t.Parallel()
	elected := leader("db-2", 5)
	elected.Leading, elected.Underway = false, true
	elected.TermHistory = []TermStart{{1, 0, 1}, {5, 100, 0}}
	revoked := func(l *Local) { l.Following, l.Known, l.End = 0, true, 100 }
	of := func(changes ...func(*View)) View {
		changes = append([]func(*View){local(revoked), hears("db-2", elected)}, changes...)
		return three("db-1", standby("db-1", 5, "db-2"), changes...)
	}
	with := func(change func(*Peer)) func(*View) {
		p := elected
		change(&p)
		return hears("db-2", p)
	}
	expected := func(v View) decided { return decided{v, Await, "", "LeaderExpected"} }
	check(t, map[string]decided{
		"one that has voted follows it": {of(), Follow, "db-2", "LeaderElected"},
		"one that has less WAL as well": {
			of(local(func(l *Local) { l.End = 90 })), Follow, "db-2", "LeaderElected"},
		"one that follows it keeps to it": {
			of(local(func(l *Local) { l.Following, l.Known = 5, false })), Follow, "db-2", "Follower"},
		"not one whose end is not known": expected(of(local(func(l *Local) { l.Known = false }))),
		"not one that has more":          expected(of(local(func(l *Local) { l.End = 101 }))),
		"not one that may have WAL of its term": expected(of(local(func(l *Local) {
			l.HardState.TermHistory = elected.TermHistory
		}))),
		"not a reader":                      expected(of(func(v *View) { v.Reader = true })),
		"not one whose server does not run": expected(of(local(func(l *Local) { l.Server = ServerStopped }))),
		"not of one that stops to hand over": expected(of(with(func(p *Peer) {
			p.TermHistory = []TermStart{{1, 0, 1}, {5, 100, 2}}
		}))),
		"not of one that was elected in another term": expected(of(with(func(p *Peer) {
			p.TermHistory = []TermStart{{1, 0, 1}, {4, 100, 0}}
		}))),
		"not of one that is not at it": expected(of(with(func(p *Peer) { p.Underway = false }))),
		"not of one of another system": expected(
			of(system("8"), local(func(l *Local) { l.SystemIdentifier = "8" }))),
		"not of one that has given up already": {
			of(with(func(p *Peer) { p.Resigned = true })), Campaign, "", "LeaderLost"},
	})
}

// WAL of a term whose timeline is not known yet is WAL of that term.
func TestWhatIsOfATermWithoutATimeline(t *testing.T) {
	t.Parallel()
	unnamed, named := []TermStart{{1, 0, 1}, {5, 100, 0}}, []TermStart{{1, 0, 1}, {5, 100, 2}}
	for name, c := range map[string]struct {
		history []TermStart
		end     wal.LSN
		known   bool
		want    bool
	}{
		"none of it":    {unnamed, 100, true, false},
		"some of it":    {unnamed, 101, true, true},
		"nobody knows":  {unnamed, 100, false, true},
		"it has a name": {named, 101, true, false},
		"of the last but one, of which none is left to know": {
			append(unnamed, TermStart{6, 120, 0}), 120, true, true,
		},
		"none of two":            {append(unnamed, TermStart{6, 120, 0}), 100, true, false},
		"a later one has a name": {append(unnamed, TermStart{6, 120, 3}), 130, true, false},
		"nothing is here":        {nil, 0, false, false},
	} {
		if got := HoldsUnnamed(c.history, c.end, c.known); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestDecideAsStandby(t *testing.T) {
	t.Parallel()
	later := leader("db-2", 5)
	later.TermHistory = []TermStart{{1, 0, 1}, {5, 90, 2}}
	alsoUnnamed := leader("db-2", 5)
	alsoUnnamed.TermHistory = []TermStart{{1, 0, 1}, {4, 80, 0}, {5, 90, 2}}
	overtaken := func(l *Local) { l.HardState.Ballot, l.HardState.Won = Ballot{4, "db-0"}, 4 }
	check(t, map[string]decided{
		"a former primary follows the one of a higher term": {
			three("db-0", stopped("db-0", 4, "db-0"), local(overtaken), hears("db-2", leader("db-2", 5))),
			Follow, "db-2", "Follower"},
		"a former primary with WAL of its own rewinds": {
			three("db-0", stopped("db-0", 4, "db-0"), local(overtaken), hears("db-2", later)),
			Rewind, "db-2", "Diverged"},
		"where a rewind has failed, a copy is made": {
			three("db-0", stopped("db-0", 4, "db-0"), local(func(l *Local) { l.RewindFailed = true }),
				hears("db-2", later)), Clone, "db-2", "Diverged"},
		"what may be of a timeline that nobody knows is not rewound": {
			three("db-0", stopped("db-0", 4, "db-0"), hears("db-2", later), local(func(l *Local) {
				l.HardState.TermHistory = []TermStart{{1, 0, 1}, {4, 95, 0}}
			})), Clone, "db-2", "Diverged"},
		"nor where the leader has that term as well": {
			three("db-0", stopped("db-0", 4, "db-0"), hears("db-2", alsoUnnamed), local(func(l *Local) {
				l.HardState.TermHistory = []TermStart{{1, 0, 1}, {4, 80, 0}}
			})), Clone, "db-2", "Diverged"},
		"nobody rewinds before all is replayed": {
			three("db-0", stopped("db-0", 4, "db-0"), hears("db-2", later),
				local(func(l *Local) { l.Server, l.Unreplayed = ServerStandby, 1<<20 })), Await, "", "Diverged"},
		"nobody rewinds before the end of its WAL is known": {
			three("db-0", stopped("db-0", 4, "db-0"), local(func(l *Local) { l.Known = false }), hears("db-2", later)),
			Await, "", "LeaderExpected"},
		"one that is about to lead is waited for": {
			three("db-1", standby("db-1", 1, "db-0"), silent,
				hears("db-2", Peer{Ballot: Ballot{5, "db-2"}, Underway: true})),
			Await, "", "LeaderExpected"},
		"one whose leader follows another by now receives nothing from it": {
			three("db-1", standby("db-1", 4, "db-0"), hears("db-0", follower("db-0", 5, "db-2"))),
			Await, "", "LeaderExpected"},
		"nor when it has lost that leader": {
			three("db-1", standby("db-1", 4, "db-0"), silent, hears("db-0", follower("db-0", 5, "db-2"))),
			Await, "", "NoMajority"},
		"one whose leader only stands for a later term goes on": {
			three("db-1", standby("db-1", 4, "db-0"), hears("db-0", follower("db-0", 5, "db-0"))),
			Follow, "db-0", "Follower"},
		"one after the other is rebuilt, by ordinal": {
			three("db-1", stopped("db-1", 4, "db-0"), hears("db-2", later), hears("db-0", Peer{Rebuilding: true})),
			Await, "", "Rebuilding"},
		"a standby keeps to a primary that does not answer": {
			three("db-1", standby("db-1", 1, "db-0")), Follow, "db-0", "Follower",
		},
		"a standby whose next WAL is gone is copied anew": {
			three("db-1", fallenBehind(false), hears("db-0", leader("db-0", 1))), Clone, "db-0", "WALRemoved",
		},
		"a standby that streams is not, whatever the numbers": {
			three("db-1", fallenBehind(true), hears("db-0", leader("db-0", 1))), Follow, "db-0", "Follower",
		},
		"a standby that can't stream for long is copied anew": {
			three("db-1", stalled(time.Minute), hears("db-0", leader("db-0", 1))), Clone, "db-0", "Stuck",
		},
		"one that replays what it has streams after that": {
			three("db-1", stalled(time.Minute), hears("db-0", leader("db-0", 1)),
				local(func(l *Local) { l.Unreplayed, l.Still = 1<<30, time.Second })), Follow, "db-0", "Follower",
		},
		"one that has replayed nothing of it for as long is copied anew": {
			three("db-1", stalled(time.Minute), hears("db-0", leader("db-0", 1)),
				local(func(l *Local) { l.Unreplayed, l.Still = 1<<30, time.Minute })), Clone, "db-0", "Stuck",
		},
		"a standby that can't stream for a while is left alone": {
			three("db-1", stalled(time.Second), hears("db-0", leader("db-0", 1))), Follow, "db-0", "Follower",
		},
		"a standby that does not know where it is is not copied": {
			three("db-1", standby("db-1", 1, "db-0"), local(func(l *Local) { l.Received = 0 }),
				hears("db-0", leader("db-0", 1))), Follow, "db-0", "Follower"},
		"data of another system is left alone": {
			three("db-1", stopped("db-1", 1, "db-0"), system("8"), hears("db-0", leader("db-0", 1))),
			Wait, "", "ForeignData"},
		"one of several with data and no memory waits": {
			three("db-0", Local{Data: DataPresent, SystemIdentifier: "7"}), Await, "", "NotAVoter"},
	})
}

func fallenBehind(streaming bool) Local {
	l := standby("db-1", 1, "db-0")
	l.Received, l.Streaming = 49, streaming
	return l
}

func stalled(d time.Duration) Local {
	l := standby("db-1", 1, "db-0")
	l.Stalled = d
	return l
}

// TestDecideUnderChange holds decisions while members come and go.
func TestDecideUnderChange(t *testing.T) {
	t.Parallel()
	check(t, map[string]decided{
		"a leader that is no member any more is still copied from": {
			View{Self: "db-0", Members: []string{"db-0"}, Local: empty("db-0", 0, ""), Peers: map[string]Peer{
				"db-2": {Data: DataPresent, Ballot: Ballot{4, "db-2"}, Leading: true},
			}}, Clone, "db-2", "NoData",
		},
		"a copy without a record is not the first of its kind": {View{Self: "db-0", Members: []string{"db-0"},
			Local: Local{Data: DataPresent, HardState: HardState{Voter: "db-0.a", Ballot: Ballot{5, "db-2"}}}},
			Await, "", "LeaderExpected"},
		"a lone instance with data and no memory leads": {
			View{Self: "db-0", Members: []string{"db-0"}, Local: Local{Data: DataPresent}},
			Initialise, "", "OnlyMember"},
		"an instance that was removed votes while it runs": {View{Self: "db-3", Members: []string{"db-0"},
			Local: Local{Data: DataPresent, HardState: HardState{Voter: "db-3.a", Ballot: Ballot{1, "db-0"}}}},
			Await, "", "LeaderExpected"},
		"an instance that was removed copies nothing": {
			View{Self: "db-3", Members: []string{"db-0"}, Local: Local{Data: DataEmpty}}, Wait, "", "NotAMember",
		},
	})
}
