package publish

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// podLabels is a cluster that remembers which Pods bear the label, and how often one was set.
type podLabels struct {
	Cluster
	mutex sync.Mutex
	bear  map[string]bool
	set   int
	away  bool
}

func (l *podLabels) SetRelay(_ context.Context, instance string, leads bool) error {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.away {
		return errors.New("the API is away")
	}
	l.set++
	if l.bear[instance] = leads; !leads {
		delete(l.bear, instance)
	}
	return nil
}

func TestTheServiceLeadsToWhoPassesClientsOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, end := context.WithCancel(t.Context())
		cluster, wanted := &podLabels{bear: map[string]bool{"c": true}, away: true}, map[string]Passes(nil)
		relays := &Relays{
			Cluster: cluster, Wanted: func() map[string]Passes { return wanted }, Log: slog.New(slog.DiscardHandler),
		}
		done := make(chan error)
		go func() { done <- relays.Run(ctx) }()
		after := func(wait time.Duration, want ...string) {
			t.Helper()
			time.Sleep(wait)
			synctest.Wait()
			set := map[string]bool{}
			for _, name := range want {
				set[name] = true
			}
			if !maps.Equal(cluster.bear, set) {
				t.Errorf("the label is on %v, want %v", cluster.bear, set)
			}
		}
		after(time.Second, "c") // it does not lead, and says nothing
		wanted = map[string]Passes{"a": {"1", true}, "b": {"1", true}, "c": {"1", false}}
		after(time.Second, "c") // the API is away
		cluster.away = false
		after(2*relaysInterval, "a", "b")

		cluster.bear["c"] = true // a former leader says something else
		after(3*time.Second, "a", "b")
		wanted = map[string]Passes{"a": {"1", true}, "b": {"1", true}, "c": {"2", true}}
		after(2*relaysInterval, "a", "b", "c")
		delete(cluster.bear, "c") // its Pod is another
		wanted = map[string]Passes{"a": {"1", true}, "b": {"1", true}, "c": {"3", true}}
		after(2*relaysInterval, "a", "b", "c")

		cluster.set = 0
		after(10*time.Minute, "a", "b", "c")
		if cluster.set > 40 {
			t.Errorf("the label was set %d times in ten minutes in which nothing happened", cluster.set)
		}
		wanted = nil // another leads
		cluster.set = 0
		after(10*time.Minute, "a", "b", "c")
		if cluster.set != 0 {
			t.Errorf("one that does not lead has set the label %d times", cluster.set)
		}
		end()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
