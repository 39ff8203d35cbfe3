package running

import (
	"time"

	"toban.dev/internal/agent/pressure"
)

// looks are how the looks at a server went, and how long the next may take.
type looks struct {
	// pressure sees how busy the machine is.
	pressure *pressure.Gauge
	// failures are those in a row.
	failures int
	// proven says that in this look the server has done what its role asks, tended when the rest was last done too,
	// answered when it has last done so.
	proven           bool
	tended, answered time.Time
}

// deadline is how long a look may take. On a busy machine one long look is better than several short ones: each that is
// given up takes its session with it.
func (l *looks) deadline() time.Duration {
	deadline, slack := firstDeadline, l.pressure.Slack()
	if l.failures > 0 {
		deadline, slack = secondDeadline, slack/2
	}
	if l.pressure.Busy() {
		return max(deadline+slack, busyDeadline)
	}
	return deadline + slack
}

// failed notes that a look has failed, and says whether that is one of two in a row: late says that it took too long.
func (l *looks) failed(late bool) (twice bool) {
	if l.failures++; late && l.busy() {
		l.failures = 1
	}
	return l.failures >= 2
}

// busy says of a look that was too late that the server has done what its role asks, and only the rest took too long;
// or that the machine is busy, and the server has answered not long ago. On a busy node that is no reason to end it:
// another instance may be on a node that is as busy. The next look is at once, so that one that has hung in the
// meantime is found no later.
func (l *looks) busy() bool {
	return l.proven && time.Since(l.tended) < tendPatience ||
		l.pressure.Busy() && time.Since(l.answered) < busyPatience
}
