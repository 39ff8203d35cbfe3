package agent

import (
	"context"

	"toban.dev/internal/agent/running"
	"toban.dev/internal/ha"
)

// promoteTo promotes the server. Its commits wait by a rule from the first on, if it has always run with one.
func (x *commands) promoteTo(ctx context.Context, r *running.Server, session running.Session, rule ha.Rule) error {
	x.demands.require(rule)
	if err := r.ConfigurePrimary(); err != nil {
		return err
	}
	if err := session.Promote(ctx); err != nil {
		return err
	}
	r.Standing.SetPromoted()
	return nil
}

// promoteShut promotes a server that has run without a rule since it was started: while the configuration was one of
// durability async. It lets nobody in until its commits are seen to wait, and then they do so by the rule.
func (x *commands) promoteShut(ctx context.Context, r *running.Server, session running.Session, rule ha.Rule) error {
	x.log.Info("lets nobody in until commits are seen to wait", "rule", rule.String())
	if err := r.Shut(ctx, session); err != nil {
		return err
	}
	if err := x.promoteTo(ctx, r, session, ha.Rule{Count: 1, From: []ha.Voter{ha.Nobody}}); err != nil {
		return err
	}
	if err := r.PostgreSQL.AwaitEnforced(ctx); err != nil {
		return err
	}
	r.Config.Unruled.Store(false)
	x.demands.require(rule)
	r.Standing.Open()
	return r.Config.Rewrite()
}
