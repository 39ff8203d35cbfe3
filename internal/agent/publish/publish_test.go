package publish

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"toban.dev/internal/ha"
	"toban.dev/internal/pause"
	"toban.dev/internal/protocol"
)

// labels is a Cluster that knows one Pod's label.
type labels struct {
	Cluster
	mutex     sync.Mutex
	role      protocol.Role
	published int
	away      bool
	later     bool // a later term is on record
	failed    int
}

func (l *labels) setAway(away bool) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.away = away
}

func (l *labels) failures() int {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.failed
}

func (l *labels) Publish(_ context.Context, wish Wish, _ []string) error {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.later && !wish.Anyway {
		return ErrLaterTerm
	}
	if l.away {
		l.failed++
		return errors.New("the API is away")
	}
	l.role = wish.Role
	l.published++
	return nil
}

func (l *labels) Published(context.Context) (protocol.Role, error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.role, nil
}

func (l *labels) times() int {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.published
}

// publisher publishes for an instance that remembers what it is told to, with wishes as often as a monitor has them.
func publisher(t *testing.T) (*promises, *labels) {
	t.Helper()
	m, cluster := &promises{}, &labels{}
	p := New(Options{
		Name: "db-0", Cluster: cluster, HardState: m.get, Others: func() []string { return nil },
		Role:    func() protocol.Role { return protocol.RolePrimary },
		Deposed: func() {}, Log: slog.New(slog.DiscardHandler),
	})
	go func() { _ = p.Run(t.Context()) }()
	go func() {
		for pause.For(t.Context(), time.Millisecond) {
			p.Want(protocol.RolePrimary)
			m.wishes.Add(1)
		}
	}()
	return m, cluster
}

// promises are what an instance remembers.
type promises struct {
	mutex     sync.Mutex
	hardState ha.HardState
	wishes    atomic.Int64 // how often it was asked for to publish
}

func (p *promises) get() ha.HardState {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.hardState
}

func (p *promises) ballot(b ha.Ballot, won uint64) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.hardState.Ballot, p.hardState.Won = b, won
}

func eventually(t *testing.T, what string, so func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !so(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it did not come true that " + what)
		}
	}
}

// A primary that has just learnt of a later term is still a primary for the moment that its server needs to stop. It
// published itself then, took the label from the new primary, and the Services had nobody.
func TestAPrimaryOfAFormerTermPublishesNothing(t *testing.T) {
	m, cluster := publisher(t)
	m.ballot(ha.Ballot{Term: 1, Leader: "db-0"}, 1)
	eventually(t, "it is published", func() bool { return cluster.times() == 1 })
	m.ballot(ha.Ballot{Term: 2, Leader: "db-1"}, 1)
	before := m.wishes.Load()
	eventually(t, "it was wished dozens of times", func() bool { return m.wishes.Load() > before+50 })
	if n := cluster.times(); n != 1 {
		t.Errorf("it has published %d times, the later ones as the primary of a term that is another's", n)
	}
	m.ballot(ha.Ballot{Term: 3, Leader: "db-0"}, 3)
	eventually(t, "it is published again in a term of its own", func() bool { return cluster.times() == 2 })
}

// A former primary is told when its Pod bears another label: after the API was away, and also by an agent that has
// published nothing itself.
func TestAFormerPrimaryIsToldWhenItIsKnownAsNone(t *testing.T) {
	cluster, m := &labels{role: protocol.RolePrimary}, &promises{}
	var role atomic.Pointer[protocol.Role]
	be := func(r protocol.Role) { role.Store(&r) }
	be(protocol.RoleStandby)
	var deposed atomic.Int32
	p := New(Options{
		Name: "db-0", Cluster: cluster, HardState: m.get, Others: func() []string { return nil },
		Role:    func() protocol.Role { return *role.Load() },
		Deposed: func() { deposed.Add(1) }, Log: slog.New(slog.DiscardHandler),
	})
	go func() { _ = p.Run(t.Context()) }()
	eventually(t, "it is known what was published before", func() bool { return p.published.Load() != nil })
	p.Want(protocol.RoleStandby)
	eventually(t, "it is known as a standby", func() bool { return deposed.Load() == 1 })

	m.ballot(ha.Ballot{Term: 2, Leader: "db-0"}, 2)
	be(protocol.RolePrimary)
	p.Want(protocol.RolePrimary)
	eventually(t, "it leads clients to itself", func() bool { return cluster.times() == 2 })

	cluster.setAway(true)
	be(protocol.RoleStandby)
	p.Want(protocol.RoleStandby)
	eventually(t, "it was tried", func() bool { return cluster.failures() > 0 })
	if deposed.Load() != 1 {
		t.Error("the Services still lead to it as to the primary, and it was told that they do not")
	}
	cluster.setAway(false)
	eventually(t, "the API is back", func() bool { p.Want(protocol.RoleStandby); return deposed.Load() == 2 })
}

// A later term that is on record, and of which no instance tells, was written by hand: the primary lets it count for a
// while only. Else the Services would lead to nobody for ever.
func TestALaterTermOnRecordCountsForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, end := context.WithCancel(t.Context())
		m, cluster := &promises{}, &labels{later: true}
		m.ballot(ha.Ballot{Term: 1, Leader: "db-0"}, 1)
		p := New(Options{
			Name: "db-0", Cluster: cluster, HardState: m.get, Others: func() []string { return nil },
			Role:    func() protocol.Role { return protocol.RolePrimary },
			Deposed: func() {}, Log: slog.New(slog.DiscardHandler),
		})
		done := make(chan error)
		go func() { done <- p.Run(ctx) }()
		after := func(d time.Duration, want int) {
			t.Helper()
			for began := time.Now(); time.Since(began) < d; time.Sleep(500 * time.Millisecond) {
				p.Want(protocol.RolePrimary)
			}
			synctest.Wait()
			if n := cluster.times(); n != want {
				t.Errorf("it was published %d times, and not %d", n, want)
			}
		}
		after(laterLasts-time.Second, 0)
		after(4*time.Second, 1)
		end()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestAPrimaryPublishesItselfAgainWhenItIsAskedTo(t *testing.T) {
	m, cluster := &promises{}, &labels{}
	m.ballot(ha.Ballot{Term: 1, Leader: "db-0"}, 1)
	p := New(Options{
		Name: "db-0", Cluster: cluster, HardState: m.get, Others: func() []string { return nil },
		Role:    func() protocol.Role { return protocol.RolePrimary },
		Deposed: func() {}, Log: slog.New(slog.DiscardHandler),
	})
	go func() { _ = p.Run(t.Context()) }()
	for n := 1; n < 3; n++ {
		eventually(t, "it is published", func() bool {
			p.Want(protocol.RolePrimary)
			return cluster.times() == n
		})
		p.Again()
	}
}

func TestAPrimaryWhoseLabelIsTakenPublishesItselfAgain(t *testing.T) {
	m, cluster := publisher(t)
	m.ballot(ha.Ballot{Term: 1, Leader: "db-0"}, 1)
	eventually(t, "it is published", func() bool { return cluster.times() == 1 })
	cluster.mutex.Lock()
	cluster.role = protocol.RoleStandby
	cluster.mutex.Unlock()
	eventually(t, "it is published again", func() bool { return cluster.times() == 2 })
}
