package machine

import (
	"math/rand/v2"
	"testing"
	"time"

	"toban.dev/internal/ha"
)

// rig is an instance among three, and what it wants. Its disk and its server do what they are told at
// once, unless they are held.
type rig struct {
	*testing.T
	*Instance
	now time.Duration
	// wanted are all effects so far.
	wanted []Effect
	// holds says which effects are not carried out.
	holds func(Effect) bool
	// done is what a command ends with.
	done func(Command) Done
	// api is what is on record at the witness, away that it does not answer.
	api  ha.HardState
	away bool
}

var voters = []ha.Voter{"db-0.a", "db-1.b", "db-2.c"}

// memoryOf is the hard state of an instance that has seen a leader of a term.
func memoryOf(voter ha.Voter, term uint64, leader string) ha.HardState {
	m := ha.HardState{
		Voter: voter, Ballot: ha.Ballot{Term: term, Leader: leader},
		Configuration: ha.Configuration{Term: term, Version: 3, Now: ha.Quorum{Voters: voters, Acknowledgements: 2}},
		TermHistory:   []ha.TermStart{{Term: term, LSN: 0, Timeline: 1}},
	}
	if leader == voter.Instance() {
		m.Won = term
	}
	return m
}

func newRig(t *testing.T, m ha.HardState) *rig {
	t.Helper()
	r := &rig{T: t, now: time.Hour, holds: func(Effect) bool { return false }}
	r.done = func(Command) Done { return Done{End: 100, Timeline: 2, Begins: 100} }
	r.Instance = New(Options{
		Name: m.Voter.Instance(), Boot: "1", HardState: m, Rules: DefaultRules(), Limits: ha.OwnLimits(), Now: r.now,
		Config: Config{Members: []string{"db-0", "db-1", "db-2"}, SystemIdentifier: "7", Witness: "uid", API: true},
		Random: rand.New(rand.NewPCG(1, 2)), // #nosec G404 -- a test must be repeatable
	})
	r.step(DataSeen{Data: ha.DataPresent, SystemIdentifier: "7", Room: true})
	return r
}

// step has the instance take in an event, and carries out what it wants.
func (r *rig) step(e Event) {
	r.Helper()
	for _, effect := range r.Step(r.now, e) {
		r.wanted = append(r.wanted, effect)
		if !r.holds(effect) {
			r.carryOut(effect)
		}
	}
}

// hold has the first command of a kind take until it is carried out.
func (r *rig) hold(kind Kind) (held *Effect) {
	held = new(Effect)
	r.holds = func(e Effect) bool {
		c, is := e.(Command)
		first := is && c.Kind == kind && *held == nil
		if first {
			*held = e
		}
		return first
	}
	return held
}

func (r *rig) carryOut(effect Effect) {
	switch e := effect.(type) {
	case Store:
		r.step(Stored{ID: e.ID})
	case Fence:
		r.step(Done{ID: e.ID})
	case Demand:
		r.step(Done{ID: e.ID})
	case Command:
		d := r.done(e)
		d.ID = e.ID
		r.step(d)
	case AskWitness:
		next, answer := e.Operation.Apply(r.api)
		if !r.away && answer.Granted {
			r.api = next
		}
		r.step(WitnessAnswered{ID: e.ID, Asked: r.now, HardState: r.api, Answer: answer, Failed: r.away})
	}
}

// exactly is when what is done again after an interval is due, where nothing aligns it.
func exactly(interval time.Duration) time.Duration { return interval }

// pass has time pass.
func (r *rig) pass(d time.Duration) {
	r.Helper()
	for end := r.now + d; r.now < end; {
		r.now = min(r.now+r.Wake(exactly), end)
		r.step(Tick{})
	}
}

// others is what the other two say of themselves, asked a moment ago.
func (r *rig) others(change func(*ha.Peer)) {
	r.Helper()
	for _, v := range voters {
		if v != r.HardState().Voter {
			r.other(v, change)
		}
	}
}

func (r *rig) other(v ha.Voter, change func(*ha.Peer)) {
	r.Helper()
	b := r.HardState().Ballot
	p := ha.Peer{
		Voter: v, Data: ha.DataPresent, SystemIdentifier: "7", Ballot: b,
		TermHistory: []ha.TermStart{{Term: 4, LSN: 0, Timeline: 1}}, Position: ha.Position{Term: 4, LSN: 90},
	}
	p.Leading, p.Streaming, p.Eligible = b.Leader == v.Instance(), b.Leader != v.Instance(), b.Leader != v.Instance()
	change(&p)
	r.said++
	r.step(PeerAnswered{Status: PeerStatus{Name: v.Instance(), Boot: "1", Number: r.said, Peer: p}, Asked: r.now})
}

func asIs(*ha.Peer) {}

// served is the rig of a leader whose server runs and takes writes.
func served(t *testing.T) *rig {
	t.Helper()
	r := newRig(t, memoryOf("db-0.a", 4, "db-0"))
	r.others(asIs)
	r.step(ServerSeen{Run: r.server.run, Answers: true})
	r.vouch(ha.VoteReply{Granted: true, Ballot: r.HardState().Ballot})
	r.step(ServerSeen{Run: r.server.run, Answers: true, Standbys: voters[1:]})
	if !r.server.open {
		t.Fatalf("it does not serve: %s", r)
	}
	return r
}

// vouch has the other two answer the question that is being asked.
func (r *rig) vouch(reply ha.VoteReply) {
	r.Helper()
	p := r.currentPoll()
	if p == nil {
		r.Fatalf("it asks nobody: %s", r.Instance)
	}
	for _, v := range voters {
		if v != r.HardState().Voter {
			r.step(VoteAnswered{Round: p.round, Voter: v, Reply: reply})
		}
	}
}

// wants are the effects of a kind so far.
func wants[E Effect](r *rig) []E {
	var all []E
	for _, effect := range r.wanted {
		if e, ok := effect.(E); ok {
			all = append(all, e)
		}
	}
	return all
}

// commanded says whether a command was given.
func (r *rig) commanded(kind Kind) bool {
	for _, c := range wants[Command](r) {
		if c.Kind == kind {
			return true
		}
	}
	return false
}
