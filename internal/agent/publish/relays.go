package publish

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"toban.dev/internal/pause"
)

// relaysInterval is how often a leader looks which instances pass clients on.
const relaysInterval = 250 * time.Millisecond

// Passes is one instance, and whether clients are to come to it: it passes them on, and the leader hears it.
type Passes struct {
	// Boot is another one for each start of its agent: a new Pod bears no label.
	Boot  string
	Leads bool
}

// Relays has the Service lead to the instances that pass clients on. The leader says so of all, for one that it does
// not hear can't.
type Relays struct {
	// Cluster is nil where there is none.
	Cluster Cluster
	// Wanted is what is to be said of each instance, by name; nil where it is not for this one to say.
	Wanted func() map[string]Passes
	Log    *slog.Logger

	said map[string]Passes
	// again is when all is said again, in case that a former leader has said something else; pause how long that was.
	again time.Time
	pause time.Duration
}

// Run says what is wanted, until ctx ends.
func (r *Relays) Run(ctx context.Context) error {
	if r.Cluster == nil {
		<-ctx.Done()
		return nil
	}
	for told := ""; pause.Every(ctx, relaysInterval); {
		failed := r.say(ctx, r.Wanted())
		if failed != "" && failed != told {
			r.Log.Warn("the Service could not be told which instances pass clients on", "error", failed)
		}
		told = failed
	}
	return nil
}

// say says what has changed, and from time to time all of it. It returns what failed.
func (r *Relays) say(ctx context.Context, wanted map[string]Passes) (failed string) {
	if wanted == nil {
		r.said = nil
		return ""
	}
	now := time.Now()
	if r.said == nil {
		r.said, r.pause, r.again = map[string]Passes{}, firstCheck, now.Add(firstCheck)
	}
	if now.After(r.again) {
		r.pause = min(2*r.pause, lastCheck)
		r.said, r.again = map[string]Passes{}, now.Add(r.pause)
	}
	var changed []string
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		if said, known := r.said[name]; !known || said != wanted[name] {
			changed = append(changed, name)
		}
	}
	if len(changed) == 0 {
		return ""
	}
	return r.sayOf(ctx, changed, wanted)
}

// sayOf says how it is with some instances, side by side: clients wait for it.
func (r *Relays) sayOf(ctx context.Context, names []string, wanted map[string]Passes) (failed string) {
	ctx, cancel := context.WithTimeout(ctx, publishDeadline)
	defer cancel()
	errs := make([]error, len(names))
	var all sync.WaitGroup
	for i, name := range names {
		all.Go(func() { errs[i] = r.Cluster.SetRelay(ctx, name, wanted[name].Leads) })
	}
	all.Wait()
	for i, name := range names {
		if errs[i] != nil {
			failed = errs[i].Error()
			continue
		}
		r.said[name] = wanted[name]
	}
	return failed
}
