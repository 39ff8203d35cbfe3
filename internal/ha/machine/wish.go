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
	// unheardAfter is for how long a majority may be silent before a primary that leaves stops looking for others. The
	// fence comes soon then, and would end its server at once: nobody would know where its WAL ends.
	unheardAfter = 800 * time.Millisecond
)

// Ending is why an instance that was told to stop may end, "" while it may not.
type Ending string

// The endings.
const (
	// NotLeading: it did not lead.
	NotLeading Ending = "NotLeading"
	// Succeeded: another leads a later term. It has all that is to be kept of the WAL here, and archives it.
	Succeeded Ending = "Succeeded"
	// Alone: nobody else has a vote, or nobody says that it could lead: the others leave too.
	Alone Ending = "Alone"
	// Unheard: no majority follows it any more, and it does not have the read lease.
	Unheard Ending = "Unheard"
	// WaitedInVain: somebody could have taken over, and has not.
	WaitedInVain Ending = "WaitedInVain"
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
		restart := e.Restart || w.Resign && w.restart             // a restart that waits for a successor stays one
		again := w.Resign && restart == w.restart && e.To == w.To // one that is asked again is the same wish
		if w.refused = ""; !w.Leaving && !again {
			*w = wish{
				Wish: ha.Wish{Resign: true, To: e.To}, since: i.now, restart: restart, restartServer: w.restartServer,
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
	stops := i.server.stopping || i.command != nil && i.command.Kind == Checkpoint
	begun, since := stops && i.last.Action == ha.Resign, i.now-w.since
	late := !begun && (since > wishPatience || w.restart && since > leavePatience)
	if !granted && !late {
		return
	}
	next := wish{restartServer: w.restartServer || !granted && w.restart}
	if !granted {
		next.refused = w.inVain()
	}
	*w = next
}

// inVain says why nobody has taken over, "" where a restart does not need that.
func (w wish) inVain() string {
	switch {
	case w.To != "":
		return w.To + " can't take over: it is no voter, does not stream or answer, or too few could vote"
	case w.restart:
		return ""
	}
	return "no instance can take over: none is a voter that streams and answers, or too few could vote"
}

// WishRefused is why the last wish could not be met, "" where it could.
func (i *Instance) WishRefused() string { return i.wish.refused }

// Ending says whether the instance may end, which was told to stop, and why. One that led waits until another leads.
// That another has been elected is not enough: it may be told to stop as well before it leads, and archives nothing
// then. Nor is an orderly stop of the server cut short: without the shutdown's record nobody knows where the WAL ends.
func (i *Instance) Ending() Ending {
	w, waited := i.wish, i.now-i.wish.since
	switch {
	case !w.Leaving:
		return ""
	case !w.led:
		return NotLeading
	case i.server.stopping:
		return ""
	case i.succeeded():
		return Succeeded
	case len(i.hardState.Configuration.Voters()) < 2, waited > aloneAfter && !i.anyEligible():
		return Alone
	case i.unheard():
		return Unheard
	case waited > leavePatience:
		return WaitedInVain
	}
	return ""
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

// unheard says that a primary will be fenced soon.
func (i *Instance) unheard() bool {
	local := i.View().Local
	return local.Server == ha.ServerPrimary && local.Alone > unheardAfter && !local.HasReadLease
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
