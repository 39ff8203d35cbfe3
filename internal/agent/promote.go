package agent

import (
	"context"
	"fmt"
	"time"

	"toban.dev/internal/ha"
	"toban.dev/internal/pause"
)

// promoteTo promotes the server. Its commits wait by a rule from the first on, if it has always run with one.
func (x *commands) promoteTo(ctx context.Context, r *running, session Session, rule ha.Rule) error {
	x.demands.require(rule)
	if err := r.configurePrimary(); err != nil {
		return err
	}
	if err := session.Promote(ctx); err != nil {
		return err
	}
	r.standing.setPromoted()
	return nil
}

// promoteShut promotes a server that has run without a rule since it was started: while the configuration was one of
// durability async. It lets nobody in until its commits are seen to wait, and then they do so by the rule.
func (x *commands) promoteShut(ctx context.Context, r *running, session Session, rule ha.Rule) error {
	x.log.Info("lets nobody in until commits are seen to wait", "rule", rule.String())
	if err := r.shut(ctx, session); err != nil {
		return err
	}
	if err := x.promoteTo(ctx, r, session, ha.Rule{Count: 1, From: []ha.Voter{ha.Nobody}}); err != nil {
		return err
	}
	if err := r.server.AwaitEnforced(ctx); err != nil {
		return err
	}
	r.config.unruled.Store(false)
	x.demands.require(rule)
	r.standing.open()
	return r.config.rewrite()
}

// shut lets no client in any more, and ends those who are there.
func (r *running) shut(ctx context.Context, session Session) error {
	before, err := session.LoadTime(ctx)
	if err != nil {
		return err
	}
	r.standing.shut()
	if err := r.config.rewrite(); err != nil {
		return err
	}
	if err := awaitReload(ctx, session, before); err != nil {
		return err
	}
	for since := time.Now(); ; {
		ended, err := endAll(ctx, r.process, session, since)
		if err != nil || ended == 0 {
			return err
		}
		if !pause.For(ctx, endInterval) {
			return fmt.Errorf("end the clients' sessions: %w", ctx.Err())
		}
	}
}
