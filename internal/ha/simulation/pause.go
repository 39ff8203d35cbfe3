package simulation

import (
	"time"

	"toban.dev/internal/ha/machine"
)

// pause is until when an instance does nothing, and what it has missed.
type pause struct {
	n *node
	// until is when agent and server go on, busy when the agent alone does.
	until, busy time.Duration
	// due is what was due in the pause, held what the agent has not taken in yet, while it hangs. Both keep their
	// order, as the agent's queue does: the end of a server does not overtake its start.
	due  []func()
	held []machine.Event
}

// later runs f on the instance after a while, unless it has crashed by then. A
// paused instance goes on where it was.
func (n *node) later(d time.Duration, f func()) {
	epoch := n.epoch
	n.w.after(d, func() { n.resume(epoch, f) })
}

func (n *node) resume(epoch int, f func()) {
	switch {
	case n.epoch != epoch || !n.up:
	case n.pause.until > n.w.now || len(n.pause.due) > 0:
		n.pause.miss(func() { n.resume(epoch, f) })
	default:
		f()
	}
}

// miss keeps what is due until the pause is over.
func (p *pause) miss(f func()) {
	p.due = append(p.due, f)
	if len(p.due) == 1 {
		p.n.w.after(p.until-p.n.w.now, p.goOn)
	}
}

// goOn does what was due, once the pause is over.
func (p *pause) goOn() {
	if w := p.n.w; p.until > w.now {
		w.after(p.until-w.now, p.goOn)
		return
	}
	due := p.due
	p.due = nil
	for _, f := range due {
		f()
	}
}

// hold keeps an event until the agent goes on.
func (p *pause) hold(e machine.Event) {
	p.held = append(p.held, e)
	if len(p.held) == 1 {
		p.n.later(0, p.release)
	}
}

// release has the machine take in what was held, once the agent goes on.
func (p *pause) release() {
	if p.n.busy() {
		p.n.later(p.busy-p.n.w.now, p.release)
		return
	}
	held := p.held
	p.held = nil
	for _, e := range held {
		p.n.step(e)
	}
}

// end takes a pause back.
func (p *pause) end() {
	if p.n == nil {
		return // it was never started
	}
	p.until, p.busy = min(p.until, p.n.w.now), min(p.busy, p.n.w.now)
	p.goOn()
	p.release()
}
