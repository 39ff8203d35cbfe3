package agent

import (
	"slices"
	"time"

	"toban.dev/internal/ha"
	"toban.dev/internal/protocol"
)

// How long a leader that is asked to resign looks for somebody who can take
// over, and how long one that is told to stop waits until somebody has.
const (
	wishPatience  = 10 * time.Second
	leavePatience = 5 * time.Second
	// aloneAfter is when one that leaves stops looking for others: they leave too.
	aloneAfter = time.Second
)

// wish is what the leader is asked for, and since when.
type wish struct {
	ha.Wish
	since time.Time
	// restart says that it is for a restart: without a successor the server is
	// restarted in place.
	restart bool
	// led says that the instance led when it was told to leave.
	led bool
}

// ask asks the leader to leave the lead to another instance.
func (a *Agent) ask(to, reason string, restart bool) {
	a.Log.Info("asked to resign", "to", to, "reason", reason)
	a.mutex.Lock()
	again := restart && a.wish.restart // one that is asked again is the same wish
	if !a.wish.Leaving && !again {
		a.wish = wish{Wish: ha.Wish{Resign: true, To: to}, since: time.Now(), restart: restart}
	}
	a.status.SwitchoverError = ""
	a.mutex.Unlock()
	a.look()
}

// leave is being told to stop: a primary resigns first.
func (a *Agent) leave() {
	a.Log.Info("told to stop")
	a.mutex.Lock()
	a.wish = wish{Wish: ha.Wish{Resign: true, Leaving: true}, since: time.Now(), led: a.status.Role == protocol.RolePrimary}
	a.mutex.Unlock()
	a.look()
}

// currentWish is what is asked for. A wish that can't be met is dropped in the
// end, with the reason in the status.
func (a *Agent) currentWish() ha.Wish {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	w := a.wish
	if !w.Resign || w.Leaving {
		return w.Wish
	}
	granted := a.status.Role != protocol.RolePrimary
	late := time.Since(w.since) > wishPatience || w.restart && time.Since(w.since) > leavePatience
	if !granted && !late {
		return w.Wish
	}
	a.wish = wish{}
	switch {
	case granted:
	case w.restart:
		a.restart = true
	case w.To != "":
		a.status.SwitchoverError = w.To + " can't take over: it is no voter, or does not stream or answer"
	default:
		a.status.SwitchoverError = "no instance can take over: none is a voter that streams and answers"
	}
	return a.wish.Wish
}

// maySafelyEnd says that the instance was told to stop and nobody needs it any
// more: it did not lead, or another leads, or has had its time.
func (a *Agent) maySafelyEnd() bool {
	a.mutex.Lock()
	w := a.wish
	a.mutex.Unlock()
	if !w.Leaving {
		return false
	}
	m := a.memory.Get()
	alone := len(m.Record.Voters()) < 2 || time.Since(w.since) > aloneAfter && !a.peers.anyEligible()
	succeeded := m.Won != m.Ballot.Term || slices.ContainsFunc(a.peers.names(), func(name string) bool {
		status, _, ok := a.peers.last(name)
		return ok && status.Election.Leading && status.Term > m.Won
	})
	return alone || !w.led || succeeded || time.Since(w.since) > leavePatience
}
