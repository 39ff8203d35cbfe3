package agent

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"toban.dev/internal/agent/pause"
	"toban.dev/internal/agent/volume"
	"toban.dev/internal/ha"
	"toban.dev/internal/protocol"
)

// labels is a Cluster that knows one Pod's label.
type labels struct {
	Cluster
	mutex     sync.Mutex
	role      protocol.Role
	published int
}

func (l *labels) Publish(_ context.Context, role protocol.Role, _ []string) error {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.role = role
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

// publisher is an agent of which only the publisher runs, with wishes as often as a tender has them.
func publisher(t *testing.T) (*Agent, *labels) {
	t.Helper()
	m, err := volume.OpenMemory("db-0", t.TempDir(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	cluster := &labels{}
	a := &Agent{Options: Options{Name: "db-0", Cluster: cluster, Log: slog.New(slog.DiscardHandler)}, memory: m, publish: make(chan protocol.Role, 1), peers: &peers{members: func() []protocol.Member { return nil }}}
	go func() { _ = a.publishLoop(t.Context()) }()
	go func() {
		for pause.For(t.Context(), time.Millisecond) {
			a.wantPublished(protocol.RolePrimary)
		}
	}()
	return a, cluster
}

func (a *Agent) ballot(t *testing.T, b ha.Ballot, won uint64) {
	t.Helper()
	if _, err := a.memory.Change(func(m *ha.Memory) bool { m.Ballot, m.Won = b, won; return true }); err != nil {
		t.Fatal(err)
	}
}

func eventually(t *testing.T, what string, so func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !so(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it did not come true that " + what)
		}
	}
}

// A primary that has just learnt of a later term is still a primary for the moment that its server needs to stop. It published itself then, took
// the label from the new primary, and the Services had nobody.
func TestAPrimaryOfAFormerTermPublishesNothing(t *testing.T) {
	a, cluster := publisher(t)
	a.ballot(t, ha.Ballot{Term: 1, Leader: "db-0"}, 1)
	eventually(t, "it is published", func() bool { return cluster.times() == 1 })
	a.ballot(t, ha.Ballot{Term: 2, Leader: "db-1"}, 1)
	time.Sleep(50 * time.Millisecond) // dozens of wishes
	if n := cluster.times(); n != 1 {
		t.Errorf("it has published %d times, the later ones as the primary of a term that is another's", n)
	}
	a.ballot(t, ha.Ballot{Term: 3, Leader: "db-0"}, 3)
	eventually(t, "it is published again in a term of its own", func() bool { return cluster.times() == 2 })
}

func TestAPrimaryWhoseLabelIsTakenPublishesItselfAgain(t *testing.T) {
	a, cluster := publisher(t)
	a.ballot(t, ha.Ballot{Term: 1, Leader: "db-0"}, 1)
	eventually(t, "it is published", func() bool { return cluster.times() == 1 })
	cluster.mutex.Lock()
	cluster.role = protocol.RoleStandby
	cluster.mutex.Unlock()
	eventually(t, "it is published again", func() bool { return cluster.times() == 2 })
}
