package machine

import (
	"time"

	"toban.dev/internal/ha"
)

// confirmPatience is for how long a server that has come up may wait for a majority's word.
const confirmPatience = time.Second

// comeback is a leader's way back. Its server runs, closed: first a majority has to say that it still leads. Then the
// others follow it, and its WAL is proven. Then clients are let in.
type comeback struct {
	// promotes says that it was elected, and ended before its server was a primary.
	promotes bool
	// up is since when the server could let clients in, or never.
	up   time.Duration
	poll *poll
}

// lead makes the instance the primary of the term that it has won.
func (i *Instance) lead() {
	m := i.hardState
	switch {
	case i.server.begins.Timeline > 0 && !i.server.open:
		i.storeTimeline() // the disk has not taken it
	case i.server.role == ha.ServerPrimary:
		i.comeBack()
	case len(m.TermHistory) == 0:
		m.TermHistory = []ha.TermStart{{Term: m.Won, LSN: 0, Timeline: 1}}
		i.store(m, nil)
	case m.TermHistory[len(m.TermHistory)-1].Timeline == 0:
		// It was elected, and ended before it had a timeline of its own: by now others may have elected another.
		i.comeBackElected()
	case i.server.role == ha.ServerStandby:
		i.stop(nil)
	default:
		i.startPrimary()
	}
}

// startPrimary starts the server of a leader that comes back. Clients are let in when that is confirmed: an only voter
// needs nobody's word.
func (i *Instance) startPrimary() {
	alone := i.hardState.Configuration.Elects(map[ha.Voter]bool{i.hardState.Voter: true}, false)
	i.server.rule = i.rule()
	i.server.role, i.server.seen = ha.ServerPrimary, ServerSeen{}
	i.do(Command{Kind: StartPrimary, Rule: i.server.rule, Closed: !alone}, func(d Done) {
		if d.Err != "" {
			i.fenceServer("it could not be started")
			i.watch.failed = d.Err // others may be able to lead
			return
		}
		i.runs(d.ID, ha.ServerPrimary, ha.Ballot{}, alone)
		i.watch.failed = ""
		if alone {
			i.emit(Publish{})
		}
	})
	i.server.run = i.command.ID
}

// comeBackElected asks the same before the promotion of one that was elected a while ago.
func (i *Instance) comeBackElected() {
	if i.server.role == ha.ServerStopped || i.server.following != (ha.Ballot{}) {
		i.await()
		return
	}
	if i.comeback == nil {
		i.comeback = &comeback{promotes: true, up: i.now}
	}
	i.askConfirmation()
}

// comeBack opens the server when a majority says that this instance still leads, and its WAL is proven. Until then
// others may have elected another, and who reads here would read what that one has overtaken; or read what nobody else
// has, and what is lost with this instance.
func (i *Instance) comeBack() {
	switch {
	case i.server.open || !i.server.seen.Answers: // it is still recovering
	case i.server.proven:
		i.openServer()
	case i.server.confirmed:
		i.prove()
	case i.comeback == nil:
		i.comeback = &comeback{up: never}
		i.preempt(func(may bool) {
			if !may {
				i.fenceServer("a later term is on record")
			}
		})
	default:
		if i.comeback.up == never {
			i.comeback.up = i.now
		}
		i.askConfirmation()
	}
}

// prove has all WAL acknowledged by the quorum: it may have commits at its end that nobody else has.
// Then clients are let in.
func (i *Instance) prove() {
	if i.server.demanded != 0 || i.server.proving || i.quorum.tighter != nil {
		return
	}
	i.server.proving = true
	i.demand(i.rule(), false, i.rule().Count > 0, func(failed string) {
		i.server.proving = false
		if failed != "" {
			i.log("the end of the WAL is not proven yet", "error", failed)
			return
		}
		i.server.proven = true
	})
}

// askConfirmation asks all voters, again until the patience is over.
func (i *Instance) askConfirmation() {
	c := i.comeback
	if c.poll != nil {
		return
	}
	if i.now-c.up >= confirmPatience+i.slack.promised(i.now) {
		i.comeback = nil
		if i.server.role == ha.ServerPrimary {
			i.fenceServer("no majority says that it still leads")
		}
		return
	}
	c.poll = i.ask(ha.VoteRequest{Term: i.hardState.Ballot.Term, Confirm: true}, i.votePatience())
	i.countConfirmations()
}

// countConfirmations looks at the replies. Only a word counts that is new enough.
func (i *Instance) countConfirmations() {
	c := i.comeback
	if c == nil || c.poll == nil || i.storing != nil {
		return
	}
	p := c.poll
	still := i.Leads() && i.hardState.Ballot.Term == p.request.Term
	switch {
	case !still:
		i.comeback = nil
	case p.tally(i.hardState).Won && i.now-p.asked < i.limits().Fence+i.confirmedFor(p):
		i.log("a majority confirms the leader", "term", p.request.Term)
		i.comeback = nil
		i.confirmed(c)
	case p.over(i.now):
		c.poll = nil
	}
}

// confirmedFor is by how much longer than the fence those who have confirmed wait, at the least.
func (i *Instance) confirmedFor(p *poll) time.Duration {
	if p.witness != nil && p.witness.Granted {
		return 0
	}
	least := MaxSlack
	for voter, reply := range p.replies {
		if !reply.Granted || voter == i.hardState.Voter {
			continue
		}
		h := i.news.peer(voter.Instance())
		if h == nil || h.asked < p.asked-answerCounts { // what it has promised is not known
			return 0
		}
		least = min(least, h.slack)
	}
	return least
}

// confirmed leads again, or promotes.
func (i *Instance) confirmed(c *comeback) {
	if !i.free() {
		return // asked again
	}
	if c.promotes {
		i.begin()
		return
	}
	i.server.confirmed = true
	i.emit(Broadcast{})
}

// openServer lets clients in, unless it is so late when it comes to it that this instance may lead no more.
func (i *Instance) openServer() {
	i.do(Command{Kind: Open, Until: i.servesUntil()}, func(d Done) {
		if d.Err == "" {
			i.server.open = true
			i.emit(Publish{})
		}
	})
}
