package running

import (
	"context"

	"toban.dev/internal/postgres"
)

// prove has a session of a client's kind begin under what the server has read, or was started with: PostgreSQL takes
// much that lets none begin. Where it refuses, and does not under what was good, or under its defaults, the server goes
// on with that, and the configuration is rejected. Where it refuses under all of them, none is at fault. Where it does
// not answer, or has no room, nothing is known yet. The files are not locked while a session begins: a change of the
// role must not wait for that.
func (c *configuration) prove(ctx context.Context, session configSession) error {
	tried, judged, turn := c.running()
	if judged {
		return nil
	}
	refusal := c.login(ctx)
	switch {
	case refusal == nil:
		return c.pass(ctx, session, turn)
	case !postgres.Refuses(refusal):
		return nil
	}
	for _, former := range c.formers(tried.Revision) {
		turn, err := c.turnTo(ctx, session, former)
		if err != nil {
			return err
		}
		if again := c.login(ctx); postgres.Refuses(again) {
			continue
		} else if again != nil || !c.judge(turn) {
			return nil // what is wanted is tried anew
		}
		c.comeBackTo(former)
		if tried.Revision == c.wanted().Revision { // else it is rejected already, or no more wanted
			c.report.refuse(tried.Revision, postgres.RejectedByLogin(refusal))
		}
		return nil
	}
	turn, err := c.turnTo(ctx, session, tried)
	if err == nil && c.judge(turn) {
		c.log.Warn("new sessions are refused, whatever the configuration", "error", refusal.Error())
	}
	return err
}

// pass notes that sessions begin. Where nothing waits for a restart, the configuration is the one to come back to; else
// only the start with it proves it.
func (c *configuration) pass(ctx context.Context, session configSession, turn int) error {
	pending, err := session.PendingRestart(ctx)
	if err != nil {
		return err
	}
	if c.judge(turn) && len(pending) == 0 {
		runs, _, _ := c.running()
		c.keep(runs)
	}
	return nil
}

// running is what the server runs with, whether it is known if sessions begin so, and how often it has changed.
func (c *configuration) running() (runs candidate, judged bool, turn int) {
	c.files.Lock()
	defer c.files.Unlock()
	return c.runs, c.judged, c.turns
}

// judge notes that it is known whether sessions begin, unless the server runs with something else by now.
func (c *configuration) judge(turn int) bool {
	c.files.Lock()
	defer c.files.Unlock()
	c.judged = c.judged || c.turns == turn
	return c.turns == turn
}

// formers are the configurations to come back to, in the order to try: the last that was good, and PostgreSQL's
// defaults.
func (c *configuration) formers(but string) (list []candidate) {
	if g, ok := c.good.load(); ok && g.Revision != but {
		list = append(list, g)
	}
	if but != revisionDefaults {
		list = append(list, candidate{Revision: revisionDefaults})
	}
	return list
}

// turnTo has the server run with a configuration, with its role and the rule for commits as they are now.
func (c *configuration) turnTo(ctx context.Context, session configSession, to candidate) (turn int, err error) {
	c.files.Lock()
	defer c.files.Unlock()
	settings, err := c.settingsOf(to)
	if err != nil {
		return 0, err
	}
	if err := c.reload(ctx, session, settings); err != nil {
		return 0, err
	}
	c.run(settings, to)
	return c.turns, nil
}

// comeBackTo has a former configuration be what remains.
func (c *configuration) comeBackTo(former candidate) {
	if former.Revision != revisionDefaults {
		return
	}
	if err := c.good.forget(); err != nil {
		c.log.Warn("the former configuration lets no session begin, and could not be removed", "error", err.Error())
	}
}
