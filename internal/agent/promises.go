package agent

import (
	"context"
	"log/slog"
	"time"

	"toban.dev/internal/agent/pressure"
	"toban.dev/internal/ha/machine"
	"toban.dev/internal/volume"
)

// promises say how long this instance lets a leader be silent beyond the limits: for the sake of its own machine, or of
// the leader's, which goes on for as long as its followers have promised (docs/busy.md, "A machine that is busy").
type promises struct {
	gauge *pressure.Gauge
	// leaders is the slack of the leader that this instance follows.
	leaders func() time.Duration
	mark    *volume.SlackMark
	post    func(machine.Event)
	log     *slog.Logger

	// said is what is promised now, since when that is so; failed is why the mark could not be written last, "" where
	// it could.
	said   machine.SlackSeen
	since  time.Time
	failed string
}

func newPromises(a *Agent) *promises {
	return &promises{
		gauge: a.pressure, leaders: a.leadersSlack, post: a.post, log: a.options.Log, since: time.Now(),
		mark: volume.NewSlackMark(a.options.Volume, a.options.WriteFile),
	}
}

// run promises what is needed, until ctx ends.
func (p *promises) run(ctx context.Context) error { return p.gauge.Run(ctx, p.look) }

// look promises what is needed now. That slack is promised is on disk before it is; where the disk does not take that,
// none is, and it is tried again. The mark goes when no promise counts any more.
func (p *promises) look() {
	needed, now := machine.SlackSeen{Own: p.gauge.Slack(), Leaders: p.leaders()}, time.Now()
	most := max(needed.Own, needed.Leaders)
	if needed == p.said {
		if most == 0 && now.Sub(p.since) > machine.SlackHeld {
			p.put(false)
		}
		return
	}
	if most > 0 && !p.put(true) {
		return
	}
	p.log.Info("how long a leader may be silent beyond the limits has changed",
		"own", needed.Own.String(), "leaders", needed.Leaders.String())
	p.said, p.since = needed, now
	p.post(needed)
}

// put sets the mark or takes it away, and says whether that is on disk.
func (p *promises) put(promised bool) bool {
	err := p.mark.Put(promised)
	if err != nil && err.Error() != p.failed { // once: a disk that is full may stay so
		p.log.Warn("the mark of slack could not be written", "promised", promised, "error", err.Error())
	}
	if p.failed = ""; err != nil {
		p.failed = err.Error()
	}
	return err == nil
}

// leadersSlack is the slack of the leader that this instance follows.
func (a *Agent) leadersSlack() time.Duration {
	s := a.status.Get()
	if s.Leader == "" || s.Leader == s.Name {
		return 0
	}
	said, _ := a.peers.Last(s.Leader)
	return said.Election.Limits.Slack
}
