package ha

import (
	"cmp"
	"time"
)

// Limits are the times of an instance that must fit together with those of the others, which may be of other releases:
// whoever stands for election waits longer than whoever leads goes on. Each instance says its own, and goes by what
// fits with all (With).
type Limits struct {
	// Silence, AsyncSilence and Preempt are for how long is waited: SilenceLimit, AsyncSilenceLimit, PreemptWait.
	Silence      time.Duration `json:"silence,omitempty"`
	AsyncSilence time.Duration `json:"asyncSilence,omitempty"`
	Preempt      time.Duration `json:"overtake,omitempty"`
	// Fence and ReadLease are for how long is gone on: FenceLimit, ReadLeaseLimit.
	Fence     time.Duration `json:"fence,omitempty"`
	ReadLease time.Duration `json:"hold,omitempty"`
	// Slack is by how much Silence and AsyncSilence are longer at the moment than on a machine that is not busy
	// (WithSlack). Releases that do not know it wait for all of Silence.
	Slack time.Duration `json:"slack,omitempty"`
}

// OwnLimits are those of this release.
func OwnLimits() Limits {
	return Limits{
		Silence: SilenceLimit, AsyncSilence: AsyncSilenceLimit, Preempt: PreemptWait, Fence: FenceLimit,
		ReadLease: ReadLeaseLimit,
	}
}

// WithSlack are the limits of an instance that lets a leader be silent for longer.
func (l Limits) WithSlack(slack time.Duration) Limits {
	l.Silence, l.AsyncSilence, l.Slack = l.Silence+slack, l.AsyncSilence+slack, slack
	return l
}

// firstLimits are those of release 0.1.0, which does not say them. They stay as they are.
var firstLimits = Limits{
	Silence: 2 * time.Second, AsyncSilence: 3500 * time.Millisecond, Preempt: 1100 * time.Millisecond,
	Fence: 1250 * time.Millisecond, ReadLease: 750 * time.Millisecond,
}

// With are the limits that fit with those of another instance, too: to wait as long as the one that waits longer, and
// to go on no longer than the one that gives up sooner. What the other has not said is that of release 0.1.0. Its slack
// is left out: whoever waits adds that of the leader and its own (Local.Slack).
func (l Limits) With(o Limits) Limits {
	return Limits{
		Silence:      max(l.Silence, cmp.Or(o.Silence, firstLimits.Silence)-o.Slack),
		AsyncSilence: max(l.AsyncSilence, cmp.Or(o.AsyncSilence, firstLimits.AsyncSilence)-o.Slack),
		Preempt:      max(l.Preempt, cmp.Or(o.Preempt, firstLimits.Preempt)),
		Fence:        min(l.Fence, cmp.Or(o.Fence, firstLimits.Fence)),
		ReadLease:    min(l.ReadLease, cmp.Or(o.ReadLease, firstLimits.ReadLease)),
	}
}

// limits are those that the instance goes by: this release's where no others have been told of.
func (l Local) limits() Limits { return cmp.Or(l.Limits, OwnLimits()) }
