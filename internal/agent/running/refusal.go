package running

import (
	"context"
	"errors"
	"slices"

	"toban.dev/internal/postgres"
	"toban.dev/internal/protocol"
)

// loginRefused is a refusal of the agent's own sessions by what somebody has written into the server's catalog.
type loginRefused struct{ error }

// Unwrap is PostgreSQL's error.
func (e loginRefused) Unwrap() error { return e.error }

// each does one thing after the other, also after one that the server has refused: none of them rests on another one.
// What is no refusal ends that and alone is told, for it says that the server does not answer.
func each(things ...func() error) error {
	var refused []error
	for _, do := range things {
		err := do()
		if err != nil && !postgres.RefusesBesides(err) {
			return err
		}
		refused = append(refused, err)
	}
	return errors.Join(refused...)
}

// enter proves that a new session can be had: the postmaster may hang though
// the sessions there are go on. One that answers, and refuses, lives. What somebody has written into its catalog is
// undone. Where it refuses sessions that load something, as clients' do, and lets one in that does not, it is judged
// anew what is configured.
func (t *monitor) enter(ctx context.Context) error {
	err := t.server.ProveLogin(ctx)
	if postgres.RefusesUs(err) {
		t.log.Warn("the server refuses sessions of the agent: it is told to let them in again", "error", err.Error())
		if err := t.session.KeepMaintenance(ctx); err != nil && !postgres.RefusesBesides(err) {
			return err
		}
		if err = t.server.ProveLogin(ctx); postgres.RefusesUs(err) {
			return loginRefused{err}
		}
	}
	if postgres.Refuses(err) {
		t.log.Warn("the server refuses sessions as clients begin them", "error", err.Error())
		t.config.doubt()
		var session Session
		if session, err = t.server.Connect(ctx); err == nil {
			session.Close()
		}
	}
	if postgres.TooManyClients(err) {
		return nil
	}
	return err
}

// refuses says that a server has answered, and refuses its agent a session, or what it asks for besides what its role
// is: it is not silent.
func (t *monitor) refuses(err error) bool {
	var login loginRefused
	return errors.As(err, &login) || t.looks.proven && postgres.RefusesBesides(err)
}

// reportRefusal tells that the server refuses its agent. What was seen of its role before is not known any more: a
// primary of which nobody is seen to stream makes way in time, where others could lead.
func (t *monitor) reportRefusal(err error) {
	message := "the server refuses what the agent asks for: " + err.Error()
	if login := (loginRefused{}); errors.As(err, &login) {
		message = "the role postgres must be able to log in to the database postgres: " + err.Error()
	}
	if said := t.status.Get(); said.Reason != ReasonRefuses || said.Message != message {
		t.log.Warn("the server answers, and refuses the agent", "error", err.Error())
	}
	if !t.looks.observed {
		t.standing.See(func(s *Seen) { s.streaming, s.standbys, s.Known = false, nil, false })
	}
	primary := t.standing.IsPrimary()
	t.status.Change(func(s *protocol.Status) {
		s.Reason, s.Message = ReasonRefuses, message
		if !t.looks.observed {
			s.Streaming, s.Standbys, s.Ready = false, nil, s.Ready && primary
		}
	})
}

// reportLook tells what came of a look that the server has answered, and says whether it was a refusal.
func (t *monitor) reportLook(err error) (refused bool) {
	refused = t.refuses(err)
	switch {
	case refused:
		t.reportRefusal(err)
	case err == nil && t.looks.observed:
		t.reportAnswer()
	}
	return refused
}

// reportAnswer says of a server which has done all that it was asked for in a look that it answers, or what it does not
// do yet. Before the end of the look that is not known: what is still to come may be refused, as in the look before.
func (t *monitor) reportAnswer() {
	following := t.standing.following().Leader
	t.status.Change(func(s *protocol.Status) {
		if t.ending.Load() {
			return
		}
		if slices.Contains([]string{ReasonNotAnswering, ReasonRefuses}, s.Reason) {
			s.Reason, s.Message = "Answers", "the server answers again"
		}
		expected := s.Reason == "Follower" || s.Reason == "Answers" // else there is a better reason
		if s.Role == protocol.RoleStandby && !s.Ready && following != "" && expected {
			s.Reason, s.Message = ReasonNotStreaming, "does not stream from "+following+" yet"
		}
	})
}
