// Package pressure sees how late things come on the machine of an instance, because others want its processors too or
// because the kernel holds the container to a limit. What is given up after a time is given up later then: that a
// machine is busy is a reason to wait, and never one to depose a primary (docs/ha.md, "A machine that is busy").
package pressure

import (
	"context"
	"sync"
	"time"

	"toban.dev/internal/agent/pause"
)

const (
	// interval is how often the gauge looks. What it sleeps longer is how late the agent itself comes.
	interval = 250 * time.Millisecond
	// window is for how long what was seen counts, lately for how long a stall does.
	window = 30 * time.Second
	lately = 3 * time.Second
	// stalledShare is the share of the time from which the kernel's word counts: that tasks waited for a processor, or
	// that the container was held to its limit.
	stalledShare = 0.8
)

// steps are the slacks that are told, each from a lateness on. They are few, so that they seldom change: the others are
// told each change. Less than the first one harms nobody: heartbeats come eight times in the time of silence.
var steps = []struct{ from, slack time.Duration }{
	{2 * time.Second, 8 * time.Second},
	{time.Second, 4 * time.Second},
	{500 * time.Millisecond, 2 * time.Second},
	{250 * time.Millisecond, time.Second},
}

// Gauge sees how late things come. The zero value is ready for use; nil sees nothing.
type Gauge struct {
	// Stalled is for how long, in all, tasks have waited for what the machine lacks; nil for what the kernel says.
	Stalled func() time.Duration

	mutex sync.Mutex
	// late is what came late in the window, the latest in time last: each by less than the one before.
	late []lateness
	// stalls is when tasks were last seen to wait for stalledShare of the time, before what they had waited at the last
	// look, looked when that was.
	stalls time.Time
	before time.Duration
	looked time.Time
}

type lateness struct {
	at time.Time
	by time.Duration
}

// Run looks until ctx ends. seen is called after each look.
func (g *Gauge) Run(ctx context.Context, seen func()) error {
	stalled := g.Stalled
	if stalled == nil {
		stalled = kernelStalls()
	}
	for looks := 0; ; looks++ {
		wait := pause.Until(interval)
		began := time.Now()
		if !pause.For(ctx, wait) {
			return nil
		}
		g.Late(time.Since(began) - wait)
		if looks%4 == 0 {
			g.look(time.Now(), stalled())
		}
		seen()
	}
}

// Late notes that something came late.
func (g *Gauge) Late(by time.Duration) {
	if g == nil || by < steps[len(steps)-1].from {
		return
	}
	g.mutex.Lock()
	defer g.mutex.Unlock()
	now := time.Now()
	kept := g.late[:0]
	for _, l := range g.late {
		if now.Sub(l.at) < window && l.by > by { // a shorter one that came before counts no longer than this one
			kept = append(kept, l)
		}
	}
	g.late = append(kept, lateness{now, by})
}

// look takes in for how long tasks have waited in all.
func (g *Gauge) look(now time.Time, stalled time.Duration) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	if past := now.Sub(g.looked); !g.looked.IsZero() && float64(stalled-g.before) >= stalledShare*float64(past) {
		g.stalls = now
	}
	g.looked, g.before = now, stalled
}

// Slack is how much longer than usual what has to come from this machine is waited for.
func (g *Gauge) Slack() time.Duration {
	if g == nil {
		return 0
	}
	g.mutex.Lock()
	defer g.mutex.Unlock()
	longest := time.Duration(0)
	for _, l := range g.late {
		if time.Since(l.at) < window {
			longest = max(longest, l.by)
		}
	}
	for _, s := range steps {
		if longest >= s.from {
			return s.slack
		}
	}
	return 0
}

// Busy says that something came late in the last seconds; or in the window, and that tasks had to wait for most of the
// last seconds. That they have to wait alone says little: on a node that is well used some task always does.
func (g *Gauge) Busy() bool {
	if g == nil {
		return false
	}
	slack := g.Slack()
	g.mutex.Lock()
	defer g.mutex.Unlock()
	late := len(g.late) > 0 && time.Since(g.late[len(g.late)-1].at) < lately
	return late || slack > 0 && !g.stalls.IsZero() && time.Since(g.stalls) < lately
}
