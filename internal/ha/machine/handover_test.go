package machine

import (
	"encoding/json"
	"math/rand/v2"
	"testing"
	"time"

	"toban.dev/internal/ha"
)

// takenOver is what the next program goes on with, as much later.
func (r *rig) takenOver(after time.Duration) *rig {
	r.Helper()
	h, busy := r.HandOver(r.now)
	if busy != "" {
		r.Fatalf("it does not hand over: %s: %s", busy, r.Instance)
	}
	text, err := json.Marshal(h)
	if err != nil {
		r.Fatal(err)
	}
	h = Handover{}
	if err := json.Unmarshal(text, &h); err != nil {
		r.Fatal(err)
	}
	if !h.Fits(r.HardState()) {
		r.Fatalf("the handover does not fit what it was made of: %s", text)
	}
	next := &rig{T: r.T, now: r.now + after, holds: r.holds, done: r.done, api: r.api, away: r.away}
	next.Instance = New(Options{
		Name: r.name, Boot: "2", HardState: r.HardState(), Rules: DefaultRules(), Limits: ha.OwnLimits(), Now: next.now,
		Config: r.config, Random: rand.New(rand.NewPCG(1, 2)), // #nosec G404 -- a test must be repeatable
		Handover: &h,
	})
	return next
}

// rest has the quorum be as it is to be, and nothing under way.
func (r *rig) rest() {
	r.Helper()
	for range 8 {
		r.others(func(p *ha.Peer) { p.Streaming = true })
		r.step(ServerSeen{Run: r.server.run, Answers: true, Standbys: voters[1:]})
		r.pass(100 * time.Millisecond)
	}
}

func TestALeaderThatIsTakenOverLeadsOn(t *testing.T) {
	t.Parallel()
	r := served(t)
	r.rest()
	next := r.takenOver(200 * time.Millisecond)
	for range 20 {
		next.step(ServerSeen{Run: next.server.run, Answers: true, Standbys: voters[1:]})
		next.others(asIs)
		next.pass(100 * time.Millisecond)
	}
	if len(wants[Fence](next)) > 0 || len(wants[Command](next)) > 0 || len(wants[AskVote](next)) > 0 {
		t.Fatalf("it does more than lead on: %v", next.wanted)
	}
	if !next.Peer().Leading || next.Decision().Action != ha.Lead {
		t.Fatalf("it does not lead: %s", next)
	}
}

// What was heard does not get younger by being handed over.
func TestTheFenceIsNotPutOffByAnExchange(t *testing.T) {
	t.Parallel()
	for _, after := range []time.Duration{0, 300 * time.Millisecond, 900 * time.Millisecond, 5 * time.Second} {
		r := served(t)
		r.rest()
		r.away = true // no read lease
		heard := r.now
		next := r.takenOver(after)
		next.step(Tick{})
		for len(wants[Fence](next)) == 0 {
			if next.now > heard+10*time.Second {
				t.Fatalf("it is never fenced: %s", next)
			}
			next.pass(10 * time.Millisecond)
		}
		latest := max(heard+ha.FenceLimit, heard+after) + 20*time.Millisecond
		if next.now > latest {
			t.Errorf("taken over after %s, it is fenced %s after what it heard last", after, next.now-heard)
		}
	}
}

func TestAStandbyThatIsTakenOverStreamsOn(t *testing.T) {
	t.Parallel()
	r := newRig(t, memoryOf("db-1.b", 4, "db-0"))
	follow := func(r *rig) {
		r.others(asIs)
		r.step(ServerSeen{Run: r.server.run, Following: 4, Answers: true, Streaming: true, Received: 90})
		r.pass(100 * time.Millisecond)
	}
	for range 5 {
		follow(r)
	}
	next := r.takenOver(400 * time.Millisecond)
	next.step(Tick{})
	for range 5 {
		follow(next)
	}
	if len(wants[Fence](next)) > 0 || len(wants[Command](next)) > 0 {
		t.Fatalf("it does more than stream on: %v", next.wanted)
	}
	// A leader that is silent from now on is waited for as long as after a restart.
	silent := next.now
	for !next.View().LeaderLost() {
		next.pass(10 * time.Millisecond)
	}
	if waited := next.now - silent; waited < ha.SilenceLimit-300*time.Millisecond {
		t.Errorf("the leader is lost after %s", waited)
	}
}

func TestNothingIsHandedOverInTheMiddle(t *testing.T) {
	t.Parallel()
	never := func(Effect) bool { return true }
	for name, middle := range map[string]func(*rig){
		"it is to resign":             func(r *rig) { r.holds = never; r.step(ResignAsked{}) },
		"it is to stop":               func(r *rig) { r.holds = never; r.step(LeaveAsked{}) },
		"it is to restart its server": func(r *rig) { r.holds = never; r.step(RestartAsked{}) },
		"the server does not answer":  func(r *rig) { r.step(ServerSeen{Run: r.server.run, Failure: "it hangs"}) },
		"the volume is slow":          func(r *rig) { r.step(VolumeSeen{Unwritten: ha.SlowLimit}) },
		"no majority answers":         func(r *rig) { r.pass(ha.AnswerLimit) },
		"the hard state is written":   func(r *rig) { r.holds = never; r.store(r.HardState(), nil) },
		"the rule of commits changes": func(r *rig) { r.holds = never; r.demand(r.rule(), false, false, nil) },
		"it is being fenced":          func(r *rig) { r.holds = never; r.fenceServer("test") },
		"a later term has been elected": func(r *rig) {
			r.other("db-1.b", func(p *ha.Peer) { p.Ballot.Term, p.Leading = 9, true })
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := served(t)
			r.rest()
			if _, busy := r.HandOver(r.now); busy != "" {
				t.Fatalf("at rest it says that %s", busy)
			}
			middle(r)
			if _, busy := r.HandOver(r.now); busy == "" {
				t.Errorf("it hands over: %s", r)
			}
		})
	}
}

// A handover does not go with another hard state.
func TestAHandoverFitsOneHardState(t *testing.T) {
	t.Parallel()
	r := served(t)
	r.rest()
	h, busy := r.HandOver(r.now)
	if busy != "" {
		t.Fatal(busy)
	}
	for name, change := range map[string]func(*ha.HardState){
		"a later term":        func(m *ha.HardState) { m.Ballot.Term++ },
		"a promise":           func(m *ha.HardState) { m.Ballot.Leader = "db-1" },
		"another voter":       func(m *ha.HardState) { m.Voter = "db-0.z" },
		"a term that was won": func(m *ha.HardState) { m.Won-- },
	} {
		m := r.HardState()
		if change(&m); h.Fits(m) {
			t.Errorf("it fits a hard state with %s", name)
		}
	}
}
