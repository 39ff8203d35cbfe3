// Package poolers is what an instance knows of the poolers that send clients to it: it tells them how it is, and has
// them hold their clients before it stops (docs/connections.md). It must not know PostgreSQL. It is an annex
// (docs/packages.md, "Core and annexes").
package poolers

import (
	"context"
	"crypto/rand"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"toban.dev/internal/agent/serve"
	"toban.dev/internal/agent/status"
	"toban.dev/internal/protocol"
)

const (
	// away is after how long without a question a pooler is not waited for: it asks every second.
	away = 3 * time.Second
	// again is after how long at most the instance is looked at again for a pooler that waits for a change.
	again = 100 * time.Millisecond
)

// Poolers are those that ask this instance. Its public fields are set before it is used.
type Poolers struct {
	Status *status.Board
	// Tells is what the instance tells of itself now.
	Tells func() protocol.InstanceTells
	Log   *slog.Logger

	mutex sync.Mutex
	seen  map[string]asked // by name
	// holding is closed when one of them holds; nil while nobody waits for that.
	holding chan struct{}
}

// asked is a pooler as it has asked last.
type asked struct {
	at    time.Time
	holds string
}

// New are those that ask an instance. tells is what it tells of itself now.
func New(board *status.Board, tells func() protocol.InstanceTells, log *slog.Logger) serve.Poolers {
	return &Poolers{Status: board, Tells: tells, Log: log}
}

// Answer answers a pooler when something else is true than it has heard, or after protocol.PoolerWaits.
func (p *Poolers) Answer(ctx context.Context, asks protocol.PoolerAsks) protocol.InstanceTells {
	p.hear(asks)
	ctx, cancel := context.WithTimeout(ctx, protocol.PoolerWaits)
	defer cancel()
	for {
		changed := p.Status.Changed()
		tells := p.Tells()
		if !reflect.DeepEqual(tells, asks.Heard) {
			return tells
		}
		select {
		case <-ctx.Done():
			return tells
		case <-changed:
		case <-time.After(again):
		}
	}
}

func (p *Poolers) hear(asks protocol.PoolerAsks) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.seen == nil {
		p.seen = map[string]asked{}
	}
	p.seen[asks.Pooler] = asked{time.Now(), asks.Holds}
	if p.holding != nil && asks.Holds != "" {
		close(p.holding)
		p.holding = nil
	}
}

// Hold announces that the server is about to stop, and waits until all poolers hold their clients, for
// protocol.HoldPatience at most. The announcement lasts until release is called.
func (p *Poolers) Hold(ctx context.Context) (release func()) {
	all, _ := p.missing("")
	if len(all) == 0 {
		return func() {}
	}
	id, began := rand.Text(), time.Now()
	p.announce(id)
	release = func() { p.announce("") }
	patience, cancel := context.WithTimeout(ctx, protocol.HoldPatience)
	defer cancel()
	for patience.Err() == nil {
		missing, held := p.missing(id)
		if len(missing) == 0 {
			p.tell(id, began, all, p.gone(all))
			return release
		}
		select {
		case <-patience.Done():
		case <-held:
		case <-time.After(again): // one that is away by then is not waited for
		}
	}
	if missing, _ := p.missing(id); ctx.Err() == nil { // else the server is ended meanwhile
		p.tell(id, began, all, append(missing, p.gone(all)...))
	}
	return release
}

// tell logs how a hand-over went: all poolers held their clients, or some did not. Whoever looks for the cause of an
// error that a client has seen finds by time and name whether it was in a hand-over, and whether in one that held.
func (p *Poolers) tell(id string, began time.Time, all, missing []string) {
	about := p.Log.With("handOver", id, "term", p.Status.Get().Term, "after", time.Since(began).String())
	if len(missing) == 0 {
		about.Info("the poolers hold their clients", "poolers", len(all))
		return
	}
	about.Warn("stops though not all poolers hold their clients: a transaction takes longer than the patience, "+
		"or a pooler is slow or away",
		"poolers", strings.Join(missing, ", "), "patience", protocol.HoldPatience.String())
}

// gone are those of some poolers that are away by now: whether they hold their clients nobody knows.
func (p *Poolers) gone(all []string) (names []string) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	for _, name := range all {
		if _, there := p.seen[name]; !there {
			names = append(names, name)
		}
	}
	return names
}

// announce has the poolers told of a hand-over, or of none.
func (p *Poolers) announce(id string) { p.Status.Change(func(s *protocol.Status) { s.HandOver = id }) }

// missing are the poolers that do not hold for a hand-over, and what is closed when one of them does.
func (p *Poolers) missing(id string) (names []string, holding <-chan struct{}) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	maps.DeleteFunc(p.seen, func(_ string, a asked) bool { return time.Since(a.at) > away })
	for name, a := range p.seen {
		if id == "" || a.holds != id {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	if p.holding == nil {
		p.holding = make(chan struct{})
	}
	return names, p.holding
}
