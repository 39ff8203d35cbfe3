// Package pause waits in a loop that can be told to end, or for a lock.
package pause

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// aligned says that what is done again and again is done at the same moments by all who do it.
var aligned atomic.Bool

// Align has what is done again and again done at the same moments, in this process and in those of the other instances:
// on the whole interval, by the clock of the machine. A process that wakes up seldom, and then does all that is due,
// costs a fraction of one that wakes up for each of it: Go's runtime looks for work for a while each time. It is for a
// process of its own; tests in virtual time have many instances in one, which are to do things at different moments.
func Align() { aligned.Store(true) }

// Until is how long it is until the next thing of those that are done again after an interval is due.
func Until(interval time.Duration) time.Duration {
	if !aligned.Load() {
		return interval
	}
	now := time.Now()
	due := now.Truncate(interval).Add(interval).Sub(now)
	if due < interval/8 { // it has just been done, by a timer that was early
		due += interval
	}
	return due
}

// Every waits until what is done again after an interval is due; it is false when ctx ended first.
func Every(ctx context.Context, interval time.Duration) bool { return For(ctx, Until(interval)) }

// Growing are the pauses of a loop that looks for something that usually comes soon: it looks seldom where that does
// not come, so that waiting does not take the time from what is waited for.
type Growing struct{ Least, Most time.Duration }

// For waits for as long as is due; it is false when ctx ended first.
func (g *Growing) For(ctx context.Context) bool {
	due := g.Least
	g.Least = min(g.Least+g.Least/8, g.Most)
	return For(ctx, due)
}

// For waits; it is false when ctx ended first.
func For(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// Lock is a mutex that is held while something takes time, as a query of the server does. Who waits for it waits at
// a channel and not at a sync.Mutex: only so a test in virtual time (testing/synctest) knows that nothing but time goes
// on meanwhile. The zero value is ready for use.
type Lock struct {
	once sync.Once
	held chan struct{}
}

// Lock waits until nobody else holds it.
func (l *Lock) Lock() {
	l.make()
	l.held <- struct{}{}
}

// TryLock locks it if nobody holds it.
func (l *Lock) TryLock() bool {
	l.make()
	select {
	case l.held <- struct{}{}:
		return true
	default:
		return false
	}
}

func (l *Lock) make() { l.once.Do(func() { l.held = make(chan struct{}, 1) }) }

// Unlock lets the next one have it.
func (l *Lock) Unlock() { <-l.held }
