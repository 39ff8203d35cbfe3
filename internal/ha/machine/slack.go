package machine

import (
	"time"

	"toban.dev/internal/ha"
)

// MaxSlack is the most that a leader is let be silent for beyond the limits (docs/ha.md, "A machine that is busy").
const MaxSlack = 8 * time.Second

// slackHeard is how long before it counts the last word of a leader may have been asked for: see heard.hear.
const slackHeard = 2 * ha.HeartbeatInterval

// slack is how much longer than the limits this instance lets its leader be silent, because its own machine is busy. It
// is a promise to the leader, which goes on for that long after an answer of this instance: so a longer one counts at
// once, and a shorter one only when the former can have expired at every leader that has heard of it.
type slack struct {
	// said is what this instance says now, since when it has said at least that, and before what it said until then.
	said   time.Duration
	since  time.Duration
	before time.Duration
	// held is what it has said before and still goes by, until a moment.
	held  time.Duration
	until time.Duration
}

// newSlack is that of a process that has just started. promised says that the one before has promised a leader to let
// it be silent for longer; how much longer is not known.
func newSlack(now time.Duration, promised bool) slack {
	if !promised {
		return slack{since: now}
	}
	return slack{since: now, held: MaxSlack, until: now + SlackHeld}
}

// SlackHeld is for how long a promise counts at the most after it is not made any more.
const SlackHeld = MaxSlack + ha.AsyncSilenceLimit

// see takes in how busy the machine is.
func (s *slack) see(now, said time.Duration) {
	switch {
	case said > s.said:
		s.before, s.since = s.said, now
	case said < s.said:
		if now >= s.until {
			s.held = 0
		}
		s.held, s.until = max(s.held, s.said), now+s.said+ha.AsyncSilenceLimit
		s.before = min(s.before, said)
	}
	s.said = said
}

// own is what this instance goes by for its own sake.
func (s *slack) own(now time.Duration) time.Duration {
	if now < s.until {
		return max(s.said, s.held)
	}
	return s.said
}

// heardBy is what another has heard that was answered by this instance at a time.
func (s *slack) heardBy(answered time.Duration) time.Duration {
	if answered >= s.since+slackHeard {
		return s.said
	}
	return s.before
}

// limitsSaid are the limits that this instance says.
func (i *Instance) limitsSaid() ha.Limits { return i.own.WithSlack(i.slack.said) }

// LimitsSaid are the limits that this instance says it goes by.
func (i *Instance) LimitsSaid() ha.Limits { return i.limitsSaid() }

// slackFor is how much longer than the limits the leader of the ballot may be silent: for the sake of its machine, as
// it has said last, or of this one.
func (i *Instance) slackFor(leader string) time.Duration {
	own := i.slack.own(i.now)
	if h := i.news.peer(leader); h != nil && leader != i.name {
		return max(own, h.said.Limits.Slack)
	}
	return own
}

// extension is by how much longer than the fence an answer of another keeps this instance going as its leader. That one
// waits for its own slack, and for the one that this instance had said when it was last heard there. Release 0.1.0
// waits for neither.
func (i *Instance) extension(h *heard) time.Duration {
	limits := h.said.Limits
	if limits.Silence == 0 {
		return 0
	}
	return max(limits.Slack, i.slack.heardBy(h.counts))
}
