package ha

import (
	"testing"
	"time"

	"toban.dev/internal/wal"
)

// promised is a standby that has promised a later term in vain.
func promised(name string, term uint64) Peer {
	p := without(follower(name, term, name))
	return p
}

// other is a peer that is another voter than the one on record.
func other(p Peer) Peer { p.Voter = NewVoter(p.Voter.Instance(), "z"); return p }

// resigning asks the leader to leave, for an instance or for any.
func resigning(to string) func(*View) { return func(v *View) { v.Wish = Wish{Resign: true, To: to} } }

// preferring is the order in which the members should lead.
func preferring(names ...string) func(*View) { return func(v *View) { v.Preferred = names } }

func TestDecideAsLeader(t *testing.T) {
	t.Parallel()
	both := func(v *View) {
		v.Peers["db-1"], v.Peers["db-2"] = follower("db-1", 4, "db-0"), follower("db-2", 4, "db-0")
	}
	ended := local(func(l *Local) { l.Server, l.Failed = ServerStopped, "the server has ended" })
	back := local(func(l *Local) { l.Server = ServerStopped })
	cut := local(func(l *Local) { l.Unconfirmed, l.Alone = FenceLimit+1, FenceLimit+1 })
	lone := local(func(l *Local) { l.HardState.Configuration = alone })
	check(t, map[string]decided{
		"a leader leads":                              {three("db-0", primary("db-0", 4), both), Lead, "", "Leader"},
		"a leader leads with nobody to be asked":      {three("db-0", primary("db-0", 4), lone), Lead, "", "Leader"},
		"a leader that has just lost all still leads": {three("db-0", primary("db-0", 4)), Lead, "", "Leader"},
		"a leader without majority and API stops":     {three("db-0", primary("db-0", 4), cut), Fence, "", "Isolated"},
		"to reach the API is not enough": {
			three("db-0", primary("db-0", 4), cut,
				local(func(l *Local) { l.WitnessReachable = true })), Fence, "", "Isolated"},
		"a leader with the read lease goes on": {
			three("db-0", primary("db-0", 4), cut, local(func(l *Local) { l.HasReadLease = true })), Lead, "", "Leader",
		},
		"and one that the witness votes for": {
			three("db-0", primary("db-0", 4), cut, local(func(l *Local) { l.Unconfirmed = ReadLeaseLimit })),
			Lead, "", "Leader",
		},
		"a leader whose server has ended resigns": {
			three("db-0", primary("db-0", 4), both, ended), Fence, "", "ServerFailed",
		},
		"alone it comes back itself": {three("db-0", primary("db-0", 4), lone, ended), Lead, "", "Leader"},
		"a leader that comes back asks first": {
			three("db-0", primary("db-0", 4), back, cut), Wait, "", "LeaderUnconfirmed",
		},
		"nor while the others may be electing": {
			three("db-0", primary("db-0", 4), back, both, hears("db-1", without(follower("db-1", 4, "db-0")))), Wait,
			"", "LeaderUnconfirmed"},
		"which one alone can't": {
			three("db-0", primary("db-0", 4), back,
				hears("db-1", without(follower("db-1", 4, "db-0")))), Lead, "", "Leader"},
		"what was said before the fence is no answer": {
			three("db-0", primary("db-0", 4), back, both, cut), Wait, "", "LeaderUnconfirmed",
		},
		"and leads when a majority knows of no later one": {
			three("db-0", primary("db-0", 4), back, hears("db-1", follower("db-1", 4, "db-0"))), Lead, "", "Leader"},
		"not when one of them does": {
			three("db-0", primary("db-0", 4), back, hears("db-1", full(promised("db-1", 5)))),
			Wait, "", "LeaderUnconfirmed",
		},
		"then it gives up, if another can lead": {
			three("db-0", primary("db-0", 4), back, hears("db-1", promised("db-1", 5))), Fence, "", "TermOutdated",
		},
		"once": {
			three("db-0", primary("db-0", 4), back, hears("db-1", promised("db-1", 5)),
				local(func(l *Local) { l.Resigned = true })), Wait, "", "LeaderUnconfirmed",
		},
		"nor when it is told to end": {
			three("db-0", primary("db-0", 4), back, both, func(v *View) { v.Wish.Leaving = true }), Wait,
			"", "LeaderUnconfirmed",
		},
		"a leader that is asked leaves": {
			three("db-0", primary("db-0", 4), both, resigning("db-2")), Resign, "db-2", "SwitchoverAsked",
		},
		"for any, the one that is preferred": {
			three("db-0", primary("db-0", 4), both, resigning(""), preferring("db-2", "db-0", "db-1")), Resign, "db-2",
			"SwitchoverAsked",
		},
		"but for whom it is asked": {
			three("db-0", primary("db-0", 4), both, resigning("db-1"), preferring("db-2", "db-1", "db-0")), Resign,
			"db-1", "SwitchoverAsked",
		},
		"not the one that is preferred and does not stream": {
			three("db-0", primary("db-0", 4), both, hears("db-2", without(follower("db-2", 4, "db-0"))),
				resigning(""), preferring("db-2", "db-1", "db-0")), Resign, "db-1", "SwitchoverAsked",
		},
		"anybody where no other is preferred": {
			three("db-0", primary("db-0", 4), both, resigning(""), preferring("db-0", "db-9")), Resign, "",
			"SwitchoverAsked",
		},
		"nobody is asked to leave because another is preferred": {
			three("db-0", primary("db-0", 4), both, preferring("db-2", "db-1", "db-0")), Lead, "", "Leader",
		},
		"a server that fails names nobody": {
			three("db-0", primary("db-0", 4), both, ended, preferring("db-2", "db-1", "db-0")), Fence, "",
			"ServerFailed",
		},
		"not for one that is no voter": {three("db-0", primary("db-0", 4), both,
			hears("db-2", other(follower("db-2", 4, "db-0"))), resigning("db-2")), Lead, "", "Leader"},
		"not for one that does not stream": {three("db-0", primary("db-0", 4), both,
			hears("db-2", without(follower("db-2", 4, "db-0"))), resigning("db-2")), Lead, "", "Leader"},
		"not for one that has much to replay": {three("db-0", primary("db-0", 4), both,
			hears("db-2", replays(follower("db-2", 4, "db-0"), 1<<30)), resigning("db-2")), Lead, "", "Leader"},
		"nor is that one preferred": {
			three("db-0", primary("db-0", 4), both, hears("db-2", replays(follower("db-2", 4, "db-0"), 1<<30)),
				resigning(""), preferring("db-2", "db-1")), Resign, "db-1", "SwitchoverAsked",
		},
		"with one of three away too: its own vote counts": {
			three("db-0", primary("db-0", 4), hears("db-2", follower("db-2", 4, "db-0")), resigning("")),
			Resign, "", "SwitchoverAsked",
		},
		"not while its volume stalls: it could not vote": {
			three("db-0", primary("db-0", 4), hears("db-2", follower("db-2", 4, "db-0")), resigning(""),
				local(func(l *Local) { l.Unwritten = StallLimit + 1 })), Lead, "", "Leader",
		},
		"not where it ends, and the others could not elect": {
			three("db-0", primary("db-0", 4), hears("db-2", follower("db-2", 4, "db-0")), resigning(""),
				func(v *View) { v.Wish.Leaving = true }), Lead, "", "Leader",
		},
		"a leader whose commits nobody acknowledges makes way": {
			three("db-0", primary("db-0", 4), deaf, longUnacknowledged), Resign, "", "Unacknowledged",
		},
		"not soon": {three("db-0", primary("db-0", 4), deaf,
			local(func(l *Local) { l.Unacknowledged = AcknowledgeLimit })), Lead, "", "Leader"},
		"on a busy machine later": {three("db-0", primary("db-0", 4), deaf, longUnacknowledged,
			local(func(l *Local) { l.OwnSlack = time.Second })), Lead, "", "Leader"},
		"not again and again": {three("db-0", primary("db-0", 4), deaf, longUnacknowledged,
			local(func(l *Local) { l.Yielded = true })), Lead, "", "Leader"},
		"not while the others could not elect": {three("db-0", primary("db-0", 4), longUnacknowledged,
			hears("db-1", without(follower("db-1", 4, "db-0")))), Lead, "", "Leader"},
		"nor while one says that it streams: it catches up": {
			three("db-0", primary("db-0", 4), deaf, longUnacknowledged,
				hears("db-1", follower("db-1", 4, "db-0"))), Lead, "", "Leader",
		},
		"nor where nobody else could lead at once": {three("db-0", primary("db-0", 4), longUnacknowledged,
			hears("db-1", replays(full(without(follower("db-1", 4, "db-0"))), 1<<30)),
			hears("db-2", rebuilt(without(follower("db-2", 4, "db-0"))))), Lead, "", "Leader"},
		"nor where the one that could has less than another, which would not elect it": {
			three("db-0", primary("db-0", 4), longUnacknowledged,
				hears("db-1", at(full(without(follower("db-1", 4, "db-0"))), 101)),
				hears("db-2", without(follower("db-2", 4, "db-0")))), Lead, "", "Leader",
		},
		"but where the other, which can't lead, has no more": {
			three("db-0", primary("db-0", 4), longUnacknowledged,
				hears("db-1", full(without(follower("db-1", 4, "db-0")))),
				hears("db-2", without(follower("db-2", 4, "db-0")))), Resign, "", "Unacknowledged",
		},
		"it makes way for who can't follow": {
			three("db-0", primary("db-0", 4), both, hears("db-1", promised("db-1", 5))), Resign, "", "TermOutdated",
		},
		"also when nobody streams": {
			three("db-0", primary("db-0", 4), hears("db-1", promised("db-1", 5))), Resign, "", "TermOutdated",
		},
		"one that has no say is not waited for": {
			three("db-0", primary("db-0", 4), hears("db-1", promised("db-1", 5)),
				hears("db-2", other(follower("db-2", 4, "db-0")))), Resign, "", "TermOutdated",
		},
		"one that can't lead just now is waited for": {
			three("db-0", primary("db-0", 4), hears("db-1", promised("db-1", 5)),
				hears("db-2", full(follower("db-2", 4, "db-0")))), Lead, "", "Leader",
		},
		"alone it takes the later term itself": {
			three("db-0", primary("db-0", 4), lone, hears("db-1", promised("db-1", 5))), Campaign, "", "TermRenewed",
		},
		"after a rest, if that was in vain": {
			three("db-0", primary("db-0", 4), lone, hears("db-1", promised("db-1", 5)),
				local(func(l *Local) { l.Resting = true })), Resign, "", "TermOutdated"},
	})
}

// deaf has the leader heard by two who do not stream from it, longUnacknowledged says that this lasts.
func deaf(v *View) {
	for _, name := range []string{"db-1", "db-2"} {
		v.Peers[name] = without(follower(name, 4, "db-0"))
		p := v.Peers[name]
		p.LeaderLost = false
		v.Peers[name] = p
	}
}

func longUnacknowledged(v *View) { v.Local.Unacknowledged = AcknowledgeLimit + 1 }

func rebuilt(p Peer) Peer { p.Rebuilding = true; return p }

// full is a standby that can't lead.
func full(p Peer) Peer { p.Eligible = false; return p }

func TestDecideElection(t *testing.T) {
	t.Parallel()
	lost := without(follower("db-2", 1, "db-0"))
	resigned := leader("db-0", 1)
	resigned.Leading, resigned.Resigned = false, true
	lostWhileStreaming := follower("db-1", 1, "db-0")
	lostWhileStreaming.LeaderLost = true
	wishes := resigned
	wishes.Successor = "db-2"
	check(t, map[string]decided{
		"when a majority has lost the leader, there is a campaign": {
			three("db-1", standby("db-1", 1, "db-0"), silent, hears("db-2", lost)), Campaign, "", "LeaderLost",
		},
		"not when the other still hears it": {
			three("db-1", standby("db-1", 1, "db-0"), silent, hears("db-2", follower("db-2", 1, "db-0"))),
			Follow, "db-0", "NoMajority",
		},
		"not when nobody answers": {three("db-1", standby("db-1", 1, "db-0"), silent), Follow, "db-0", "NoMajority"},
		"not when the other is another voter": {
			three("db-1", standby("db-1", 1, "db-0"), silent, hears("db-2", other(lost))), Follow, "db-0", "NoMajority",
		},
		"not when the other has more WAL": {
			three("db-1", standby("db-1", 1, "db-0"), silent, hears("db-2", at(lost, 101))),
			Follow, "db-0", "NoMajority",
		},
		"not when the other has WAL of a later term": {
			three("db-1", standby("db-1", 1, "db-0"), silent, hears("db-2", ofTerm(lost, 2))),
			Follow, "db-0", "NoMajority",
		},
		"not of one that is no voter": {
			three("db-1", standby("db-1", 1, "db-0"), silent, hears("db-2", lost),
				local(func(l *Local) { l.HardState.Voter = "db-1.z" })), Follow, "db-0", "NotAVoter",
		},
		"not of one that ends": {three("db-1", standby("db-1", 1, "db-0"), silent, hears("db-2", lost),
			func(v *View) { v.Wish.Leaving = true }), Follow, "db-0", "Leaving"},
		"not of one without room for WAL": {three("db-1", standby("db-1", 1, "db-0"), silent, hears("db-2", lost),
			local(func(l *Local) { l.Full = true })), Follow, "db-0", "VolumeFull"},
		"not of one that does not know its end": {three("db-1", stopped("db-1", 1, "db-0"), silent, hears("db-2", lost),
			local(func(l *Local) { l.Known = false })), Await, "", "EndUnknown"},
		"not of one that has much to replay": {three("db-1", standby("db-1", 1, "db-0"), silent, hears("db-2", lost),
			local(func(l *Local) { l.Unreplayed = ReplaySoon + 1 })), Follow, "db-0", "Replaying"},
		"not of one that follows nobody and has any to replay": {
			three("db-1", standby("db-1", 1, "db-0"), silent, hears("db-2", lost),
				local(func(l *Local) { l.Following, l.Known, l.End, l.Unreplayed = 0, true, 100, 8 })),
			Await, "", "Replaying",
		},
		"not of one that does not go on with the little that it has to replay": {
			three("db-1", standby("db-1", 1, "db-0"), silent, hears("db-2", lost),
				local(func(l *Local) { l.Unreplayed, l.Still = 8, replayPause+1 })), Follow, "db-0", "Replaying",
		},
		"what is left to replay at any moment is in nobody's way": {
			three("db-1", standby("db-1", 1, "db-0"), silent, hears("db-2", lost),
				local(func(l *Local) { l.Unreplayed = ReplaySoon })), Campaign, "", "LeaderLost",
		},
		"what another has to replay is in nobody's way": {
			three("db-1", standby("db-1", 1, "db-0"), silent, hears("db-2", replays(lost, 1<<32))),
			Campaign, "", "LeaderLost",
		},
		"the first of equals is not waited for while it has much to replay": {
			three("db-2", standby("db-2", 1, "db-0"), justSilent,
				hears("db-1", replays(without(follower("db-1", 1, "db-0")), 1<<32))),
			Campaign, "", "LeaderLost",
		},
		"one with more WAL is, for a moment": {
			three("db-2", standby("db-2", 1, "db-0"), justLost, hears("db-0", resigned),
				hears("db-1", replays(at(follower("db-1", 1, "db-0"), 101), 1<<32))),
			Follow, "db-0", "BetterCandidate",
		},
		"not just after one in vain": {three("db-1", standby("db-1", 1, "db-0"), silent, hears("db-2", lost),
			local(func(l *Local) { l.Resting = true })), Follow, "db-0", "Resting"},
		"the first of equals goes first": {
			three("db-2", standby("db-2", 1, "db-0"), justSilent, hears("db-1", without(follower("db-1", 1, "db-0")))),
			Follow, "db-0", "BetterCandidate",
		},
		"but has not for ever": {
			three("db-2", standby("db-2", 1, "db-0"), silent, hears("db-1", without(follower("db-1", 1, "db-0")))),
			Campaign, "", "LeaderLost",
		},
		"also where the leader took a minute to stop": {three("db-2", standby("db-2", 1, "db-0"), justLost,
			hears("db-0", resigned), hears("db-1", follower("db-1", 1, "db-0"))), Follow, "db-0", "BetterCandidate"},
		"the first by ordinal is waited for though its old word says that it has less": {
			three("db-2", standby("db-2", 1, "db-0"), justLost, hears("db-0", resigned),
				hears("db-1", at(follower("db-1", 1, "db-0"), 90))), Follow, "db-0", "BetterCandidate",
		},
		"not when it has said so since": {
			three("db-2", standby("db-2", 1, "db-0"), justLost, hears("db-0", resigned),
				hears("db-1", at(without(follower("db-1", 1, "db-0")), 90))), Campaign, "", "LeaderLost",
		},
		"nor where its stream was not seen to end yet": {
			three("db-2", standby("db-2", 1, "db-0"), justLost, hears("db-0", resigned),
				hears("db-1", at(lostWhileStreaming, 90))), Campaign, "", "LeaderLost",
		},
		"nor for longer than its word takes": {
			three("db-2", standby("db-2", 1, "db-0"), justLost, hears("db-0", resigned),
				hears("db-1", at(follower("db-1", 1, "db-0"), 90)),
				local(func(l *Local) { l.Lost = WordPatience })), Campaign, "", "LeaderLost",
		},
		"nor one that would not stand": {
			three("db-2", standby("db-2", 1, "db-0"), justLost, hears("db-0", resigned),
				hears("db-1", at(stands("db-1", 1), 90))), Campaign, "", "LeaderLost",
		},
		"who stands already is not outbid": {three("db-1", standby("db-1", 1, "db-0"), justLost,
			hears("db-0", resigned), hears("db-2", stands("db-2", 2))), Follow, "db-0", "AnotherStands"},
		"nor one that has a vote already": {three("db-1", standby("db-1", 1, "db-0"), justSilent,
			hears("db-2", without(follower("db-2", 1, "db-0"))), hears("db-0", follower("db-0", 2, "db-2"))),
			Await, "", "AnotherStands"},
		"one that was not elected is": {three("db-1", standby("db-1", 1, "db-0"), justLost,
			hears("db-0", resigned), hears("db-2", defeated(stands("db-2", 2)))), Campaign, "", "LeaderLost"},
		"one that nobody hears is": {three("db-1", standby("db-1", 1, "db-0"), justLost,
			hears("db-0", resigned), hears("db-3", follower("db-3", 2, "db-2"))), Campaign, "", "LeaderLost"},
		"one that has had its time is": {three("db-1", standby("db-1", 1, "db-0"), silent,
			hears("db-2", without(stands("db-2", 2)))), Campaign, "", "LeaderLost"},
		"when the leader resigns, nobody waits": {three("db-1", standby("db-1", 1, "db-0"), hears("db-0", resigned),
			hears("db-2", follower("db-2", 1, "db-0"))), Campaign, "", "LeaderLost"},
		"who the leader wishes goes first": {three("db-1", standby("db-1", 1, "db-0"), hears("db-0", wishes),
			hears("db-2", follower("db-2", 1, "db-0"))), Follow, "db-0", "BetterCandidate"},
		"that is, the wished one": {three("db-2", standby("db-2", 1, "db-0"), hears("db-0", wishes),
			hears("db-1", follower("db-1", 1, "db-0"))), Campaign, "", "LeaderLost"},
	})
}

func at(p Peer, lsn wal.LSN) Peer { p.Position.LSN = lsn; return p }

// replays is one that has so much to replay.
func replays(p Peer, bytes uint64) Peer { p.Unreplayed, p.Replaying = bytes, true; return p }

func ofTerm(p Peer, term uint64) Peer { p.Position.Term = term; return p }

// justLost says that the leader has been lost a moment ago, after a minute without one: it took its time to stop.
func justLost(v *View) { v.Local.Leaderless, v.Local.Lost = time.Minute, time.Millisecond }

// stands is one that asks for votes in a term.
func stands(name string, term uint64) Peer {
	p := follower(name, term, name)
	p.Streaming = false
	return p
}

func defeated(p Peer) Peer { p.Defeated = true; return p }

// justSilent says that the leader has been lost a moment ago.
func justSilent(v *View) {
	v.Local.Silence, v.Local.Leaderless, v.Local.Lost = SilenceLimit+1, time.Minute, time.Millisecond
}

func TestLeaderLost(t *testing.T) {
	t.Parallel()
	of := func(changes ...func(*View)) View {
		hears := hears("db-0", leader("db-0", 1))
		return three("db-1", standby("db-1", 1, "db-0"), append([]func(*View){hears}, changes...)...)
	}
	atWork := func(slack, idle time.Duration) func(*View) {
		return func(v *View) {
			p := v.Peers["db-0"]
			p.Leading, p.Underway = false, true
			v.Peers["db-0"], v.Local.Slack, v.Local.Idle = p, slack, idle
		}
	}
	for name, c := range map[string]struct {
		view View
		lost bool
	}{
		"one that is heard is not":               {of(func(*View) {}), false},
		"one that is silent for a moment is not": {of(func(v *View) { v.Local.Silence = SilenceLimit }), false},
		"one that is silent for longer is":       {of(func(v *View) { v.Local.Silence = SilenceLimit + 1 }), true},
		"in async it takes longer": {
			of(func(v *View) { v.Async, v.Local.Silence = true, AsyncSilenceLimit }), false,
		},
		"in async too, in the end": {
			of(func(v *View) { v.Async, v.Local.Silence = true, AsyncSilenceLimit+1 }), true,
		},
		"one that nobody listens for is": {of(func(v *View) { v.Local.Refused = RefusedLimit + 1 }), true},
		"not while its stream is there": {
			of(func(v *View) { v.Local.Refused, v.Local.Streaming = RefusedLimit+1, true }), false,
		},
		"one that answers without leading may be": {of(func(v *View) { v.Local.Idle = IdleLimit }), false},
		"for so long": {of(func(v *View) { v.Local.Idle = IdleLimit + 1 }), true},
		"one that is at work on a busy machine is not": {of(atWork(time.Second, UnderwayLimit)), false},
		"for longer it is":                          {of(atWork(time.Second, UnderwayLimit+1)), true},
		"one that is at work on another machine is": {of(atWork(0, IdleLimit+1)), true},
		"one that was at work in an earlier term is": {
			of(atWork(time.Second, IdleLimit+time.Second+1), func(v *View) {
				p := v.Peers["db-0"]
				p.Ballot.Term = 0
				v.Peers["db-0"] = p
			}), true,
		},
		"one that has resigned is": {
			of(func(v *View) { p := v.Peers["db-0"]; p.Resigned = true; v.Peers["db-0"] = p }), true,
		},
		"one that was not elected is": {
			of(func(v *View) { p := v.Peers["db-0"]; p.Defeated = true; v.Peers["db-0"] = p }), true,
		},
		"not one that was not in an earlier term": {
			of(func(v *View) { v.Peers["db-0"] = Peer{Ballot: Ballot{0, ""}, Defeated: true} }), false,
		},
		"one that has lost its data is": {
			of(func(v *View) { p := v.Peers["db-0"]; p.Data = DataEmpty; v.Peers["db-0"] = p }), true,
		},
		"not one that resigned an earlier term": {
			of(func(v *View) { v.Peers["db-0"] = Peer{Ballot: Ballot{0, ""}, Resigned: true} }), false,
		},
		"one that nobody ever had is":          {three("db-1", stopped("db-1", 0, "")), true},
		"a primary is not its own lost leader": {three("db-0", primary("db-0", 2)), false},
		"a candidate in vain has none":         {three("db-0", standby("db-0", 2, "db-0")), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if lost := c.view.LeaderLost(); lost != c.lost {
				t.Errorf("lost: %v", lost)
			}
		})
	}
}

func TestDefeated(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		view View
		is   bool
	}{
		"who stood and was not elected": {three("db-1", standby("db-1", 2, "db-1")), true},
		"not who was": {
			three("db-1", standby("db-1", 2, "db-1"), func(v *View) { v.Local.HardState.Won = 2 }), false,
		},
		"not who was elected in a former term": {
			three("db-1", standby("db-1", 2, "db-0"), func(v *View) { v.Local.HardState.Won = 1 }), false,
		},
	} {
		if got := c.view.Defeated(); got != c.is {
			t.Errorf("%s: %v", name, got)
		}
	}
}
