package agent

import (
	"context"
	"fmt"
	"time"

	"toban.dev/internal/ha"
	"toban.dev/internal/protocol"
)

// Times of the role loop.
const (
	tickInterval  = 250 * time.Millisecond
	hurryInterval = 50 * time.Millisecond
	firstRetry    = 250 * time.Millisecond
	lastRetry     = 10 * time.Second
)

// roleLoop decides what the instance is, and makes it that. All that changes
// the server or gives a vote happens here, one thing after the other.
func (a *Agent) roleLoop(ctx context.Context) error {
	defer a.endServer(ctx)
	trouble, said := backoff{}, ""
	for ctx.Err() == nil && !a.maySafelyEnd() {
		d, err := a.decide(ctx)
		if err == nil && trouble.over(d) {
			a.announce(d)
			err = a.act(ctx, d)
			trouble.note(d, err)
		}
		if ctx.Err() != nil {
			break
		}
		said = a.complain(d, err, said)
		a.pause(ctx, a.interval())
	}
	return nil
}

// complain reports why what was decided could not be done. It logs that once, and not twenty times a second as long as a
// disk is full, and returns what it has said.
func (a *Agent) complain(d ha.Decision, err error, said string) string {
	if err == nil {
		return ""
	}
	text := string(d.Action) + ": " + err.Error()
	if text != said {
		a.Log.Error("the instance could not do what was decided", "action", string(d.Action), "error", err.Error())
	}
	a.report(func(s *protocol.Status) { s.Ready, s.Reason, s.Message = false, "Failed", err.Error() })
	return text
}

// interval is how long until the next look when nothing happens before: shorter
// while a primary may have to be fenced.
func (a *Agent) interval() time.Duration {
	if a.witness.wanted.Load() {
		return hurryInterval
	}
	return tickInterval
}

// backoff keeps a decision that can't be carried out from being tried all the time.
type backoff struct {
	action ha.Action
	wait   time.Duration
	until  time.Time
}

// over says whether a decision may be tried.
func (b *backoff) over(d ha.Decision) bool { return d.Action != b.action || time.Now().After(b.until) }

func (b *backoff) note(d ha.Decision, err error) {
	if err == nil {
		*b = backoff{}
		return
	}
	b.wait = min(max(2*b.wait, firstRetry), lastRetry)
	b.action, b.until = d.Action, time.Now().Add(b.wait)
}

// decide observes, decides, and makes the ballot durable before anything is done with it.
func (a *Agent) decide(ctx context.Context) (ha.Decision, error) {
	if err := a.catchUp(); err != nil {
		return ha.Decision{}, err
	}
	view := a.observe(ctx)
	d := ha.Decide(view)
	if d.Ballot != view.Local.Memory.Ballot {
		memory, err := a.memory.Change(func(m *ha.Memory) bool {
			m.Ballot = d.Ballot
			return true
		})
		if err != nil {
			return d, err
		}
		view.Local.Memory = memory
	}
	a.describe(view, d)
	return d, nil
}

// catchUp takes over a newer record of the quorum that another instance or the
// witness has: who has missed a change can't be elected, and may not know whom to ask.
func (a *Agent) catchUp() error {
	names := a.peers.names()
	_, err := a.memory.Change(func(m *ha.Memory) bool {
		before := *m
		for _, name := range names {
			if status, _, ok := a.peers.last(name); ok {
				*m = ha.Learn(*m, ha.Ballot{Term: status.Term, Leader: status.Leader}, status.Election.Record)
			}
		}
		seen := a.witness.last()
		*m = ha.Learn(*m, seen.ballot, seen.record)
		return m.Record.Newer(before.Record)
	})
	return err
}

// staleLimit is how long a standby may fail to stream from a primary before it is no place to read from.
const staleLimit = 10 * time.Second

// describe puts what the others want to know into the status, and tells them at
// once where it makes them decide anew.
func (a *Agent) describe(view ha.View, d ha.Decision) {
	m := view.Local.Memory
	a.stale.Store(view.Local.Stalled > staleLimit)
	before := decisive(a.Status())
	a.report(func(s *protocol.Status) {
		s.Term, s.Leader, s.Data = m.Ballot.Term, m.Ballot.Leader, protocol.Data(view.Local.Data)
		s.Refusal, s.Resigned = d.Refusal, view.Local.Resigned
		s.Voters, s.Acknowledgements = nil, m.Record.Now.Acknowledgements
		for _, v := range m.Record.Now.Voters {
			s.Voters = append(s.Voters, v.Instance())
		}
		s.Election.Voter, s.Election.Lineage, s.Election.Record = m.Voter, m.Lineage, m.Record
		s.Election.Position = m.Position(max(view.Local.End, view.Local.Received))
		s.Election.LeaderLost, s.Election.Eligible, s.Election.Defeated = view.LeaderLost(), view.Eligible(), view.Defeated()
		s.Election.Rebuilding = d.Action == ha.Rewind || d.Action == ha.Clone && view.Local.Data != ha.DataEmpty
		s.Election.Successor = a.watch.successor
		s.Election.Leading = s.Role == protocol.RolePrimary && s.Ready && m.Won == m.Ballot.Term && m.Ballot.Leader == a.Name
	})
	if decisive(a.Status()) != before {
		a.tell()
	}
}

// tell tells the others how this instance is.
func (a *Agent) tell() { a.peers.spread(a.life, a.word()) }

// word is the status, with a later term that was promised since it was described: a leader that counts on this instance's word must
// not be told less.
func (a *Agent) word() protocol.Status {
	s, promised := a.Status(), a.memory.Get().Ballot
	if promised.Term > s.Term {
		s.Term, s.Leader, s.Resigned = promised.Term, promised.Leader, false
		s.Election.Leading, s.Election.Defeated, s.Election.LeaderLost = false, false, false
	}
	return s
}

// announce logs a decision when it is another one, and puts it into the status.
func (a *Agent) announce(d ha.Decision) {
	if d.Action != a.last.Action || d.Target != a.last.Target || d.Reason != a.last.Reason || d.Ballot != a.last.Ballot {
		a.Log.Info("decided", "action", string(d.Action), "target", d.Target, "term", d.Ballot.Term, "reason", d.Reason, "message", d.Message)
	}
	a.last = d
	a.report(func(s *protocol.Status) {
		if s.Reason != reasonNotAnswering || d.Action != ha.Lead && d.Action != ha.Follow {
			s.Reason, s.Message = d.Reason, d.Message
		}
	})
}

// pause waits until there is news or d has passed, and does meanwhile what
// others ask for: votes and records.
func (a *Agent) pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-a.wake:
	case <-timer.C:
	case task := <-a.tasks:
		task(ctx)
	case <-a.serverEnded():
	}
	a.setBusy(false)
}

// inLoop has the role loop do something between two decisions.
func (a *Agent) inLoop(ctx context.Context, do func(context.Context)) error {
	done := make(chan struct{})
	task := func(ctx context.Context) {
		defer close(done)
		do(ctx)
	}
	select {
	case a.tasks <- task:
		<-done
		return nil
	case <-ctx.Done():
		return fmt.Errorf("the role loop is at work on something else: %w", ctx.Err())
	}
}

// upstream says how to reach an instance as a standby of it.
func (a *Agent) upstream(target string) (protocol.Member, error) {
	for _, m := range a.constituents() {
		if m.Name == target {
			return m, nil
		}
	}
	return protocol.Member{}, fmt.Errorf("the primary %s is not among the members", target)
}
