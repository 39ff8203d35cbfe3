package machine

import (
	"math/rand/v2"
	"testing"
	"time"

	"toban.dev/internal/ha"
)

// reading is the rig of a reader of three instances, which has streamed from db-0.
func reading(t *testing.T, m ha.HardState) *rig {
	t.Helper()
	r := &rig{T: t, now: time.Hour, holds: func(Effect) bool { return false }}
	r.done = func(Command) Done { return Done{End: 100, Timeline: 2, Begins: 100} }
	r.Instance = New(Options{
		Name: "db-readers-0", Boot: "1", HardState: m, Rules: DefaultRules(), Limits: ha.OwnLimits(), Now: r.now,
		Config: Config{Members: []string{"db-0", "db-1", "db-2"}, Reader: true, SystemIdentifier: "7"},
		Random: rand.New(rand.NewPCG(1, 2)), // #nosec G404 -- a test must be repeatable
	})
	r.step(DataSeen{Data: ha.DataPresent, SystemIdentifier: "7", Room: true})
	return r
}

func readerMemory() ha.HardState { return memoryOf("db-readers-0.f", 4, "db-0") }

func TestAReaderCopiesAndFollowsWithoutBeingAMember(t *testing.T) {
	t.Parallel()
	r := reading(t, ha.HardState{Voter: "db-readers-0.f"})
	r.holds = func(e Effect) bool { c, is := e.(Command); return is && c.Kind == Clone }
	r.step(DataSeen{Data: ha.DataEmpty, Room: true})
	r.other("db-0.a", func(p *ha.Peer) {
		p.Ballot, p.Leading, p.Streaming = ha.Ballot{Term: 4, Leader: "db-0"}, true, false
	})
	r.pass(time.Second)
	if !r.commanded(Clone) || r.Decision().Reason != "NoData" {
		t.Fatalf("it has not begun to copy: %+v", r.Decision())
	}
	r.step(DataSeen{Data: ha.DataPresent, SystemIdentifier: "7", Room: true})
	r.step(Done{ID: r.command.ID, TermHistory: []ha.TermStart{{Term: 4, LSN: 0, Timeline: 1}}})
	r.others(asIs)
	if d := r.Decision(); d.Action != ha.Follow || d.Target != "db-0" {
		t.Errorf("it does not follow: %+v", d)
	}
}

// Whatever it is told and whoever is gone: a reader asks nobody for a vote, asks no witness, and tells nobody how it
// is. Even where a configuration names it.
func TestAReaderNeverStands(t *testing.T) {
	t.Parallel()
	named := readerMemory()
	named.Configuration.Now = ha.Quorum{Voters: []ha.Voter{"db-readers-0.f"}, Acknowledgements: 1}
	for name, m := range map[string]ha.HardState{"it has no vote": readerMemory(), "a vote by mistake": named} {
		r := reading(t, m)
		r.other("db-0.a", asIs)
		r.other("db-0.a", func(p *ha.Peer) { p.Leading, p.Resigned = false, true })
		r.pass(time.Minute)
		if r.Leads() || len(wants[AskVote](r)) > 0 || r.commanded(Promote) || len(wants[AskWitness](r)) > 0 ||
			len(wants[Broadcast](r)) > 0 || r.Peer().Eligible {
			t.Errorf("%s: it wants %+v", name, r.wanted)
		}
		if d := r.Decision(); d.Refusal != "Reader" {
			t.Errorf("%s: it does not stand because of %q: %+v", name, d.Refusal, d)
		}
	}
}

// Nobody should ask a reader for anything that binds. It refuses, and nothing is promised.
func TestAReaderNeverVotesAndAcceptsNoConfiguration(t *testing.T) {
	t.Parallel()
	r := reading(t, readerMemory())
	r.others(func(p *ha.Peer) { p.LeaderLost = true; p.Resigned = p.Leading; p.Leading = false })
	r.wanted = nil
	position := ha.Position{Term: 4, LSN: 1000}
	for id, request := range map[uint64]ha.VoteRequest{
		1: {Term: 9, Candidate: "db-2.c", Voter: "db-readers-0.f", Position: position},
		2: {Term: 9, Candidate: "db-2.c", Voter: "db-readers-0.f", Position: position, PreVote: true},
		3: {Term: 4, Candidate: "db-0.a", Voter: "db-readers-0.f", Confirm: true},
	} {
		r.step(VoteAsked{ID: id, Request: request})
	}
	r.step(ConfigurationProposed{ID: 4, Proposal: Proposal{
		Leader: "db-2", Voter: "db-readers-0.f", Configuration: ha.Configuration{Term: 9, Version: 1},
	}})
	replies := wants[ReplyVote](r)
	if len(replies) != 3 {
		t.Fatalf("it has answered %+v", replies)
	}
	for _, reply := range replies {
		if reply.Reply.Granted || reply.Reply.Reason != ha.RefusedReader {
			t.Errorf("it has answered %+v", reply)
		}
	}
	for _, reply := range wants[ReplyConfiguration](r) {
		if reply.Reply.Accepted {
			t.Errorf("it has accepted a configuration: %+v", reply)
		}
	}
	if term := r.HardState().Ballot.Term; term != 4 {
		t.Errorf("it has promised term %d", term)
	}
}

// A leader does not hear a reader, gives it no vote, and offers it nothing, though it streams.
func TestALeaderDoesNotCountAReader(t *testing.T) {
	t.Parallel()
	r := served(t)
	r.wanted = nil
	before := r.HardState().Configuration
	for range 20 {
		r.others(asIs)
		r.other("db-readers-0.f", func(p *ha.Peer) { p.Eligible = true })
		standbys := append([]ha.Voter{"db-readers-0"}, voters[1:]...)
		r.step(ServerSeen{Run: r.server.run, Answers: true, Standbys: standbys})
		r.pass(250 * time.Millisecond)
	}
	if after := r.HardState().Configuration; after.Newer(before) {
		t.Errorf("the configuration has become %+v", after)
	}
	for _, p := range wants[Propose](r) {
		if p.Proposal.Voter.Instance() == "db-readers-0" {
			t.Errorf("the reader is offered %+v", p)
		}
	}
	for _, p := range r.Peers() {
		if p == "db-readers-0" {
			t.Error("the reader's word counts")
		}
	}
}
