package main

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"
)

const (
	// writeEvery is the pause of a writer, probeEvery of the probe of an instance,
	// registerEvery of a client of the registers.
	writeEvery    = 20 * time.Millisecond
	probeEvery    = 10 * time.Millisecond
	registerEvery = 40 * time.Millisecond
	// again is the pause after a failure.
	again = 20 * time.Millisecond
	// keys is the number of registers.
	keys = 4
)

// What the clients work on.
const (
	tables = `DROP TABLE IF EXISTS drill_write, drill_register;
		CREATE TABLE drill_write (id bigint PRIMARY KEY);
		CREATE TABLE drill_register (key int PRIMARY KEY, value bigint)`
	// The row of a write says who took it, and on which timeline.
	insert = `INSERT INTO drill_write VALUES ($1)
		RETURNING current_setting('cluster_name'), left(pg_walfile_name(pg_current_wal_insert_lsn()), 8)`
	upsert = `INSERT INTO drill_register VALUES ($1, $2) ON CONFLICT (key) DO UPDATE SET value = excluded.value
		RETURNING value`
	// A read counts only where it was served by a primary: the same statement says so.
	lookUp = `SELECT coalesce((SELECT value FROM drill_register WHERE key = $1), 0), NOT pg_is_in_recovery()`
	look   = `SELECT NOT pg_is_in_recovery(), current_setting('cluster_name'),
		CASE WHEN pg_is_in_recovery() THEN '' ELSE left(pg_walfile_name(pg_current_wal_insert_lsn()), 8) END`
)

// clients are all that write, read and look.
type clients struct {
	*history
	registers
	running sync.WaitGroup
	context context.Context //nolint:containedctx // it ends with stop
	stop    context.CancelFunc
}

// every calls step again and again until ctx ends, and then end. step says whether
// it went well.
func (c *clients) every(ctx context.Context, pause time.Duration, step func(context.Context) bool, end func()) {
	c.running.Go(func() {
		defer end()
		for ctx.Err() == nil {
			wait := pause
			if !step(ctx) {
				wait = max(pause, again)
			}
			select {
			case <-ctx.Done():
			case <-time.After(wait):
			}
		}
	})
}

// writer writes rows through a door, over a kept connection, whenever may is true.
func (c *clients) writer(ctx context.Context, d door, may func() bool) {
	var s *session
	c.every(ctx, writeEvery, func(ctx context.Context) bool {
		if !may() {
			return true
		}
		w := write{id: c.id(), path: d.path, start: c.now()}
		s, w = c.attempt(ctx, d, s, w)
		w.end = c.now()
		if ctx.Err() != nil && w.outcome != Acked {
			w.outcome = Unknown // it was the drill that ended
		}
		c.noteWrite(w)
		return w.outcome == Acked
	}, func() { hangUp(s) })
}

// attempt makes one write and returns the session for the next one.
func (c *clients) attempt(ctx context.Context, d door, s *session, w write) (*session, write) {
	if s == nil {
		fresh, err := d.open(ctx)
		if err != nil {
			w.outcome, w.problem = Failed, err.Error()
			return nil, w
		}
		s = fresh
	}
	err := s.row(ctx, []any{&w.leader.Instance, &w.leader.Timeline}, insert, w.id)
	w.outcome = s.outcome(err)
	if w.outcome == Acked {
		return s, w
	}
	if err != nil {
		w.problem = err.Error()
	}
	hangUp(s)
	return nil, w
}

// registrar reads and writes the registers through a door while may is true.
func (c *clients) registrar(ctx context.Context, number int, d door, may func() bool) {
	var s *session
	c.every(ctx, registerEvery, func(ctx context.Context) bool {
		if !may() && s == nil {
			return true
		}
		if s == nil {
			fresh, err := d.open(ctx)
			if err != nil {
				return false
			}
			s = fresh
		}
		o := operation{client: number, key: rand.IntN(keys), write: rand.IntN(2) == 0, start: c.history.now()}
		o = c.operate(ctx, s, o)
		o.end = c.history.now()
		c.registers.note(o)
		if o.outcome != Acked {
			hangUp(s)
			s = nil
		}
		return o.outcome == Acked
	}, func() { hangUp(s) })
}

func (c *clients) operate(ctx context.Context, s *session, o operation) operation {
	primary := true
	var err error
	if o.write {
		o.value = c.value()
		var written int64
		err = s.row(ctx, []any{&written}, upsert, o.key, o.value)
	} else {
		err = s.row(ctx, []any{&o.value, &primary}, lookUp, o.key)
	}
	o.outcome = s.outcome(err)
	if !primary {
		o.outcome = Failed // a standby's answer is no read of the register
	}
	return o
}

// probe asks an instance what it is, all the time, over a kept connection.
func (c *clients) probe(ctx context.Context, instance string, d door) {
	var s *session
	c.every(ctx, probeEvery, func(ctx context.Context) bool {
		if s == nil {
			fresh, err := d.open(ctx)
			if err != nil {
				return false
			}
			s = fresh
		}
		seen := sight{instance: instance, start: c.history.now()}
		if err := s.row(ctx, []any{&seen.primary, &seen.leader.Instance, &seen.leader.Timeline}, look); err != nil {
			hangUp(s)
			s = nil
			return false
		}
		seen.end = c.history.now()
		c.noteSight(seen)
		return true
	}, func() { hangUp(s) })
}

// primaryNow says whether an instance has said lately that it is not in recovery. The
// clients beside it go on asking for a while after it has fallen silent.
func (c *clients) primaryNow(instance string) func() bool {
	return func() bool {
		s, there := c.latest(3 * time.Second)[instance]
		return there && s.primary
	}
}
