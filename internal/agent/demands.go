package agent

import (
	"context"
	"sync/atomic"
	"time"

	"toban.dev/internal/agent/running"
	"toban.dev/internal/ha"
	"toban.dev/internal/ha/machine"
	"toban.dev/internal/pause"
)

// demands is by which rule commits wait, and what changes it.
type demands struct {
	server enforcer
	// primary applies the rule to the server that runs; nil while that is no primary.
	primary func() (apply func(context.Context) error)
	// enforced is told when commits are seen to wait.
	enforced func()
	post     func(machine.Event)
	// requirement is by which commits wait.
	requirement atomic.Pointer[ha.Rule]
	// undemand gives up the demand that is being carried out. Only the elections' own goroutine uses it.
	undemand  context.CancelFunc
	demanding pause.Lock // held while a demand is carried out
}

// enforcer says when a rule is in force: a postgres.Server.
type enforcer interface {
	AwaitEnforced(ctx context.Context) error
	Barrier(ctx context.Context, rule string) error
}

// begin makes commits wait by a rule. A demand that is still being carried out is given up, and
// over before this one begins.
func (d *demands) begin(life context.Context, e machine.Demand) {
	d.giveUp()
	var ctx context.Context
	ctx, d.undemand = context.WithTimeout(life, barrierDeadline)
	go func() {
		d.demanding.Lock()
		defer d.demanding.Unlock()
		d.post(machine.Done{ID: e.ID, Err: text(d.enforce(ctx, e))})
	}()
}

// giveUp gives up the demand that is being carried out.
func (d *demands) giveUp() {
	if d.undemand != nil {
		d.undemand()
	}
}

// require has commits wait by a rule from the first of a server on. No demand of one before is
// carried out any more then.
func (d *demands) require(rule ha.Rule) {
	d.demanding.Lock()
	defer d.demanding.Unlock()
	d.requirement.Store(&rule)
}

// barrierDeadline is how long a change of the rule may wait for the standbys to have all WAL.
const barrierDeadline = 5 * time.Second

// enforce returns when the rule is in force, and, with a barrier, all that was acknowledged before
// is where it asks for it.
func (d *demands) enforce(ctx context.Context, e machine.Demand) error {
	apply := d.primary()
	if apply == nil {
		return running.ErrNoServer
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if e.Enforce {
		d.requirement.Store(&ha.Rule{Count: 1, From: []ha.Voter{ha.Nobody}})
		if err := apply(ctx); err != nil {
			return err
		}
		if err := d.server.AwaitEnforced(ctx); err != nil {
			return err
		}
		d.enforced()
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	d.requirement.Store(&e.Rule)
	if err := apply(ctx); err != nil || !e.Barrier {
		return err
	}
	return d.server.Barrier(ctx, e.Rule.String())
}

// rule is what a primary demands before it acknowledges.
func (d *demands) rule() ha.Rule {
	if rule := d.requirement.Load(); rule != nil {
		return *rule
	}
	return ha.Rule{Count: 1, From: []ha.Voter{ha.Nobody}}
}
