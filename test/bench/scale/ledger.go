package main

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// ledger has who waits for something to be seen, by its name. What nobody waits for is not kept.
type ledger struct {
	mutex   sync.Mutex
	waiting map[string]chan time.Time
}

// expect has the first time noted at which something is seen from now on.
func (l *ledger) expect(what string) <-chan time.Time {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.waiting == nil {
		l.waiting = map[string]chan time.Time{}
	}
	seen := make(chan time.Time, 1)
	l.waiting[what] = seen
	return seen
}

// note says that something is seen.
func (l *ledger) note(what string) {
	now := time.Now()
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if seen, ok := l.waiting[what]; ok {
		seen <- now
		delete(l.waiting, what)
	}
}

// await is when something was seen that was expected.
func await(ctx context.Context, what string, seen <-chan time.Time) (time.Time, error) {
	select {
	case at := <-seen:
		return at, nil
	case <-ctx.Done():
		return time.Time{}, fmt.Errorf("wait for %s: %w", what, ctx.Err())
	}
}
