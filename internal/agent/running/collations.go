package running

import (
	"context"
	"log/slog"
	"reflect"
	"time"

	"toban.dev/internal/agent/status"
	"toban.dev/internal/pause"
	"toban.dev/internal/protocol"
	"toban.dev/internal/work/maintenance"
)

// How often a primary looks whether texts are sorted as before: at its start, at its promotion, and then.
const (
	collationsInterval = time.Hour
	// collationsAgain is while something has changed or a Job works on it, and after a look that has failed.
	collationsAgain = 15 * time.Second
	// collationsDeadline bounds one look into all databases.
	collationsDeadline = time.Minute
	// primaryInterval is how often it is looked whether the server is a primary by now.
	primaryInterval = time.Second
)

// spareRoom is what a volume has to have free besides an index that is rebuilt and the WAL of that (bytes).
const spareRoom = 256 << 20

// collations looks, while the server is a primary, whether a library sorts texts in another order than the one in which
// indexes were made. It has a loop and sessions of its own: nothing waits for it.
type collations struct {
	primary   func() bool
	connect   maintenance.Connect
	freeSpace func() (uint64, error)
	status    *status.Board
	log       *slog.Logger
}

// run looks until ctx ends. What was found of a server that has ended is not true of the next one.
func (c *collations) run(ctx context.Context) {
	c.say(nil)
	for ctx.Err() == nil {
		if !c.primary() {
			pause.Every(ctx, primaryInterval)
			continue
		}
		found := c.look(ctx)
		if ctx.Err() != nil {
			return
		}
		c.say(&found)
		next := collationsInterval
		if found.Problem != "" || found.Changed() || found.Progress != nil {
			next = collationsAgain
		}
		c.wait(ctx, next)
	}
}

// wait waits for the next look. A Job that has begun meanwhile is seen within a minute.
func (c *collations) wait(ctx context.Context, next time.Duration) {
	for waited := time.Duration(0); waited < next && ctx.Err() == nil; waited += time.Minute {
		pause.For(ctx, min(time.Minute, next-waited))
		if next > time.Minute && c.works(ctx) {
			return
		}
	}
}

// works says that a Job works on what was found.
func (c *collations) works(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, collationsDeadline)
	defer cancel()
	works, err := maintenance.Works(ctx, c.connect)
	return err == nil && works
}

// look looks into all databases.
func (c *collations) look(ctx context.Context) maintenance.Report {
	ctx, cancel := context.WithTimeout(ctx, collationsDeadline)
	defer cancel()
	found, err := maintenance.Look(ctx, c.connect)
	if err != nil {
		if last := c.status.Get().Collations; last == nil || last.Problem != err.Error() {
			c.log.Warn("it is not known whether texts are sorted as before", "error", err.Error())
		}
		return maintenance.Report{Problem: err.Error()}
	}
	free, err := c.freeSpace()
	found.Cramped = err == nil && found.Indexes > 0 && free < 2*uint64(max(found.Largest, 0))+spareRoom
	return found
}

// say puts it into the status, where it is something else than before.
func (c *collations) say(found *maintenance.Report) {
	if !reflect.DeepEqual(c.status.Get().Collations, found) {
		c.status.Change(func(s *protocol.Status) { s.Collations = found })
	}
}
