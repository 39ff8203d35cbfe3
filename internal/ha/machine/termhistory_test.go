package machine

import (
	"testing"
	"time"

	"toban.dev/internal/ha"
	"toban.dev/internal/wal"
)

// Nobody leads before it is on its own disk where its WAL begins and on which timeline: who follows takes it over.
func TestALeaderIsFollowedWhenItsTermHistoryIsOnDisk(t *testing.T) {
	t.Parallel()
	r := elected(t)
	r.holds = func(e Effect) bool { _, is := e.(Store); return is }
	promotion := wants[Command](r)[len(wants[Command](r))-1]
	r.step(Done{ID: promotion.ID, Timeline: 2, Begins: 100})
	stores := wants[Store](r)
	last := stores[len(stores)-1]
	history, want := last.HardState.TermHistory, ha.TermStart{Term: 5, LSN: 100, Timeline: 2}
	if history[len(history)-1] != want {
		t.Fatalf("it stores %+v", history)
	}
	if r.Peer().Leading {
		t.Error("it is followed before")
	}
	r.step(Stored{ID: last.ID})
	if !r.Peer().Leading {
		t.Errorf("it is not followed after: %s", r.Instance)
	}
}

// What is put on disk while a stream is being ended is not undone by the term history that is written after it.
func TestATermHistoryIsWrittenWithWhatIsOnDiskThen(t *testing.T) {
	t.Parallel()
	r := standby(t)
	r.holds = func(e Effect) bool { c, is := e.(Command); return is && c.Kind == Cut }
	r.wanted = nil
	r.other("db-0.a",
		func(p *ha.Peer) { p.Ballot, p.Leading, p.Streaming = ha.Ballot{Term: 5, Leader: "db-0"}, true, false })
	commands := wants[Command](r)
	if len(commands) != 1 || commands[0].Kind != Cut {
		t.Fatalf("it does not end its stream: %+v", commands)
	}
	record := r.HardState().Configuration
	record.Term, record.Version = 5, record.Version+7
	r.step(ConfigurationProposed{ID: 70, Proposal: Proposal{Leader: "db-0", Voter: "db-1.b", Configuration: record}})
	r.step(Done{ID: commands[0].ID, End: 100})
	stores := wants[Store](r)
	if last := stores[len(stores)-1]; !last.Inherits || last.HardState.Configuration.Version != record.Version ||
		r.HardState().Configuration.Version != record.Version {
		t.Errorf("it writes %+v", last.HardState)
	}
}

// electedOther is db-1, which has voted for db-0 in term 5: that was elected, and is being promoted.
func electedOther(t *testing.T, end wal.LSN) *rig {
	t.Helper()
	r := standby(t)
	r.done = func(Command) Done { return Done{End: end} }
	r.wanted = nil
	r.other("db-0.a", func(p *ha.Peer) {
		p.Ballot, p.Leading, p.Streaming, p.Underway = ha.Ballot{Term: 5, Leader: "db-0"}, false, false, true
		p.TermHistory = append(p.TermHistory, ha.TermStart{Term: 5, LSN: 100})
	})
	return r
}

// promotedOn has db-0 lead term 5 on a timeline.
func (r *rig) promotedOn(timeline wal.Timeline) {
	r.Helper()
	r.other("db-0.a", func(p *ha.Peer) {
		p.Ballot, p.Leading, p.Streaming = ha.Ballot{Term: 5, Leader: "db-0"}, true, false
		p.TermHistory = append(p.TermHistory, ha.TermStart{Term: 5, LSN: 100, Timeline: timeline})
	})
}

// Who was elected is followed before it leads: its term history first, and its timeline when it leads, without a
// second connection.
func TestWhoWasElectedIsFollowedAndItsTimelineComesLater(t *testing.T) {
	t.Parallel()
	r := electedOther(t, 100)
	follows := ha.Ballot{Term: 5, Leader: "db-0"}
	if r.server.following != follows || begun(r.HardState()) != (ha.TermStart{Term: 5, LSN: 100}) {
		t.Fatalf("it has %+v: %s", r.HardState().TermHistory, r.Instance)
	}
	if stores := wants[Store](r); !stores[len(stores)-1].Inherits {
		t.Error("it does not forget abandoned timelines before it follows")
	}
	r.wanted = nil
	r.promotedOn(2)
	stores := wants[Store](r)
	if len(stores) != 1 || stores[0].Inherits || begun(r.HardState()).Timeline != 2 || len(wants[Command](r)) > 0 ||
		len(wants[ObserveServer](r)) == 0 {
		t.Errorf("when it leads: %+v", r.wanted)
	}
	r.wanted = nil
	r.promotedOn(2)
	if len(wants[Store](r)) > 0 {
		t.Error("it is written again")
	}
}

// One that had begun to follow who was elected, and was started again, may have WAL of that term: it forgets no
// timelines before it follows, which might be that of the term.
func TestNoTimelineIsForgottenThatMayBeTheLeaders(t *testing.T) {
	t.Parallel()
	for end, forgets := range map[wal.LSN]bool{100: true, 101: false} {
		m := memoryOf("db-1.b", 5, "db-0")
		m.TermHistory = []ha.TermStart{{Term: 4, LSN: 0, Timeline: 1}, {Term: 5, LSN: 100}}
		r := newRig(t, m)
		r.done = func(Command) Done { return Done{End: end} }
		r.pass(time.Second)
		if r.server.role != ha.ServerStandby {
			t.Fatalf("its server does not run: %s", r.Instance)
		}
		r.step(ServerSeen{Run: r.server.run, Answers: true, Known: true, End: end, Received: end})
		r.wanted = nil
		r.promotedOn(2)
		stores := wants[Store](r)
		if len(stores) != 1 || stores[0].Inherits != forgets || r.server.following.Term != 5 {
			t.Errorf("with WAL up to %s it writes %+v: %s", end, stores, r.Instance)
		}
	}
}

// Who was elected is not followed before it is promoted where it has the beginning of a record behind the end of its
// WAL: its server would send that, and count it for what it writes there instead.
func TestWhoHasTheBeginningOfARecordIsNotFollowedBeforeItIsPromoted(t *testing.T) {
	t.Parallel()
	for _, ragged := range []bool{false, true} {
		r := standby(t)
		r.done = func(c Command) Done { return Done{End: 100, Ragged: ragged && c.Kind == Cut} }
		r.holds = func(e Effect) bool { c, is := e.(Command); return is && c.Kind == Promote }
		r.others(func(p *ha.Peer) {
			p.Resigned = p.Leading
			p.Leading, p.LeaderLost, p.Eligible = false, true, false
		})
		r.vouch(ha.VoteReply{Granted: true, Ballot: r.HardState().Ballot}) // the pre-vote
		r.vouch(ha.VoteReply{Granted: true, Ballot: r.HardState().Ballot})
		promotion := promoted(r)
		if !r.Peer().Underway || ha.Unpromoted(r.Peer().TermHistory, 5) == ragged {
			t.Errorf("ragged %t: others are told %+v", ragged, r.Peer())
		}
		if !ha.Unpromoted(r.HardState().TermHistory, 5) {
			t.Errorf("ragged %t: it has %+v itself", ragged, r.HardState().TermHistory)
		}
		r.step(Done{ID: promotion.ID, Timeline: 2, Begins: 100})
		if said := r.Peer(); !said.Leading || said.TermHistory[len(said.TermHistory)-1].Timeline != 2 {
			t.Errorf("ragged %t: it leads, and others are told %+v", ragged, said)
		}
	}
}

// Nor is one that was elected while its server was stopped: where a shutdown's record begins is known then, and not
// exactly where its WAL ends.
func TestWhoIsElectedWithoutAServerIsNotFollowedBeforeItIsPromoted(t *testing.T) {
	t.Parallel()
	r := newRig(t, memoryOf("db-0.a", 5, "db-1"))
	r.done = func(Command) Done { return Done{Err: "no space left on device"} }
	r.stopped()
	r.watch.known, r.watch.end = true, 101 // it was a primary, and has stopped in order
	for range 40 {
		if r.HardState().Won > 5 {
			break
		}
		r.others(func(p *ha.Peer) {
			p.Resigned = p.Leading
			p.Leading, p.LeaderLost, p.Eligible, p.Streaming = false, true, false, false
		})
		if r.currentPoll() != nil {
			r.vouch(ha.VoteReply{Granted: true, Ballot: r.HardState().Ballot})
		}
		r.pass(50 * time.Millisecond)
	}
	m := r.HardState()
	if m.Won <= 5 || r.server.role != ha.ServerStopped {
		t.Fatalf("it is not elected so: %s", r.Instance)
	}
	if !ha.Unpromoted(m.TermHistory, m.Won) || ha.Unpromoted(r.Peer().TermHistory, m.Won) {
		t.Errorf("it has %+v, and others are told %+v", m.TermHistory, r.Peer().TermHistory)
	}
}
