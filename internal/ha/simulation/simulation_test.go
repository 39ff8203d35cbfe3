package simulation

import (
	"flag"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

var (
	oneSeed   = flag.Uint64("seed", 0, "run this schedule alone and print what happens")
	schedules = flag.Int("schedules", 10_000, "how many schedules to run")
	first     = flag.Uint64("first", 1, "the first schedule")
)

// sweep runs schedules on all cores until one fails, and says which and how many ran.
func sweep(broken Breakage, from, to uint64, see func(Result)) (failed, ran uint64) {
	var next, worst, count atomic.Uint64
	next.Store(from)
	worst.Store(^uint64(0))
	var group sync.WaitGroup
	var lock sync.Mutex
	for range runtime.GOMAXPROCS(0) {
		group.Go(func() {
			for {
				seed := next.Add(1) - 1
				if seed >= to || seed > worst.Load() {
					return
				}
				r := Run(seed, broken, false)
				count.Add(1)
				lock.Lock()
				if see != nil {
					see(r)
				}
				if r.Failure != "" && seed < worst.Load() {
					worst.Store(seed)
				}
				lock.Unlock()
			}
		})
	}
	group.Wait()
	return worst.Load(), count.Load()
}

func TestSimulation(t *testing.T) {
	if *oneSeed != 0 {
		replay(t, *oneSeed)
		return
	}
	total := *schedules
	if testing.Short() {
		total = min(total, 1000)
	}
	var sum Result
	exempt := 0
	start := time.Now()
	failed, ran := sweep(Whole, *first, *first+uint64(total), func(r Result) { // #nosec G115 -- a count
		sum.Acknowledged += r.Acknowledged
		sum.Terms += r.Terms
		sum.Changes += r.Changes
		sum.Time += r.Time
		if r.Exempt {
			exempt++
		}
	})
	t.Logf("%d schedules in %s: %d terms, %d records, %d acknowledged writes, %s of virtual time; %d lost too much to go on",
		ran, time.Since(start).Round(time.Millisecond), sum.Terms, sum.Changes, sum.Acknowledged, sum.Time.Round(time.Hour), exempt)
	if failed != ^uint64(0) {
		replay(t, failed)
	}
}

// replay runs one schedule and prints its last events, when it fails or is asked for alone.
func replay(t *testing.T, seed uint64) {
	t.Helper()
	r := Run(seed, Whole, true)
	trace := r.Trace
	if *oneSeed == 0 {
		trace = trace[max(0, len(trace)-60):]
	}
	if r.Failure != "" {
		t.Errorf("seed %d: %s\n%s", seed, r.Failure, strings.Join(trace, "\n"))
	} else {
		t.Logf("seed %d holds, exempt %v\n%s", seed, r.Exempt, strings.Join(trace, "\n"))
	}
}
