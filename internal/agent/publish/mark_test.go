package publish

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"toban.dev/internal/naming"
)

// marks is a cluster that remembers how it was marked, and the volume of which the marks are. The marker runs beside
// the test.
type marks struct {
	Cluster
	mutex sync.Mutex
	all   []string
	fails bool
	room  string
}

// be has it be so with the volume, and with the API.
func (m *marks) be(room string, fails bool) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.room, m.fails = room, fails
}

func (m *marks) ofVolume() string {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return m.room
}

func (m *marks) marked() []string {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return slices.Clone(m.all)
}

func (m *marks) MarkRoom(_ context.Context, room string) error {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if m.fails {
		return errors.New("the API is away")
	}
	m.all = append(m.all, room)
	return nil
}

// What an agent before has marked is put right, each change is told once, and tried until it works.
func TestAnInstanceIsMarked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, end := context.WithCancel(t.Context())
		cluster := &marks{fails: true}
		log := slog.New(slog.DiscardHandler)
		marker := Marker{Cluster: cluster, Room: cluster.ofVolume, Log: log}
		done := make(chan error)
		go func() { done <- marker.Run(ctx) }()
		after := func(want ...string) {
			t.Helper()
			time.Sleep(3 * markInterval)
			synctest.Wait()
			if got := cluster.marked(); !slices.Equal(got, want) {
				t.Errorf("it was marked %v, want %v", got, want)
			}
		}
		after()
		cluster.be("", false)
		after("")
		cluster.be(naming.RoomShort, false)
		after("", "short")
		cluster.be("", true)
		after("", "short")
		cluster.be("", false)
		after("", "short", "")
		end()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
