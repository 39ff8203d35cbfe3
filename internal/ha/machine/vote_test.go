package machine

import (
	"testing"
	"time"

	"toban.dev/internal/ha"
)

func ballotOf(s Store) ha.Ballot { return s.HardState.Ballot }

// The promise is on disk before the stream is cut, and the vote is given after that.
func TestAVoteIsGivenAfterItIsPromisedAndTheStreamIsCut(t *testing.T) {
	t.Parallel()
	r := standby(t)
	r.holds = func(Effect) bool { return true }
	r.others(func(p *ha.Peer) { p.LeaderLost = true; p.Resigned = p.Leading; p.Leading = false })
	r.campaign, r.wanted = nil, nil
	r.watch.rests = r.now + 1000000000 // it does not stand itself
	r.step(VoteAsked{ID: 77, Request: ha.VoteRequest{
		Term: 9, Candidate: "db-2.c", Voter: "db-1.b", Position: ha.Position{Term: 4, LSN: 100},
	}})
	stores := wants[Store](r)
	if len(stores) != 1 || ballotOf(stores[0]) != (ha.Ballot{Term: 9, Leader: "db-2"}) || r.commanded(Cut) ||
		len(wants[ReplyVote](r)) > 0 {
		t.Fatalf("before the promise is on disk: %+v", r.wanted)
	}
	r.step(Stored{ID: stores[0].ID})
	commands := wants[Command](r)
	if len(commands) == 0 || commands[len(commands)-1].Kind != Cut || len(wants[ReplyVote](r)) > 0 {
		t.Fatalf("before the stream is cut: %+v", r.wanted)
	}
	r.step(Done{ID: commands[len(commands)-1].ID, End: 100})
	if replies := wants[ReplyVote](r); len(replies) != 1 || replies[0].ID != 77 || !replies[0].Reply.Granted {
		t.Errorf("the vote is %+v", replies)
	}
}

func TestAPreVotePromisesNothing(t *testing.T) {
	t.Parallel()
	r := standby(t)
	r.wanted = nil
	r.others(func(p *ha.Peer) { p.LeaderLost = true; p.Resigned = p.Leading; p.Leading = false })
	r.wanted = nil
	r.step(VoteAsked{ID: 77, Request: ha.VoteRequest{
		Term: 9, Candidate: "db-2.c", Voter: "db-1.b", PreVote: true, Position: ha.Position{Term: 4, LSN: 100},
	}})
	if replies := wants[ReplyVote](r); len(replies) != 1 || len(wants[Store](r)) > 0 || r.commanded(Cut) {
		t.Errorf("it wants %+v", r.wanted)
	}
}

// A disk that fails to take a promise has promised nothing, and gives no vote.
func TestAPromiseThatIsNotWrittenGivesNoVote(t *testing.T) {
	t.Parallel()
	r := standby(t)
	r.others(func(p *ha.Peer) { p.LeaderLost = true; p.Resigned = p.Leading; p.Leading = false })
	r.campaign, r.command = nil, nil
	r.watch.rests = r.now + 1000000000
	r.holds = func(Effect) bool { return true }
	r.wanted = nil
	before := r.HardState().Ballot
	r.step(VoteAsked{ID: 77, Request: ha.VoteRequest{
		Term: 9, Candidate: "db-2.c", Voter: "db-1.b", Position: ha.Position{Term: 4, LSN: 100},
	}})
	for _, s := range wants[Store](r) {
		r.step(Stored{ID: s.ID, Err: "no space left on device"})
	}
	if r.HardState().Ballot != before || len(wants[ReplyVote](r)) > 0 && wants[ReplyVote](r)[0].Reply.Granted {
		t.Errorf("it has promised %v, and wants %+v", r.HardState().Ballot, r.wanted)
	}
}

// A candidate that promises a later term meanwhile does not win the earlier one.
func TestACandidateThatPromisesALaterTermDoesNotWin(t *testing.T) {
	t.Parallel()
	r := standby(t)
	r.others(func(p *ha.Peer) { p.LeaderLost = true; p.Resigned = p.Leading; p.Leading, p.Eligible = false, false })
	r.vouch(ha.VoteReply{Granted: true, Ballot: r.HardState().Ballot}) // the pre-vote
	poll := r.currentPoll()
	if poll == nil || poll.request.PreVote {
		t.Fatalf("it does not stand: %s", r.Instance)
	}
	r.holds = func(e Effect) bool { c, is := e.(Command); return is && c.Kind == Promote }
	r.step(VoteAsked{ID: 77, Request: ha.VoteRequest{
		Term: 9, Candidate: "db-2.c", Voter: "db-1.b", Position: ha.Position{Term: 4, LSN: 100},
	}})
	if r.HardState().Ballot.Term != 9 {
		t.Fatalf("it has promised %v", r.HardState().Ballot)
	}
	for _, v := range []ha.Voter{"db-0.a", "db-2.c"} {
		r.step(VoteAnswered{
			Round: poll.round, Voter: v, Reply: ha.VoteReply{Granted: true, Ballot: ha.Ballot{Term: 5, Leader: "db-1"}},
		})
	}
	if r.HardState().Won != 0 || r.commanded(Promote) {
		t.Errorf("it has won %d: %s", r.HardState().Won, r.Instance)
	}
}

// Who is elected leads in a moment, when nobody of an earlier term can serve any more. A vote that it gives until then
// makes that election vain.
func TestAWinnerThatIsAboutToLeadGivesNoVote(t *testing.T) {
	t.Parallel()
	r := standby(t)
	r.api = ha.HardState{Voter: "uid", Ballot: ha.Ballot{Term: 4, Leader: "db-0"}, ReadLease: 4}
	r.elect(func() { r.away = false })
	if !r.Leads() || r.server.role != ha.ServerStandby {
		t.Fatalf("it is not about to lead: %s", r)
	}
	r.step(VoteAsked{ID: 77, Request: ha.VoteRequest{
		Term: 9, Candidate: "db-2.c", Voter: "db-1.b", Position: ha.Position{Term: 9, LSN: 100},
	}})
	if got := wants[ReplyVote](r); len(got) != 1 || got[0].Reply.Reason != ha.RefusedLeaderAlive {
		t.Errorf("it answers %+v", got)
	}
	if r.Peer().LeaderLost {
		t.Error("it says that it has lost its leader, which is itself")
	}
}

// How far the WAL goes decides who is elected: one that has lost its leader is looked at more
// often than one that follows.
func TestAStandbyThatHasLostItsLeaderIsLookedAt(t *testing.T) {
	t.Parallel()
	r := standby(t)
	r.pass(time.Second)
	if looks := len(wants[ObserveServer](r)); looks > 0 {
		t.Errorf("it is looked at %d times while its leader is there", looks)
	}
	r.others(func(p *ha.Peer) { // the other one has more WAL: it is waited for
		p.Resigned, p.Leading, p.Position.LSN = p.Leading, false, 110
	})
	if looks := len(wants[ObserveServer](r)); looks != 1 {
		t.Fatalf("it is looked at %d times", looks)
	}
	r.step(Tick{})
	if looks := len(wants[ObserveServer](r)); looks != 1 {
		t.Errorf("it is looked at %d times in no time", looks)
	}
	r.pass(lookInterval + tickInterval)
	if looks := len(wants[ObserveServer](r)); looks < 2 {
		t.Errorf("it is not looked at again: %s", r.Instance)
	}
}

// A vote waits for no replay, and who has much to replay does not stand. What holds its replay up is ended only when
// nobody else has been elected.
func TestOnlyWhoStandsReplays(t *testing.T) {
	t.Parallel()
	r := standby(t)
	r.done = func(Command) Done { return Done{End: 100, Unreplayed: 1 << 30} }
	lost := func(p *ha.Peer) { p.LeaderLost, p.Resigned, p.Leading = true, p.Leading, false }
	r.others(lost)
	r.wanted = nil
	r.step(VoteAsked{ID: 7, Request: ha.VoteRequest{
		Term: 5, Candidate: "db-2.c", Voter: "db-1.b", Position: ha.Position{Term: 4, LSN: 100}, Resigned: 4,
	}})
	replies, cuts := wants[ReplyVote](r), wants[Command](r)
	if len(replies) != 1 || !replies[0].Reply.Granted || len(cuts) != 1 || cuts[0].Replayed {
		t.Fatalf("it answers %+v after %+v: %s", replies, cuts, r.Instance)
	}
	defeated := func(p *ha.Peer) {
		if lost(p); p.Voter == "db-2.c" {
			p.Ballot, p.Defeated, p.Eligible = ha.Ballot{Term: 5, Leader: "db-2"}, true, false
		}
	}
	look := ServerSeen{Run: r.server.run, Answers: true, Received: 100, End: 100, Known: true, Unreplayed: 1 << 30}
	for range 4 {
		r.others(defeated)
		r.step(look)
		r.pass(ha.CampaignPatience / 2)
	}
	if r.currentPoll() != nil || r.Decision().Refusal != ha.RefusedReplaying || r.Peer().Unreplayed != 1<<30 {
		t.Errorf("with 1 GB to replay it stands, or does not say so: %s", r.Instance)
	}
	if looks := wants[ObserveServer](r); looks[0].Replay || !looks[len(looks)-1].Replay {
		t.Errorf("its replay is hastened too soon, or not at all: %+v", looks)
	}
	look.Unreplayed, r.wanted = 0, nil
	r.step(look)
	if poll := r.currentPoll(); poll == nil {
		t.Errorf("when it has replayed all it does not stand: %s", r.Instance)
	}
	r.vouch(ha.VoteReply{Granted: true, Ballot: r.HardState().Ballot})
	if cuts := wants[Command](r); len(cuts) != 1 || !cuts[0].Replayed {
		t.Errorf("it stands, and does not wait for what it has: %+v", cuts)
	}
}

// A standby whose replay is held up can't receive what its leader has once its stream has ended.
func TestReplayIsHastenedWhereItKeepsAStandbyFromStreaming(t *testing.T) {
	t.Parallel()
	r := standby(t)
	for _, streams := range []bool{true, false} {
		r.wanted = nil
		for range 8 {
			r.others(asIs)
			r.step(ServerSeen{
				Run: r.server.run, Following: 4, Answers: true, Streaming: streams, Received: 100, Unreplayed: 50,
			})
			r.pass(ha.CampaignPatience / 2)
		}
		looks := wants[ObserveServer](r)
		if hastened := len(looks) > 0 && looks[0].Replay; hastened == streams {
			t.Errorf("streams: %t, and it is looked at by %+v", streams, looks)
		}
	}
}

// A primary that alone has a vote takes a later term in its place. When it is ended while that is being written,
// it asks nobody any more.
func TestARenewalEndsWithItsServer(t *testing.T) {
	t.Parallel()
	m := memoryOf("db-0.a", 4, "db-0")
	m.Configuration.Now = ha.Quorum{Voters: voters[:1], Acknowledgements: 1}
	r := newRig(t, m)
	r.step(ServerSeen{Run: r.server.run, Answers: true})
	r.holds = func(e Effect) bool { _, is := e.(Store); return is }
	r.wanted = nil
	r.others(func(p *ha.Peer) { p.Ballot, p.Streaming = ha.Ballot{Term: 9, Leader: p.Voter.Instance()}, false })
	stores := wants[Store](r)
	if len(stores) != 1 || r.campaign == nil || !r.campaign.renewal {
		t.Fatalf("it does not take a later term: %s", r.Instance)
	}
	r.step(ServerEnded{Run: r.server.run, Why: "killed"})
	r.step(Stored{ID: stores[0].ID})
	if r.campaign != nil || len(wants[AskVote](r)) > 0 {
		t.Errorf("it goes on: %s", r.Instance)
	}
}

// A pre-vote is refused for want of WAL that has arrived meanwhile: the next one is asked for at once, with all of it.
// One that was asked for with all WAL is in vain, and followed by a pause.
func TestAPreVoteWithAnOldPositionIsAskedForAgainAtOnce(t *testing.T) {
	t.Parallel()
	r := standby(t)
	resigned := func(p *ha.Peer) { p.LeaderLost = true; p.Resigned = p.Leading; p.Leading, p.Eligible = false, false }
	refuse := func() { r.vouch(ha.VoteReply{Ballot: r.HardState().Ballot, Reason: "BetterCandidate"}) }
	r.others(resigned)
	if p := r.currentPoll(); p == nil || p.request.Position.LSN != 100 {
		t.Fatalf("it asks no pre-vote: %s", r.Instance)
	}
	r.step(ServerSeen{Run: r.server.run, Following: 4, Answers: true, Streaming: true, Received: 120})
	refuse()
	if p := r.currentPoll(); p == nil || !p.request.PreVote || p.request.Position.LSN != 120 || r.InVain() > 0 {
		t.Fatalf("it does not ask again at once with all of its WAL, or counts that as in vain: %s", r.Instance)
	}
	refuse()
	if r.currentPoll() != nil || r.InVain() != 1 {
		t.Errorf("it asks again without a pause: %s", r.Instance)
	}
}

// Of two that would both be elected, one has stood by the time the other hears that it may. The other does not outbid
// it: it would take the lead from it the moment that it is elected.
func TestAPreVoteIsInVainWhereAnotherHasStoodMeanwhile(t *testing.T) {
	t.Parallel()
	r := standby(t)
	r.others(func(p *ha.Peer) { p.LeaderLost = true; p.Resigned = p.Leading; p.Leading, p.Eligible = false, false })
	poll := r.currentPoll()
	if poll == nil || !poll.request.PreVote {
		t.Fatalf("it asks no pre-vote: %s", r.Instance)
	}
	r.other("db-2.c", func(p *ha.Peer) { p.LeaderLost, p.Ballot = true, ha.Ballot{Term: 5, Leader: "db-2"} })
	r.vouch(ha.VoteReply{Granted: true, Ballot: r.HardState().Ballot})
	if r.currentPoll() != nil || r.HardState().Ballot.Term != 4 {
		t.Fatalf("it stands for term %d: %s", r.HardState().Ballot.Term, r.Instance)
	}
	r.pass(ha.CampaignPatience / 2)
	if r.currentPoll() != nil {
		t.Errorf("it asks for votes of term %d while the other may win", r.currentPoll().request.Term)
	}
	r.other("db-2.c", func(p *ha.Peer) {
		p.LeaderLost, p.Defeated, p.Ballot = true, true, ha.Ballot{Term: 5, Leader: "db-2"}
	})
	r.pass(ha.HeartbeatInterval)
	if p := r.currentPoll(); p == nil || p.request.Term != 6 {
		t.Errorf("it does not stand when the other was not elected: %s", r.Instance)
	}
}
