// Package simulation runs whole clusters of the decisions of internal/ha in
// virtual time, under faults, and checks after every step what must never happen.
// A run is a function of its seed: no goroutines, no clock, no order of maps.
package simulation

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// maxNodes is how many instances there can be.
const maxNodes = 5

type event struct {
	at  time.Duration
	seq uint64
	run func()
}

// World is one cluster with everything around it.
type World struct {
	rng *rand.Rand
	// scarce says that volumes have no room for a copy beside the data, copies fail, disks do not take a hard state,
	// and leaders take no replication for a while. In most schedules it is not so. volumes decides when: a source of
	// its own, so that those stay as they are.
	scarce  bool
	volumes *rand.Rand
	broken  Breakage
	// preVotes says that candidates ask before they stand. In most schedules they don't: no invariant may need it.
	preVotes bool
	now      time.Duration
	seq      uint64
	ids      uint64
	queue    []event
	nodes    []*node
	api      api
	net      network
	op       operator
	check    checker
	nemesis  nemesis
	// excused is until when clocks that have jumped may have voters elect too early.
	excused time.Duration
	// failure is the first invariant that did not hold.
	failure string
	tracing bool
	trace   []string
}

// Result is how a run ended.
type Result struct {
	// Failure is empty when every invariant held.
	Failure string
	// Exempt says that too much was lost for liveness to be promised.
	Exempt bool
	// Trace are the last events, where they were asked for.
	Trace []string
	// Acknowledged is how many writes were, Terms how many terms were won, Changes how many configurations were made.
	Acknowledged, Terms, Changes int
	// Time is how much virtual time passed.
	Time time.Duration
}

// Run runs one schedule.
func Run(seed uint64, broken Breakage, tracing bool) Result {
	// #nosec G404 -- a simulation must be repeatable
	w := &World{
		rng: rand.New(rand.NewPCG(seed, 1)), volumes: rand.New(rand.NewPCG(seed, 2)), broken: broken,
		tracing: tracing, preVotes: seed%3 == 0,
	}
	w.check.w = w
	// #nosec G404 -- as above
	source := func(n uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, n)) }
	w.nemesis = nemesis{w: w, firewall: source(4), replay: source(5), dead: source(6)}
	w.queue = make([]event, 0, 256)
	w.scarce = w.volumes.Float64() < 0.3
	w.op.prefers = seed%16 == 9
	w.build()
	w.nemesis.schedule()
	w.runUntil(w.op.end)
	if w.failure == "" {
		w.nemesis.heal()
		w.check.finish()
	}
	return Result{Failure: w.failure, Exempt: w.check.exempt, Trace: w.trace,
		Acknowledged: len(w.check.acks), Terms: len(w.check.wins), Changes: w.check.changes, Time: w.now}
}

// runUntil handles events until a time or the first failure.
func (w *World) runUntil(end time.Duration) {
	for len(w.queue) > 0 && w.failure == "" && w.queue[0].at <= end {
		e := w.pop()
		w.now = e.at
		e.run()
	}
	if w.failure == "" {
		w.now = max(w.now, end)
	}
}

// after runs f later.
func (w *World) after(d time.Duration, f func()) {
	w.seq++
	w.push(event{w.now + max(d, 0), w.seq, f})
}

func (e event) less(o event) bool { return e.at < o.at || e.at == o.at && e.seq < o.seq }

func (w *World) push(e event) {
	w.queue = append(w.queue, e)
	i := len(w.queue) - 1
	for i > 0 {
		parent := (i - 1) / 2
		if !w.queue[i].less(w.queue[parent]) {
			break
		}
		w.queue[i], w.queue[parent] = w.queue[parent], w.queue[i]
		i = parent
	}
}

func (w *World) pop() event {
	top, last := w.queue[0], len(w.queue)-1
	w.queue[0] = w.queue[last]
	w.queue[last] = event{}
	w.queue = w.queue[:last]
	for i := 0; ; {
		child := 2*i + 1
		if child >= last {
			break
		}
		if child+1 < last && w.queue[child+1].less(w.queue[child]) {
			child++
		}
		if !w.queue[child].less(w.queue[i]) {
			break
		}
		w.queue[i], w.queue[child] = w.queue[child], w.queue[i]
		i = child
	}
	return top
}

// between is a random duration.
func (w *World) between(low, high time.Duration) time.Duration {
	return low + time.Duration(w.rng.Int64N(int64(high-low)))
}

// chance is true with a probability.
func (w *World) chance(p float64) bool { return w.rng.Float64() < p }

// log notes an event for people, when somebody wants to read it.
func (w *World) log(who, format string, args ...any) {
	if w.tracing {
		w.trace = append(w.trace, fmt.Sprintf("%9.3f %-5s %s", w.now.Seconds(), who, fmt.Sprintf(format, args...)))
	}
}

// fail notes the first invariant that does not hold.
func (w *World) fail(invariant, format string, args ...any) {
	if w.failure == "" {
		w.failure = invariant + ": " + fmt.Sprintf(format, args...)
		w.log("CHECK", "%s", w.failure)
	}
}

// breaks says whether a step is left out in this run.
func (w *World) breaks(b Breakage) bool { return w.broken == b }
