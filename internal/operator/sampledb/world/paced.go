package world

import (
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// How long what is said stays as it is: QuietPause that machines are busy, so that one which is so now and then has
// little written; SentencePause all else.
const (
	SentencePause = 30 * time.Second
	QuietPause    = 5 * time.Minute
)

// paced has what is said of each SampleDB change seldom: a busy machine must not have more written. An operator that
// starts anew takes what it sees first. The zero value is ready for use; it is safe for concurrent use.
type paced struct {
	mu  sync.Mutex
	all map[types.UID]pacedVerdict
}

// pacedVerdict is what is said since a time, how much it weighs, and when it was seen to be so last.
type pacedVerdict struct {
	Verdict
	since, seen time.Time
	weight      time.Duration
}

// Say is what is to be said where now a verdict would be. What is not true is said for a pause at least, in the same
// words, unless the next one weighs more. That there is nothing to say is said at once; where it is not known whether
// there is, the last one is said for a while.
func (p *paced) Say(db types.UID, now time.Time, pause, weight time.Duration, next Verdict) Verdict {
	p.mu.Lock()
	defer p.mu.Unlock()
	last, known := p.all[db]
	if last.Status == metav1.ConditionTrue || weight > last.weight {
		pause = min(pause, SentencePause)
	}
	unknown := next.Reason == "" && next.Status == metav1.ConditionUnknown
	switch {
	case unknown && known && now.Sub(last.seen) < SentencePause:
		return last.Verdict
	case unknown:
		next = Verdict{}
	case known && next.Reason != "":
		last.seen = now
		p.all[db] = last
	}
	switch {
	case next.Reason == "":
		delete(p.all, db)
		return next
	case known && (last.Verdict == next || now.Sub(last.since) < pause):
		return last.Verdict
	case p.all == nil:
		p.all = map[types.UID]pacedVerdict{}
	}
	p.all[db] = pacedVerdict{next, now, now, weight}
	return next
}

func (p *paced) Forget(db types.UID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.all, db)
}

// unanswered remembers since when a Pod that upgrades data, or a leader, has not answered, by the UID of the SampleDB.
// An operator that starts anew gives them all their time again. The zero value is ready for use; it is safe for
// concurrent use.
type unanswered struct {
	mu  sync.Mutex
	all map[types.UID]unansweredSince
}

// unansweredSince is of the Pod that was asked, "" where there was none to ask.
type unansweredSince struct {
	pod   types.UID
	since time.Time
}

// Note remembers whether a Pod has answered, and says for how long it has not: since it was first asked in vain, so
// that the time in which nobody asked does not count.
func (u *unanswered) Note(db, pod types.UID, answered bool, now time.Time) time.Duration {
	u.mu.Lock()
	defer u.mu.Unlock()
	if answered {
		delete(u.all, db)
		return 0
	}
	if u.all == nil {
		u.all = map[types.UID]unansweredSince{}
	}
	last, known := u.all[db]
	if !known || last.pod != pod {
		last = unansweredSince{pod, now}
		u.all[db] = last
	}
	return now.Sub(last.since)
}

func (u *unanswered) Forget(db types.UID) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.all, db)
}

// Pauses until a SampleDB is looked at again when nothing happens before. Most
// changes are watched; what is asked for again is what only agents know.
const (
	PauseConflict = 100 * time.Millisecond
	PauseStarting = time.Second
	// PauseShort is while no client is let in.
	PauseShort   = 200 * time.Millisecond
	PauseWorking = 2 * time.Second
	PauseStuck   = 10 * time.Second
	PauseResting = 5 * time.Minute
	// PauseArchiving is how old what the status says of the archive may be: only the
	// agents know it, and that it goes on must not be believed for long.
	PauseArchiving = 30 * time.Second

	// StuckAfter is when what is under way is looked at less often.
	StuckAfter = 2 * time.Minute
	// PauseStuckLong is for what has been stuck for long, or waits for something of which nobody tells.
	PauseStuckLong = 30 * time.Second
)
