package agent

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	"toban.dev/internal/ha"
	"toban.dev/internal/protocol"
)

// lease is a Cluster with what is on record alone.
type lease struct {
	Cluster
	mutex  sync.Mutex
	memory ha.Memory
	away   bool
	// conflicts is how many changes are still to fail because of another.
	conflicts, asked int
	// releases is the question at which nobody holds on any more.
	releases int
}

var errAway = errors.New("it is away")

func (l *lease) Witness(ctx context.Context) (ha.Memory, error) {
	return l.Change(ctx, func(m ha.Memory) (ha.Memory, bool) { return m, false })
}

func (l *lease) Change(_ context.Context, change func(ha.Memory) (ha.Memory, bool)) (ha.Memory, error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.asked++
	if l.away {
		return ha.Memory{}, errAway
	}
	if l.conflicts > 0 {
		l.conflicts--
		return ha.Memory{}, errOvertaken
	}
	if l.asked == l.releases {
		l.memory.Holding = 0
	}
	if next, ok := change(l.memory); ok {
		l.memory = next
	}
	return l.memory, nil
}

func (l *lease) holding() uint64 {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.memory.Holding
}

func TestALeaderHoldsOnAsLongAsItIsAlone(t *testing.T) {
	t.Parallel()
	l := &lease{memory: ha.Memory{Ballot: ha.Ballot{Term: 4, Leader: "db-0"}}, conflicts: 2}
	w := &witness{cluster: l, wake: make(chan struct{}, 1), changed: func() {}}
	go func() { _ = w.run(t.Context()) }()
	w.hold(4, true)
	w.want(true)
	eventually(t, "it holds on", func() bool { return l.holding() == 4 && w.last().holding == 4 })
	w.hold(4, false)
	eventually(t, "it no longer does", func() bool { return l.holding() == 0 && w.last().holding == 0 && w.released.Load() == 0 })
}

func TestALeaderDoesNotHoldOnOnceAnotherIsElected(t *testing.T) {
	t.Parallel()
	l := &lease{memory: ha.Memory{Ballot: ha.Ballot{Term: 5, Leader: "db-1"}}}
	w := &witness{cluster: l, wake: make(chan struct{}, 1), changed: func() {}}
	w.hold(4, true)
	w.look(t.Context())
	if l.holding() != 0 || w.last().ballot.Term != 5 {
		t.Errorf("term %d holds on, and %v was seen", l.holding(), w.last().ballot)
	}
}

// winner is an agent that has won term 5, and may have overtaken a leader that holds on.
func winner(t *testing.T, l *lease) *Agent {
	t.Helper()
	m, err := openMemory("db-1", t.TempDir(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	a := &Agent{Options: Options{Name: "db-1", Cluster: l, Log: slog.New(slog.DiscardHandler)}, memory: m, tasks: make(chan func(context.Context)),
		peers: &peers{members: func() []protocol.Member { return nil }}, server: nil}
	a.witness = &witness{cluster: l, wake: make(chan struct{}, 1), changed: func() {}}
	a.watch.overtakes = 5
	if _, err := m.Change(func(m *ha.Memory) bool {
		m.Ballot, m.Won = ha.Ballot{Term: 5, Leader: "db-1"}, 5
		m.Record = ha.Record{Term: 5, Version: 1, Now: ha.Quorum{Voters: []ha.Voter{m.Voter}, Acknowledgements: 1}}
		return true
	}); err != nil {
		t.Fatal(err)
	}
	return a
}

func TestAWinnerWaitsForALeaderThatHoldsOn(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		lease     *lease
		overtakes uint64
		may       bool
		atLeast   time.Duration
		asked     int // at least, where it waits
	}{
		"nobody holds on":               {&lease{memory: ha.Memory{Ballot: ha.Ballot{Term: 4, Leader: "db-0"}}}, 5, true, 0, 1},
		"the one before does":           {&lease{memory: ha.Memory{Ballot: ha.Ballot{Term: 4, Leader: "db-0"}, Holding: 4}}, 5, true, ha.OvertakeWait, 1},
		"the one before stops":          {&lease{memory: ha.Memory{Ballot: ha.Ballot{Term: 4, Leader: "db-0"}, Holding: 4}, releases: 2}, 5, true, 0, 2},
		"somebody changes it meanwhile": {&lease{memory: ha.Memory{Holding: 4}, conflicts: 3}, 5, true, ha.OvertakeWait, 4},
		"a later term is on record":     {&lease{memory: ha.Memory{Ballot: ha.Ballot{Term: 6, Leader: "db-2"}, Holding: 4}}, 5, false, 0, 1},
		"the API is away":               {&lease{away: true}, 5, true, 0, 1},
		"the one before has ended":      {&lease{memory: ha.Memory{Holding: 4}}, 0, true, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := c.lease
			a := winner(t, l)
			a.watch.overtakes = c.overtakes
			began := time.Now()
			may, err := a.overtake(t.Context())
			if err != nil || may != c.may || time.Since(began) < c.atLeast || l.asked < c.asked || l.asked > c.asked && c.atLeast == 0 {
				t.Errorf("may %v after %s, asked %d times: %v", may, time.Since(began), l.asked, err)
			}
		})
	}
}

// While a winner waits, it does what others ask for; and when that is a vote for a later term, it leads no more.
func TestAWinnerThatWaitsMayBeOvertakenItself(t *testing.T) {
	t.Parallel()
	a := winner(t, &lease{memory: ha.Memory{Holding: 4}})
	go func() {
		a.tasks <- func(context.Context) {
			_, err := a.memory.Change(func(m *ha.Memory) bool { m.Ballot = ha.Ballot{Term: 6, Leader: "db-2"}; return true })
			if err != nil {
				t.Error(err)
			}
		}
	}()
	if may, err := a.overtake(t.Context()); may || err != nil {
		t.Errorf("it may lead: %v, %v", may, err)
	}
}

// Who is overtaken is released when its server has stopped, and not as soon as it knows.
func TestAnOvertakenPrimaryIsReleasedWhenItHasStopped(t *testing.T) {
	t.Parallel()
	a := winner(t, &lease{})
	m, err := a.memory.Change(func(m *ha.Memory) bool { m.Ballot = ha.Ballot{Term: 6, Leader: "db-2"}; return true })
	if err != nil {
		t.Fatal(err)
	}
	a.witness.seen.Store(&sighting{at: time.Now(), ballot: m.Ballot, holding: 5})
	local := ha.Local{Memory: m, Server: ha.ServerPrimary}
	a.observeQuorum(ha.Wish{}, &local)
	if released := a.witness.released.Load(); released != 0 || local.Holds {
		t.Errorf("its server runs, and term %d is released; holds: %v", released, local.Holds)
	}
	local.Server = ha.ServerStopped
	a.observeQuorum(ha.Wish{}, &local)
	if released := a.witness.released.Load(); released != 5 || !a.witness.wanted.Load() {
		t.Errorf("its server has stopped, and term %d is released", released)
	}
}

// Others hear that a candidate was not elected, until it stands for a later term.
func TestWhoWasNotElectedSaysSo(t *testing.T) {
	t.Parallel()
	a := winner(t, &lease{})
	for _, step := range []struct {
		ballot   ha.Ballot
		describe bool // the role loop decides anew; it does not while the candidate asks for votes
		defeated bool
	}{
		{ha.Ballot{Term: 5, Leader: "db-1"}, true, false},
		{ha.Ballot{Term: 6, Leader: "db-1"}, false, false},
		{ha.Ballot{Term: 6, Leader: "db-1"}, true, true},
		{ha.Ballot{Term: 7, Leader: "db-1"}, false, false},
		{ha.Ballot{Term: 8, Leader: "db-2"}, true, false},
	} {
		m, err := a.memory.Change(func(m *ha.Memory) bool { m.Ballot = step.ballot; return true })
		if err != nil {
			t.Fatal(err)
		}
		if step.describe {
			a.describe(ha.View{Self: a.Name, Local: ha.Local{Memory: m}}, ha.Decision{})
		}
		if peer := asPeer(a.word()); peer.Defeated != step.defeated || peer.Ballot != step.ballot {
			t.Errorf("%+v: others hear of %+v that it is defeated: %v", step, peer.Ballot, peer.Defeated)
		}
	}
}
