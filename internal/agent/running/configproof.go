package running

import (
	"context"
	"errors"
	"slices"
	"time"

	"toban.dev/internal/postgres"
)

// doubtInterval is how often it is judged anew at most whether sessions begin.
const doubtInterval = time.Minute

// prove has a session of a client's kind begin under what the server has read, or was started with: PostgreSQL takes
// much that lets none begin. Where it refuses, twice, and does not under what was good, or under its defaults, the
// server goes on with that, and the configuration is rejected. Where it refuses under all of them, none is at fault.
// Where it does not answer, or has no room, nothing is known yet. The files are not locked while a session begins: a
// change of the role must not wait for that.
func (c *configuration) prove(ctx context.Context, session configSession) error {
	tried, judged, turn := c.running()
	if judged {
		return nil
	}
	refusal := c.login(ctx)
	if postgres.Refuses(refusal) {
		refusal = c.login(ctx)
	}
	before := c.suspected()
	switch {
	case refusal == nil && before != nil:
		if c.judge(turn) {
			c.blame(before, tried)
		}
		return nil
	case refusal == nil:
		return c.pass(ctx, session, tried, turn)
	case !postgres.Refuses(refusal):
		return nil
	}
	s := &suspicion{tried: tried, refusal: refusal}
	if before != nil {
		s = &suspicion{before.tried, before.refusal, append(slices.Clone(before.refused), tried.Revision)}
	}
	return c.tryFormers(ctx, session, s)
}

// suspicion is of a configuration under which sessions are refused, until it is known whether they are under others.
type suspicion struct {
	tried   candidate
	refusal error
	// refused are the former ones under which they are refused too.
	refused []string
}

// tryFormers has the server come back to a former configuration under which sessions begin. Where there is none, it
// goes on with the one that was suspected.
func (c *configuration) tryFormers(ctx context.Context, session configSession, s *suspicion) error {
	for _, former := range c.formers(s.tried) {
		if slices.Contains(s.refused, former.Revision) {
			continue
		}
		if done, err := c.comeBack(ctx, session, former, s); done || err != nil {
			return err
		}
		s.refused = append(s.refused, former.Revision)
	}
	turn, err := c.turnTo(ctx, session, s.tried)
	if err != nil {
		return err
	}
	c.judge(turn)
	c.acquit()
	c.log.Warn("new sessions are refused, whatever the configuration", "error", s.refusal.Error())
	return nil
}

// comeBack has the server go on with a former configuration, if sessions begin under it. It is done too where that
// can't be said, because it has no room or does not answer: until it can, the server goes on so, and the configuration
// that is suspected is not tried anew. To and fro, each look would cost it two reloads while it has most to do.
func (c *configuration) comeBack(
	ctx context.Context, session configSession, former candidate, s *suspicion,
) (done bool, err error) {
	turn, err := c.turnTo(ctx, session, former)
	var rejected *postgres.RejectedError
	if errors.As(err, &rejected) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	again := c.login(ctx)
	if postgres.Refuses(again) {
		return false, nil
	}
	if again != nil {
		c.suspect(s)
		return true, nil
	}
	if c.judge(turn) {
		c.blame(s, former)
	}
	return true, nil
}

// blame rejects a configuration: sessions begin under a former one.
func (c *configuration) blame(s *suspicion, former candidate) {
	if former.Revision == revisionDefaults {
		c.forget()
	}
	if s.tried.Revision == c.wanted().Revision { // else it is rejected already, or no more wanted
		c.report.refuse(s.tried.Revision, postgres.RejectedByLogin(s.refusal))
	}
}

// suspect notes a suspicion, and suspected is the one there is, nil for none.
func (c *configuration) suspect(s *suspicion) {
	c.files.Lock()
	defer c.files.Unlock()
	c.suspicion = s
}

func (c *configuration) suspected() *suspicion {
	c.files.Lock()
	defer c.files.Unlock()
	return c.suspicion
}

// pass notes that sessions begin. Where nothing waits for a restart, the configuration is the one to come back to; else
// only the start with it proves it.
func (c *configuration) pass(ctx context.Context, session configSession, tried candidate, turn int) error {
	pending, err := session.PendingRestart(ctx)
	if err != nil {
		return err
	}
	if c.judge(turn) && len(pending) == 0 {
		c.keep(tried)
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
	if c.turns != turn {
		return false
	}
	c.judged, c.since, c.suspicion = true, time.Now(), nil
	return true
}

// acquit notes that sessions are refused whatever is configured: it is not judged anew until something else runs.
func (c *configuration) acquit() {
	c.files.Lock()
	defer c.files.Unlock()
	c.innocent = true
}

// doubt has it judged anew whether sessions begin: a library may have gone since.
func (c *configuration) doubt() {
	c.files.Lock()
	defer c.files.Unlock()
	c.judged = c.judged && (c.innocent || time.Since(c.since) < doubtInterval)
}

// formers are the configurations to come back to, in the order to try: the last that was good, and PostgreSQL's
// defaults, both with who may log in from where as it is: that can't be why a session of ours is refused.
func (c *configuration) formers(but candidate) (list []candidate) {
	if g, ok := c.good.load(); ok && g.Revision != but.Revision {
		list = append(list, candidate{Revision: g.Revision, Parameters: g.Parameters, HBA: but.HBA})
	}
	if but.Revision != revisionDefaults {
		list = append(list, candidate{Revision: revisionDefaults, HBA: but.HBA})
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

// forget removes what was good: no session begins with it either.
func (c *configuration) forget() {
	if err := c.good.forget(); err != nil {
		c.log.Warn("the former configuration lets no session begin, and could not be removed", "error", err.Error())
	}
}
