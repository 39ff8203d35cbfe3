package publish

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"toban.dev/internal/naming"
)

// marks is a cluster that remembers how it was marked.
type marks struct {
	Cluster
	all   []string
	fails bool
}

func (m *marks) MarkRoom(_ context.Context, room string) error {
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
		cluster, room := &marks{fails: true}, ""
		log := slog.New(slog.DiscardHandler)
		marker := Marker{Cluster: cluster, Room: func() string { return room }, Log: log}
		done := make(chan error)
		go func() { done <- marker.Run(ctx) }()
		after := func(want ...string) {
			t.Helper()
			time.Sleep(3 * markInterval)
			synctest.Wait()
			if !slices.Equal(cluster.all, want) {
				t.Errorf("it was marked %v, want %v", cluster.all, want)
			}
		}
		after()
		cluster.fails = false
		after("")
		room = naming.RoomShort
		after("", "short")
		room, cluster.fails = "", true
		after("", "short")
		cluster.fails = false
		after("", "short", "")
		end()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
