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

// podLabels is a cluster that remembers which Pods bear the label, and how often one was set. It also has what is
// wanted of them. Who sets the labels runs beside the test.
type podLabels struct {
	Cluster
	mutex sync.Mutex
	bear  map[string]bool
	set   int
	away  bool
	wants map[string]Passes
}

// change changes what there is, or what is wanted.
func (l *podLabels) change(to func(l *podLabels)) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	to(l)
}

// want has this be wanted from now on.
func (l *podLabels) want(of map[string]Passes) { l.change(func(l *podLabels) { l.wants = of }) }

// countAnew counts from now on how often a label is set.
func (l *podLabels) countAnew() { l.change(func(l *podLabels) { l.set = 0 }) }

func (l *podLabels) wanted() map[string]Passes {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.wants
}

// now is who bears the label, and how often one was set.
func (l *podLabels) now() (bear map[string]bool, set int) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return maps.Clone(l.bear), l.set
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
		cluster := &podLabels{bear: map[string]bool{"c": true}, away: true}
		relays := &Relays{Cluster: cluster, Wanted: cluster.wanted, Log: slog.New(slog.DiscardHandler)}
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
			if bear, _ := cluster.now(); !maps.Equal(bear, set) {
				t.Errorf("the label is on %v, want %v", bear, set)
			}
		}
		after(time.Second, "c") // it does not lead, and says nothing
		cluster.want(map[string]Passes{"a": {"1", true}, "b": {"1", true}, "c": {"1", false}})
		after(time.Second, "c") // the API is away
		cluster.change(func(l *podLabels) { l.away = false })
		after(2*relaysInterval, "a", "b")

		cluster.change(func(l *podLabels) { l.bear["c"] = true }) // a former leader says something else
		after(3*time.Second, "a", "b")
		cluster.want(map[string]Passes{"a": {"1", true}, "b": {"1", true}, "c": {"2", true}})
		after(2*relaysInterval, "a", "b", "c")
		cluster.change(func(l *podLabels) { delete(l.bear, "c") }) // its Pod is another
		cluster.want(map[string]Passes{"a": {"1", true}, "b": {"1", true}, "c": {"3", true}})
		after(2*relaysInterval, "a", "b", "c")

		cluster.countAnew()
		after(10*time.Minute, "a", "b", "c")
		if _, set := cluster.now(); set > 40 {
			t.Errorf("the label was set %d times in ten minutes in which nothing happened", set)
		}
		cluster.want(nil) // another leads
		cluster.countAnew()
		after(10*time.Minute, "a", "b", "c")
		if _, set := cluster.now(); set != 0 {
			t.Errorf("one that does not lead has set the label %d times", set)
		}
		end()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
