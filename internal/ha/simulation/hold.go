package simulation

import (
	"time"

	"toban.dev/internal/ha"
)

// Times of the agent: when a leader puts on record that it holds on, and how long a winner waits for the API to answer.
const (
	holdAfter         = 600 * ms
	overtakePatience  = 300 * ms
	releaseInterval   = 100 * ms
	hurried           = 50 * ms   // how soon it looks again while it may have to be fenced
	pauseIsNoticedFor = 1500 * ms // when what was missed in a pause has been made up for
)

// holds says that the witness has the instance on record as one that holds on, and was asked lately.
func (n *node) holds() bool {
	w := n.witness
	return w.ok && w.holding == n.mem.Ballot.Term && w.ballot.Term <= n.mem.Ballot.Term && n.clock()-w.at <= ha.HoldLimit
}

// holdOn puts on record that the leader goes on without its majority, or that it has it again.
func (n *node) holdOn() {
	term, alone := n.mem.Won, n.alone() > holdAfter
	on := n.leads() && n.server == ha.ServerPrimary && alone
	switch {
	case on && n.witness.holding != term:
		n.change(func(m ha.Memory) (ha.Memory, bool) { return ha.Hold(m, term) })
	case !on && term > 0 && n.witness.holding == term && (n.server != ha.ServerPrimary || n.leads()):
		n.change(func(m ha.Memory) (ha.Memory, bool) { return ha.Release(m, term), true })
	}
}

// change writes the object by what it is, once.
func (n *node) change(to func(ha.Memory) (ha.Memory, bool)) {
	sent := n.clock()
	n.read(func(m ha.Memory, version int) {
		next, ok := to(m)
		if !ok {
			n.seeWitness(sent, m)
			return
		}
		sent := n.clock()
		n.swap(version, next, func(ok bool) {
			if ok {
				n.seeWitness(sent, next)
			}
		})
	})
}

// overtake looks whether a leader of an earlier term holds on, and waits until it can't any more, before the winner leads. Where
// the API does not answer, it goes on.
func (n *node) overtake(term uint64, then func()) {
	if n.overtakes != term || n.w.breaks(OvertakesUnasked) {
		then()
		return
	}
	over := false
	finish := func(wait, asked bool) {
		if over {
			return
		}
		if over, n.unasked = true, !asked; wait {
			n.awaitRelease(term, n.w.now+ha.OvertakeWait, then)
		} else {
			then()
		}
	}
	n.askOvertake(term, func() bool { return over }, finish, func() { over, n.starting = true, false })
	n.later(overtakePatience, func() { finish(false, false) })
}

// awaitRelease looks until no leader of a term before is on record as one that holds on, or can't in any case.
func (n *node) awaitRelease(term uint64, until time.Duration, then func()) {
	over := false
	finish := func() {
		if !over {
			over = true
			then()
		}
	}
	if n.w.now >= until {
		finish()
		return
	}
	n.read(func(m ha.Memory, _ int) {
		if !m.HeldBefore(term) {
			finish()
		}
	})
	n.later(min(releaseInterval, until-n.w.now), func() {
		if !over {
			over = true
			n.awaitRelease(term, until, then)
		}
	})
}

func (n *node) askOvertake(term uint64, over func() bool, finish func(wait, asked bool), refused func()) {
	sent := n.clock()
	n.read(func(m ha.Memory, version int) {
		if over() {
			return
		}
		next, wait, ok := ha.Overtake(m, ha.Ballot{Term: term, Leader: n.name}, n.alone() > holdAfter)
		if wait {
			n.log("waits until %d no longer holds on", m.Holding)
		}
		switch {
		case !ok:
			n.seeWitness(sent, m)
			refused()
		case next.Ballot == m.Ballot && next.Holding == m.Holding:
			finish(wait, true)
		default:
			n.swap(version, next, func(ok bool) {
				if ok {
					finish(wait, true)
				} else if !over() {
					n.askOvertake(term, over, finish, refused)
				}
			})
		}
	})
}
