// Package pressure sees how late things come on the machine of an instance, because others want its processors too or
// because the kernel holds the container to a limit. What is given up after a time is given up later then: that a
// machine is busy is a reason to wait, and never one to depose a primary (docs/busy.md, "A machine that is busy").
package pressure

import (
	"context"
	"slices"
	"sync"
	"time"

	"toban.dev/internal/pause"
)

const (
	// interval is how often the gauge looks. What it sleeps longer is how late the agent itself comes.
	interval = 250 * time.Millisecond
	// window is for how long what was seen counts at least, lately for how long a stall does.
	window = 30 * time.Second
	lately = 3 * time.Second
	// stalledShare is the share of the time from which the kernel's word counts: that tasks waited for a processor, or
	// that the container was held to its limit.
	stalledShare = 0.8
	// apart is how far two things that came late are apart: all that was late for one pause comes at once when it ends.
	apart = time.Second
	// confirms is for how long something that came late confirms another. Of stalls that come again and again each
	// counts for twice as long as it came after the one before: until the next one, which it is there for.
	confirms = 40 * time.Second
)

// steps are the slacks that are told, each from a lateness on. They are few, so that they seldom change: the others are
// told each change. Less than the first one harms nobody: heartbeats come eight times in the time of silence.
var steps = []struct{ from, slack time.Duration }{
	{2 * time.Second, 8 * time.Second},
	{time.Second, 4 * time.Second},
	{500 * time.Millisecond, 2 * time.Second},
	{250 * time.Millisecond, time.Second},
}

// least is the lateness from which something came late.
var least = steps[len(steps)-1].from

// Gauge sees how late things come. The zero value is ready for use; nil sees nothing.
type Gauge struct {
	// Stalled is for how long, in all, tasks have waited for what the machine lacks; nil for what the kernel says.
	Stalled func() time.Duration

	// kernel is what the kernel says; its mutex is held while it is asked.
	kernel struct {
		sync.Mutex
		stalled func() stall
	}

	mutex sync.Mutex
	// late is what came late, as long as it confirms others, the latest in time last.
	late []lateness
	// stalls is when tasks were last seen to wait for stalledShare of the time, before what they had waited at the last
	// look, looked when that was.
	stalls time.Time
	before stall
	looked time.Time
}

// lateness is that something came late, once. It counts in full where tasks had to wait meanwhile, as the kernel says.
// Else it may have been a pause of the agent alone, as where a process is stopped or a virtual machine moves: then it
// counts for what another has been late by.
type lateness struct {
	at         time.Time
	by, counts time.Duration
	// until is until when it counts.
	until time.Time
}

// Run looks until ctx ends. seen is called after each look.
func (g *Gauge) Run(ctx context.Context, seen func()) error {
	for looks := 0; ; looks++ {
		wait := pause.Until(interval)
		began := time.Now()
		if !pause.For(ctx, wait) {
			return nil
		}
		by, waited := time.Since(began)-wait, false
		if looks%4 == 0 || by >= least {
			waited = g.look(time.Now(), g.stallsInAll())
		}
		g.note(by, waited)
		seen()
	}
}

// stallsInAll is for how long tasks have waited in all.
func (g *Gauge) stallsInAll() stall {
	if g.Stalled != nil {
		return stall{waited: g.Stalled()}
	}
	g.kernel.Lock()
	defer g.kernel.Unlock()
	if g.kernel.stalled == nil {
		g.kernel.stalled = kernelStalls()
	}
	return g.kernel.stalled()
}

// Mark is a moment, and for how long tasks had waited in all until then.
type Mark struct {
	at     time.Time
	stalls stall
}

// Since is how long ago it was.
func (m Mark) Since() time.Duration { return time.Since(m.at) }

// Mark is where something begins that may be given up.
func (g *Gauge) Mark() Mark {
	if g == nil {
		return Mark{at: time.Now()}
	}
	return Mark{time.Now(), g.stallsInAll()}
}

// GivenUp notes that something was given up that began at a mark. That says that it came late only where tasks were
// lately seen to wait, or have waited for most of that very time: else it may have hung. What is given up sooner than
// Run looks again would else come before the first word of the kernel about a machine that has just become busy.
func (g *Gauge) GivenUp(began Mark) {
	if g == nil {
		return
	}
	took := began.Since()
	if g.waits() || float64(g.stallsInAll().since(began.stalls)) >= stalledShare*float64(took) {
		g.note(took, true)
	}
}

// Late notes that something came late.
func (g *Gauge) Late(by time.Duration) {
	if g != nil {
		g.note(by, g.waits())
	}
}

// waits says that tasks were lately seen to wait.
func (g *Gauge) waits() bool {
	if g == nil {
		return false
	}
	g.mutex.Lock()
	defer g.mutex.Unlock()
	return g.stalled(time.Now())
}

// note notes what came late, if it did, and whether that is sure.
func (g *Gauge) note(by time.Duration, sure bool) {
	if by < least {
		return
	}
	g.mutex.Lock()
	defer g.mutex.Unlock()
	now := time.Now()
	g.late = slices.DeleteFunc(g.late, func(l lateness) bool { return l.isOver(now) })
	came := lateness{at: now, by: by, counts: by, until: now.Add(window)}
	before := g.late
	same := len(before) > 0 && now.Sub(before[len(before)-1].at) < apart
	if same {
		before = before[:len(before)-1]
	}
	confirmed, since := longest(before, now)
	if confirmed > 0 {
		came.until = now.Add(max(window, 2*since))
	}
	if !sure {
		came.counts = min(by, confirmed)
	}
	if same {
		last := &g.late[len(before)]
		last.by, last.counts = max(last.by, came.by), max(last.counts, came.counts)
		if came.until.After(last.until) {
			last.until = came.until
		}
		return
	}
	g.late = append(g.late, came)
}

// isOver says that it neither counts any more nor confirms another.
func (l lateness) isOver(now time.Time) bool {
	return now.Sub(l.at) >= confirms && !now.Before(l.until)
}

// longest is by how much the latest came late of those that confirm another one, and how long ago the last one was.
func longest(of []lateness, now time.Time) (by, since time.Duration) {
	for _, l := range of {
		if ago := now.Sub(l.at); ago < confirms {
			by, since = max(by, l.by), ago
		}
	}
	return by, since
}

// stalled says that tasks were lately seen to wait.
func (g *Gauge) stalled(now time.Time) bool { return !g.stalls.IsZero() && now.Sub(g.stalls) < lately }

// look takes in for how long tasks have waited in all, and says whether they have for most of the time since the look
// before.
func (g *Gauge) look(now time.Time, stalls stall) (waited bool) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	waited = !g.looked.IsZero() && float64(stalls.since(g.before)) >= stalledShare*float64(now.Sub(g.looked))
	if waited {
		g.stalls = now
	}
	g.looked, g.before = now, stalls
	return waited
}

// Slack is how much longer than usual what has to come from this machine is waited for. A single lateness counts only
// where the kernel says that tasks had to wait: after a pause of the agent alone, nothing will be late.
func (g *Gauge) Slack() time.Duration {
	if g == nil {
		return 0
	}
	g.mutex.Lock()
	defer g.mutex.Unlock()
	counts := g.counts(time.Now())
	for _, s := range steps {
		if counts >= s.from {
			return s.slack
		}
	}
	return 0
}

// counts is the longest lateness of those that still count, as far as each does.
func (g *Gauge) counts(now time.Time) (longest time.Duration) {
	for _, l := range g.late {
		if now.Before(l.until) {
			longest = max(longest, l.counts)
		}
	}
	return longest
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
	now := time.Now()
	late := len(g.late) > 0 && now.Sub(g.late[len(g.late)-1].at) < lately
	return late || slack > 0 && g.stalled(now)
}
