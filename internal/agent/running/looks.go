package running

import (
	"context"
	"sync/atomic"
	"time"

	"toban.dev/internal/agent/pressure"
	"toban.dev/internal/protocol"
	"toban.dev/internal/wal"
)

// looks are how the looks at a server went, and how long the next may take.
type looks struct {
	// pressure sees how busy the machine is.
	pressure *pressure.Gauge
	// slow says that a write to the volume has not come back for a while; nil for never.
	slow *atomic.Bool
	// failures are those in a row, silent says that in the last one a primary did not say what it has in memory, and
	// short that it had little time for that; spared that a second one was not counted, because the volume was slow.
	failures              int
	silent, short, spared bool
	// proven says that in this look the server has done what its role asks, tended when the rest was last done too,
	// answered when it has last done so.
	proven           bool
	tended, answered time.Time
	// observed says that in this look it was seen what is particular to its role.
	observed bool
	// hanging is since when each look has seen that a standby's receiver hangs, zero for never.
	hanging time.Time
}

// hangPatience is for how long a receiver must be seen to hang before it is killed. Where the clock, or the machine,
// has made a jump, or it has just begun with another timeline, one that is well looks so too: until it has asked its
// primary, or has noticed.
const hangPatience = time.Minute

// hang notes whether a standby's receiver hangs, and says whether it is to be killed.
func (l *looks) hang(hangs bool) bool {
	switch {
	case !hangs:
		l.hanging = time.Time{}
		return false
	case l.hanging.IsZero():
		l.hanging = time.Now()
	}
	if time.Since(l.hanging) < hangPatience {
		return false
	}
	l.hanging = time.Now()
	return true
}

// deadline is how long a look may take. On a busy machine one long look is better than several short ones: each that is
// given up takes its session with it. Where the one before has failed the next has less time; but not where two have,
// and the server is given up: then it may come back.
func (l *looks) deadline() time.Duration {
	return l.patience(firstDeadline, secondDeadline, l.failures == 1 && !l.volumeSlow())
}

// answer is how long a primary may take in it for what it has in memory. That waits for no disk as a rule. But who
// takes a snapshot, or begins a session, may wait for one who is given the number of a transaction and has to write a
// page for it (PostgreSQL 17, ProcArrayAdd and ExtendCLOG): so where the volume is slow it has all of the look.
func (l *looks) answer() time.Duration {
	if l.short = !l.volumeSlow(); !l.short {
		return l.deadline()
	}
	return l.patience(firstAnswer, secondAnswer, l.failures == 1 && l.silent)
}

func (l *looks) volumeSlow() bool { return l.slow != nil && l.slow.Load() }

// patience is how long something may take that is to be done in first, or in second where it is tried again.
func (l *looks) patience(first, second time.Duration, again bool) time.Duration {
	deadline, slack := first, l.pressure.Slack()
	if again {
		deadline, slack = second, slack/2
	}
	if l.pressure.Busy() {
		return max(deadline+slack, busyDeadline)
	}
	return deadline + slack
}

// succeeded notes that a look has not failed.
func (l *looks) succeeded() { l.failures, l.silent, l.spared = 0, false, false }

// failed notes that a look has failed, and says whether that is one of two in a row: late says that it took too long,
// silent that the server did not say what it has in memory. That is asked twice, whatever has failed before: a session
// that somebody has ended says nothing of the server. Where the volume has become slow meanwhile, it is asked once
// more.
func (l *looks) failed(late, silent bool) (twice bool) {
	second := silent && l.failures == 1
	spare := second && l.short && !l.spared && l.volumeSlow()
	again := second && !l.silent || spare
	l.silent, l.spared = silent, l.spared || spare
	if l.failures++; again || late && l.busy() {
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

// lateness is for how long WAL waits on a standby between its receipt and its replay: who reads there sees data that is
// so old. No clock of another node counts. The zero value is ready.
type lateness struct {
	// waits is what has been received and not been replayed, the oldest first, with when it was seen to be there.
	waits []received
}

// received is how far the WAL reached at a time.
type received struct {
	end wal.LSN
	at  time.Time
}

// mostWaits bounds what is remembered: some minutes. Of more, the oldest stays.
const mostWaits = 1000

// see notes how far WAL was received and replayed at a time, and returns for how long the oldest has waited.
func (l *lateness) see(end, replayed wal.LSN, now time.Time) time.Duration {
	if n := len(l.waits); n > 0 && end < l.waits[n-1].end {
		l.waits = nil // another leader's WAL, which has less: what was received of the former one is not replayed
	}
	done := 0
	for done < len(l.waits) && l.waits[done].end <= replayed {
		done++
	}
	l.waits = l.waits[done:]
	last := replayed
	if n := len(l.waits); n > 0 {
		last = l.waits[n-1].end
	}
	if end > last && len(l.waits) < mostWaits {
		l.waits = append(l.waits, received{end, now})
	}
	if len(l.waits) == 0 {
		return 0
	}
	return now.Sub(l.waits[0].at)
}

// spareRoom sees to a server whose volume gets full. A checkpoint, or a restartpoint of a standby, removes the WAL that
// nobody needs. On a primary, which takes no writes then, the transactions are ended that were writing, and if need be
// those that only read.
func (t *monitor) spareRoom(ctx context.Context) error {
	spares, primary := t.config.spares(), t.standing.IsPrimary()
	t.status.Change(func(s *protocol.Status) { s.ReadOnly = spares && primary })
	if !spares {
		t.spared = time.Time{}
		return nil
	}
	if t.spared.IsZero() {
		t.spared = time.Now()
		t.checkpoint()
	}
	if !primary {
		return nil
	}
	reads := t.flags.EndReads.Load()
	ended, err := t.session.EndWriters(ctx, t.spared, reads)
	if ended > 0 {
		t.log.Warn("sessions were ended, for the volume gets full", "sessions", ended, "readsToo", reads)
	}
	return err
}

// observeSpace notes whether there is room for WAL.
func (t *monitor) observeSpace() {
	free, err := t.server.Directory().FreeSpace()
	if err != nil {
		t.log.Warn("the free space of the volume is not known", "error", err.Error())
		return
	}
	t.flags.full.Store(free < leastSpace)
}
