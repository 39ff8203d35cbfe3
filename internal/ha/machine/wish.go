package machine

import (
	"time"

	"toban.dev/internal/ha"
)

// How long a leader that is asked to resign looks for somebody who can take over, and how long one that is told to stop
// waits until somebody has.
const (
	wishPatience  = 10 * time.Second
	leavePatience = 5 * time.Second
	// aloneAfter is when one that leaves stops looking for others: they leave too.
	aloneAfter = time.Second
)

// wish is what the leader is asked for, and since when.
type wish struct {
	ha.Wish
	since time.Duration
	// restart says that it is for a restart: without a successor the server is restarted in place.
	restart bool
	// restartServer says that the server is to be restarted in place.
	restartServer bool
	// led says that the instance led when it was told to leave.
	led bool
	// refused is why the last wish could not be met, "" where it could.
	refused string
}

// wishFor takes in what is asked for.
func (i *Instance) wishFor(e Event) {
	w := &i.wish
	switch e := e.(type) {
	case LeaveAsked:
		*w = wish{Wish: ha.Wish{Resign: true, Leaving: true}, since: i.now, led: i.server.role == ha.ServerPrimary}
	case RestartAsked:
		w.restartServer = true
	case ResignAsked:
		again := w.Resign && e.Restart == w.restart && e.To == w.To // one that is asked again is the same wish
		if w.refused = ""; !w.Leaving && !again {
			*w = wish{
				Wish: ha.Wish{Resign: true, To: e.To}, since: i.now, restart: e.Restart, restartServer: w.restartServer,
			}
		}
	}
}

// dropWish forgets a wish that is granted, or that can't be in the end, with the reason.
func (i *Instance) dropWish() {
	w := &i.wish
	if !w.Resign || w.Leaving {
		return
	}
	granted := i.server.role != ha.ServerPrimary
	late := i.now-w.since > wishPatience || w.restart && i.now-w.since > leavePatience
	if !granted && !late {
		return
	}
	next := wish{restartServer: w.restartServer}
	switch {
	case granted:
	case w.restart:
		next.restartServer = true
	case w.To != "":
		next.refused = w.To + " can't take over: it is no voter, or does not stream or answer"
	default:
		next.refused = "no instance can take over: none is a voter that streams and answers"
	}
	*w = next
}

// WishRefused is why the last wish could not be met, "" where it could.
func (i *Instance) WishRefused() string { return i.wish.refused }

// MayEnd says that the instance was told to stop and nobody needs it any more: it did not lead, or another
// leads, or has had its time.
func (i *Instance) MayEnd() bool {
	w := i.wish
	if !w.Leaving {
		return false
	}
	m, waited := i.hardState, i.now-w.since
	alone := len(m.Configuration.Voters()) < 2 || waited > aloneAfter && !i.anyEligible()
	return alone || !w.led || m.Won != m.Ballot.Term || i.succeeded() || waited > leavePatience
}

// succeeded says that another leads a later term.
func (i *Instance) succeeded() bool {
	for _, h := range i.news.heard {
		if h.said.Peer.Leading && h.said.Peer.Ballot.Term > i.hardState.Won {
			return true
		}
	}
	return false
}

// anyEligible says whether another has said a moment ago that it could lead.
func (i *Instance) anyEligible() bool {
	for _, h := range i.news.heard {
		if h.said.Peer.Eligible && i.now-h.at < recently {
			return true
		}
	}
	return false
}
