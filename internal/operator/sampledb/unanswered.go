package sampledb

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"toban.dev/internal/naming"
	"toban.dev/internal/operator/pods"
	"toban.dev/internal/protocol"
)

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

// note remembers whether a Pod has answered, and says for how long it has not: since it was first asked in vain, so
// that the time in which nobody asked does not count.
func (u *unanswered) note(db, pod types.UID, answered bool, now time.Time) time.Duration {
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

func (u *unanswered) forget(db types.UID) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.all, db)
}

// askUpgrade asks the Pod that upgrades the data how far it is, and notes for how long it has not answered.
func (s *upgradeTopic) askUpgrade(ctx context.Context, out *upgradeWork) {
	var p *protocol.BackupProgress
	var whom types.UID
	if out.pod != nil && !pods.Ended(out.pod) {
		whom, out.job.Lost = out.pod.UID, pods.LostOf(out.pod, s.now)
		p = pods.Ask(ctx, s.Client, s.Pods, naming.IdentityUpgrade, out.pod)
	}
	out.job.Silent = s.unanswered.note(s.db.UID, whom, p != nil, s.now)
	if p == nil {
		return
	}
	out.waits, out.job.Says = p.Step == protocol.StepAwaitsBegin, p.Step
	if p.Upgrade != nil && p.Upgrade.SystemIdentifier != "" {
		out.job.Done, out.result = true, p.Upgrade
	}
}
