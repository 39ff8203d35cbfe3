package machine

import (
	"testing"
	"time"

	"toban.dev/internal/ha"
)

// Who is elected waits for a leader of an earlier term that has the read lease, and for nobody else.
func TestAWinnerWaitsForALeaderThatHoldsOn(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		api  ha.HardState
		away bool
		// stops is after how long the other one has stopped, 0 for never.
		stops    time.Duration
		promotes bool
		atLeast  time.Duration
	}{
		"nobody has the read lease": {ha.HardState{Ballot: ha.Ballot{Term: 4, Leader: "db-0"}}, false, 0, true, 0},
		"the one before does": {
			ha.HardState{Ballot: ha.Ballot{Term: 4, Leader: "db-0"}, ReadLease: 4}, false, 0, true, ha.PreemptWait,
		},
		"the one before stops": {
			ha.HardState{Ballot: ha.Ballot{Term: 4, Leader: "db-0"}, ReadLease: 4}, false, 300 * time.Millisecond,
			true, 300 * time.Millisecond,
		},
		"a later term is on record": {
			ha.HardState{Ballot: ha.Ballot{Term: 6, Leader: "db-2"}, ReadLease: 4}, false, 0, false, 0,
		},
		"the API is away": {ha.HardState{ReadLease: 4}, true, 0, true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := standby(t)
			r.api = c.api
			r.api.Voter = "uid"
			r.elect(func() { r.away = c.away })
			began := r.now
			for range 40 {
				if r.commanded(Promote) {
					break
				}
				if c.stops > 0 && r.now-began >= c.stops {
					r.api.ReadLease = 0
				}
				r.other("db-2.c", asIs)
				r.pass(50 * time.Millisecond)
			}
			if r.commanded(Promote) != c.promotes {
				t.Fatalf("it is promoted: %v: %s", !c.promotes, r.Instance)
			}
			if waited := r.now - began; waited < c.atLeast || c.promotes && waited > c.atLeast+500*time.Millisecond {
				t.Errorf("it has waited for %s, want %s", waited, c.atLeast)
			}
		})
	}
}

// elect has the instance find its leader lost and win an election. The API is away until the vote; voting is called
// then.
func (r *rig) elect(voting func()) {
	r.Helper()
	r.away = true
	r.others(func(p *ha.Peer) { p.LeaderLost = true; p.Leading = false; p.Eligible = false })
	for range 20 {
		if r.campaign != nil {
			break
		}
		r.pass(250 * time.Millisecond)
		r.other("db-2.c", func(p *ha.Peer) { p.LeaderLost, p.Eligible = true, false })
	}
	granted := ha.VoteReply{Granted: true}
	r.vouch(granted) // the pre-vote
	voting()
	r.vouch(granted)
}

// A leader that has lost its majority and reaches the Kubernetes API is on record there, until it has it again.
func TestALeaderHoldsOnAsLongAsItIsAlone(t *testing.T) {
	t.Parallel()
	r := served(t)
	r.api.Voter = "uid"
	r.pass(5 * time.Second)
	if r.api.ReadLease != 4 || len(wants[Fence](r)) > 0 || !r.Peer().Leading {
		t.Fatalf("on record is %+v: %s", r.api, r.Instance)
	}
	r.others(asIs)
	r.pass(500 * time.Millisecond)
	r.others(asIs)
	if r.api.ReadLease != 0 {
		t.Errorf("term %d still has the read lease", r.api.ReadLease)
	}
}

func TestALeaderDoesNotHoldOnOnceAnotherIsElected(t *testing.T) {
	t.Parallel()
	r := served(t)
	r.api = ha.HardState{Voter: "uid", Ballot: ha.Ballot{Term: 5, Leader: "db-1"}}
	r.pass(3 * time.Second)
	if r.api.ReadLease != 0 || len(wants[Fence](r)) == 0 {
		t.Errorf("on record is %+v: %s", r.api, r.Instance)
	}
}
