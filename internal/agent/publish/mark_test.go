package publish

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// marks is a cluster that remembers how it was marked.
type marks struct {
	Cluster
	all   []bool
	fails bool
}

func (m *marks) MarkReadOnly(_ context.Context, readOnly bool) error {
	if m.fails {
		return errors.New("the API is away")
	}
	m.all = append(m.all, readOnly)
	return nil
}

// What an agent before has marked is put right, each change is told once, and tried until it works.
func TestAnInstanceIsMarked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, end := context.WithCancel(t.Context())
		cluster, readOnly := &marks{fails: true}, false
		log := slog.New(slog.DiscardHandler)
		marker := Marker{Cluster: cluster, ReadOnly: func() bool { return readOnly }, Log: log}
		done := make(chan error)
		go func() { done <- marker.Run(ctx) }()
		after := func(want ...bool) {
			t.Helper()
			time.Sleep(3 * markInterval)
			synctest.Wait()
			if !slices.Equal(cluster.all, want) {
				t.Errorf("it was marked %v, want %v", cluster.all, want)
			}
		}
		after()
		cluster.fails = false
		after(false)
		readOnly = true
		after(false, true)
		readOnly, cluster.fails = false, true
		after(false, true)
		cluster.fails = false
		after(false, true, false)
		end()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
