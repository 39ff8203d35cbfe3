package machine

import (
	"slices"
	"testing"
	"time"

	"toban.dev/internal/ha"
)

// says has another answer a question that was asked at a time, with a term and the version of the
// configuration of term 4.
func (r *rig) says(v ha.Voter, boot string, asked time.Duration, term, version uint64) {
	r.Helper()
	r.said++
	r.step(PeerAnswered{Asked: asked, Status: PeerStatus{Name: v.Instance(), Boot: boot, Number: r.said,
		Peer: ha.Peer{
			Voter: v, Data: ha.DataPresent, SystemIdentifier: "7", Ballot: ha.Ballot{Term: term, Leader: "db-0"},
		}, Configuration: ha.Configuration{
			Term: 4, Version: version, Now: ha.Quorum{Voters: voters, Acknowledgements: 2},
		}}})
}

// began has db-2 answer in term 5, by a process that began as a voter in a term.
func (r *rig) began(v ha.Voter, boot string, term uint64) {
	r.Helper()
	r.pass(time.Millisecond)
	r.step(PeerAnswered{Asked: r.now, Status: r.hasBegun(v, boot, term)})
}

func (r *rig) hasBegun(v ha.Voter, boot string, term uint64) PeerStatus {
	r.said++
	return PeerStatus{
		Name: "db-2", Boot: boot, Number: r.said,
		Began: ha.Progress{Voter: v, Term: term, ConfigurationTerm: 4, ConfigurationVersion: 3}, Peer: ha.Peer{
			Voter: "db-2.c", Data: ha.DataPresent, SystemIdentifier: "7", Ballot: ha.Ballot{Term: 5, Leader: "db-0"},
		},
		Configuration: ha.Configuration{Term: 4, Version: 3, Now: ha.Quorum{Voters: voters, Acknowledgements: 2}},
	}
}

// A voter whose own word goes back has forgotten what it promised. A word that was on its way for long says nothing.
func TestAVoterThatGoesBackIsNoticed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		then    func(r *rig)
		notices bool
	}{
		"it goes on":           {func(r *rig) { r.says("db-2.c", "2", r.now, 5, 3) }, false},
		"its term goes back":   {func(r *rig) { r.says("db-2.c", "2", r.now, 3, 3) }, true},
		"its record goes back": {func(r *rig) { r.says("db-2.c", "2", r.now, 4, 2) }, true},
		"it says nothing, and then goes back": {func(r *rig) {
			r.step(PeerAnswered{Asked: r.now, Status: PeerStatus{Name: "db-2", Boot: "2"}})
			r.says("db-2.c", "2", r.now, 3, 3)
		}, true},
		"it is another voter": {func(r *rig) { r.says("db-2.new", "2", r.now, 0, 0) }, false},
		"it was asked before": {func(r *rig) { r.says("db-2.c", "2", r.now-time.Minute, 3, 3) }, false},
		"it was not asked": {func(r *rig) {
			r.step(PeerAnnounced{PeerStatus{
				Name: "db-2", Boot: "2", Peer: ha.Peer{Voter: "db-2.c", Ballot: ha.Ballot{Term: 3, Leader: "db-0"}},
			}})
		}, false},
		"it began with less, and has learned of the rest": {func(r *rig) { r.began("db-2.c", "2", 3) }, true},
		"it began with all":   {func(r *rig) { r.began("db-2.c", "2", 4) }, false},
		"it began long ago":   {func(r *rig) { r.began("db-2.c", "1", 3) }, false},
		"another voter began": {func(r *rig) { r.began("db-2.before", "2", 3) }, false},
		"its vote was heard of first": {func(r *rig) {
			r.news.entry("db-2").progress.promised("db-2.c", 5, r.now)
			r.began("db-2.c", "2", 4)
		}, false},
		"a process before it began with less": {func(r *rig) {
			r.says("db-2.c", "2", r.now, 4, 3)
			asked := r.now - time.Millisecond
			r.pass(time.Millisecond)
			late := r.hasBegun("db-2.c", "1", 3)
			late.Peer.Ballot.Term = 4
			r.step(PeerAnswered{Asked: asked, Status: late})
		}, false},
		"it tells that it began with less, and is asked": {func(r *rig) {
			r.step(PeerAnnounced{r.hasBegun("db-2.c", "2", 3)})
			r.began("db-2.c", "2", 3)
		}, true},
		"another has noticed it": {func(r *rig) {
			r.step(PeerAnnounced{
				PeerStatus{Name: "db-0", Boot: "2", Peer: ha.Peer{Voter: "db-0.a"}, Forgotten: []ha.Voter{"db-2.c"}},
			})
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := standby(t)
			r.says("db-2.c", "1", r.now, 4, 3)
			r.pass(time.Second)
			c.then(r)
			if noticed := slices.Contains(r.Says(r.now).Forgotten, "db-2.c"); noticed != c.notices {
				t.Errorf("it is noticed: %v: %s", noticed, r.Instance)
			}
		})
	}
}

// A vote is a promise, too: who has given it and says then that it has heard of no such term has forgotten it.
func TestAVoteThatIsForgottenIsNoticed(t *testing.T) {
	t.Parallel()
	for term, notices := range map[uint64]bool{4: true, 5: false} {
		r := standby(t)
		r.elect(func() {})
		r.step(VoteAnswered{
			Voter: "db-2.c", Reply: ha.VoteReply{Granted: true, Ballot: ha.Ballot{Term: 5, Leader: "db-1"}},
		})
		r.pass(time.Second)
		r.other("db-2.c", func(p *ha.Peer) { p.Ballot = ha.Ballot{Term: term, Leader: "db-0"} })
		if noticed := slices.Contains(r.Forgotten(), "db-2.c"); r.HardState().Won != 5 || noticed != notices {
			t.Errorf("in term %d it is noticed: %v: %s", term, noticed, r.Instance)
		}
	}
}

// Nobody counts on the vote of one that has forgotten what it promised, on its word about later terms, or on its having
// a record; and it gets no vote: it may lack acknowledged commits.
func TestAVoterThatHasForgottenIsNotCountedOn(t *testing.T) {
	t.Parallel()
	r := standby(t)
	r.forgets("db-2.c")
	r.wanted = nil
	for _, pre := range []bool{true, false} {
		r.step(VoteAsked{ID: 77, Request: ha.VoteRequest{Term: 9, Candidate: "db-2.c", Voter: "db-1.b", PreVote: pre,
			Resigned: 4, Position: ha.Position{Term: 4, LSN: 900}}})
	}
	replies := wants[ReplyVote](r)
	if len(replies) != 2 || replies[0].Reply.Granted || replies[1].Reply.Granted ||
		replies[1].Reply.Reason != ha.RefusedForgotten {
		t.Errorf("asked for its vote it says %+v", replies)
	}
	r = standby(t)
	r.elect(func() { r.forgets("db-0.a"); r.forgets("db-2.c") })
	if r.HardState().Won > 0 {
		t.Errorf("it is elected by those who have forgotten: %s", r.Instance)
	}
	r = served(t)
	r.forgets("db-1.b")
	newer := r.HardState().Configuration
	newer.Version++
	r.step(ConfigurationAnswered{Voter: "db-1.b", Configuration: newer, Reply: ha.AcceptReply{Accepted: true}})
	if r.quorum.accepted["db-1.b"].Version == newer.Version {
		t.Error("a record is in force by who has forgotten")
	}
	r = served(t)
	r.away = true
	r.forgets("db-1.b")
	r.forgets("db-2.c")
	for range 20 {
		r.others(asIs)
		r.pass(100 * time.Millisecond)
	}
	if len(wants[Fence](r)) == 0 {
		t.Errorf("it leads on by the word of those who have forgotten: %s", r.Instance)
	}
}

// Who is told that it has forgotten what it promised comes back as another voter, unless it alone has a vote.
func TestWhoHasForgottenIsAnotherVoter(t *testing.T) {
	t.Parallel()
	for name, alone := range map[string]bool{"others have a vote": false, "it alone has a vote": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := memoryOf("db-0.a", 4, "db-0")
			if alone {
				m = ha.LeadAlone(m, 4)
			}
			r := newRig(t, m)
			r.step(PeerAnnounced{
				PeerStatus{Name: "db-1", Boot: "2", Peer: ha.Peer{Voter: "db-1.b"}, Forgotten: []ha.Voter{"db-0.a"}},
			})
			now := r.HardState()
			if other := now.Voter != "db-0.a"; other == alone ||
				other && (now.Won > 0 || r.Leads() || now.Voter.Instance() != "db-0") {
				t.Errorf("it is the voter %s and has won %d: %s", now.Voter, now.Won, r.Instance)
			}
			if !alone && r.server.role == ha.ServerPrimary {
				t.Errorf("it leads: %s", r.Instance)
			}
		})
	}
}
