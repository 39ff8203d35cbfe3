package machine

import (
	"time"

	"toban.dev/internal/ha"
)

// MaxSlack is the most that a leader is let be silent for beyond the limits (docs/busy.md, "A machine that is busy").
// SlackHeld is for how long a promise of it counts at the most after it is not made any more.
const (
	MaxSlack  = 8 * time.Second
	SlackHeld = MaxSlack + ha.AsyncSilenceLimit
)

// slack is how much longer than the limits this instance lets its leader be silent, because its own machine is busy, or
// the leader's. It is a promise to the leader, which goes on for that long after an answer of this instance: so a
// longer one counts at once, and a shorter one only when the former can have expired at every leader that has heard it.
type slack struct {
	// own is what its own machine asks for, said what this instance says now.
	own, said time.Duration
	// held is what it has said before and still goes by, until a moment.
	held  time.Duration
	until time.Duration
}

// newSlack is that of a process that has just started. promised says that the one before has promised a leader to let
// it be silent for longer; how much longer is not known.
func newSlack(now time.Duration, promised bool) slack {
	if !promised {
		return slack{}
	}
	return slack{held: MaxSlack, until: now + SlackHeld}
}

// see takes in what is promised from now on: for the sake of this machine, or of the leader's.
func (s *slack) see(now, own, leaders time.Duration) {
	said := max(own, leaders)
	if said < s.said {
		if now >= s.until {
			s.held, s.until = 0, now
		}
		s.held, s.until = max(s.held, s.said), max(s.until, now+s.said+ha.AsyncSilenceLimit)
	}
	s.own, s.said = own, said
}

// promised is for how long this instance lets its leader be silent, by its own word.
func (s *slack) promised(now time.Duration) time.Duration {
	if now < s.until {
		return max(s.said, s.held)
	}
	return s.said
}

// proposalPatience is how long the answer to a proposal is waited for: longer where this machine is busy, or that of
// who is asked. Four times in it the next one is made.
func (s *slack) proposalPatience(its time.Duration) time.Duration {
	return max(4*offerInterval, s.own/2, min(its, MaxSlack)/2)
}

// LimitsSaid are the limits that this instance says it goes by.
func (i *Instance) LimitsSaid() ha.Limits { return i.own.WithSlack(i.slack.said) }

// slackFor is how much longer than the limits the leader of the ballot may be silent: for the sake of its machine, as
// it has said last, or by what this instance has promised.
func (i *Instance) slackFor(leader string) time.Duration {
	promised := i.slack.promised(i.now)
	if h := i.news.peer(leader); h != nil && leader != i.name {
		return max(promised, h.said.Limits.Slack)
	}
	return promised
}
