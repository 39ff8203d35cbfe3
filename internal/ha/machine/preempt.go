package machine

import (
	"slices"
	"time"

	"toban.dev/internal/ha"
)

// Times of one that was elected over another: how long the API may take to say whether that one has the read lease, and
// how often is looked whether it has stopped.
const (
	preemptDeadline = 300 * time.Millisecond
	releaseInterval = 100 * time.Millisecond
	// readLeaseAfter is how long a majority may be silent before the leader puts on record that it has the read lease.
	readLeaseAfter = 600 * time.Millisecond
)

// preemption is a winner's wait until no leader of an earlier term can serve any more.
type preemption struct {
	term uint64
	look uint64
	// waits says that one has the read lease: until it has stopped, or until the deadline.
	waits    bool
	looked   time.Duration
	deadline time.Duration
	then     func(may bool)
}

// begin makes the standby of a winner a primary, when none of an earlier term can serve any more.
func (i *Instance) begin() {
	if i.server.role != ha.ServerStandby {
		return // it is started first (comeBackElected)
	}
	i.preempt(func(may bool) {
		if may && i.server.role == ha.ServerStandby && i.free() && i.storing == nil && i.Leads() {
			i.promote()
		}
	})
}

// preempt goes on when no leader of an earlier term has the read lease. That takes long only where there is
// one. Where the API does not answer, nobody is waited for.
func (i *Instance) preempt(then func(may bool)) {
	term := i.hardState.Won
	if !i.config.API || i.watch.preempts != term {
		then(true)
		return
	}
	i.preemption = &preemption{term: term, deadline: i.now + preemptDeadline, then: then}
	ballot, alone := i.hardState.Ballot, i.View().Local.Alone > readLeaseAfter
	i.preemption.look = i.operate(ha.WitnessOperation{Preempt: &ballot, Alone: alone})
}

// preemptAnswered goes on with what the witness has said.
func (i *Instance) preemptAnswered(e WitnessAnswered) {
	t := i.preemption
	if t == nil || t.look != e.ID {
		return
	}
	switch {
	case t.waits:
		if !e.Failed && !e.HardState.ReadLeaseBefore(t.term) {
			i.endPreemption()
		}
	case e.Failed:
		i.log("leads without knowing whether another has the read lease", "term", t.term)
		i.leavePreemption(true)
	case !e.Answer.Granted:
		i.leavePreemption(false) // a later term is on record there, and seen from now on
	case e.Answer.Wait:
		i.log("waits until a leader of an earlier term no longer has the read lease", "term", t.term)
		t.waits, t.looked, t.deadline = true, i.now, i.now+i.limits().Preempt
	default:
		i.watch.preempts = 0
		i.leavePreemption(true)
	}
}

// awaitPreemption goes on when nothing has been heard for too long, and looks again while another has the read lease.
func (i *Instance) awaitPreemption() {
	t := i.preemption
	switch {
	case t == nil || i.storing != nil:
	case t.term != i.hardState.Ballot.Term:
		i.preemption = nil
	case i.now >= t.deadline && t.waits:
		i.endPreemption()
	case i.now >= t.deadline:
		i.log("leads without knowing whether another has the read lease", "term", t.term)
		i.leavePreemption(true)
	case t.waits && i.now-t.looked >= releaseInterval:
		t.looked, t.look = i.now, i.operate(ha.WitnessOperation{})
	}
}

// endPreemption is the end of the wait for another to stop.
func (i *Instance) endPreemption() {
	i.watch.preempts = 0
	local := i.View().Local
	i.leavePreemption(i.hardState.Ballot.Term == i.preemption.term && local.MayServe())
}

func (i *Instance) leavePreemption(may bool) {
	then := i.preemption.then
	i.preemption = nil
	then(may)
}

// promote makes the standby the primary of the term that it has won. Where that does not come to its end, PostgreSQL
// may go on with it by itself: the server is ended at once.
func (i *Instance) promote() {
	i.server.role, i.server.open, i.server.confirmed, i.server.following = ha.ServerPrimary, false, false, ha.Ballot{}
	i.server.seen = ServerSeen{Run: i.server.run, Answers: true, Full: i.server.seen.Full}
	i.server.rule = i.rule()
	i.do(Command{Kind: Promote, Term: i.hardState.Won, Rule: i.server.rule}, func(d Done) {
		if d.Err != "" {
			i.fenceServer("the promotion has not come to its end")
			return
		}
		i.emit(Publish{}) // clients wait for it
		i.server.begins = ha.TermStart{LSN: d.Begins, Timeline: d.Timeline}
		i.storeTimeline()
	})
}

// storeTimeline puts on disk where the WAL of the term begins that this instance has been promoted in. It does not lead
// before: who follows takes over the term history. A disk that does not take it is tried again (lead).
func (i *Instance) storeTimeline() {
	m := i.hardState
	m.TermHistory = slices.Clone(m.TermHistory)
	last := &m.TermHistory[len(m.TermHistory)-1]
	last.Timeline, last.LSN = i.server.begins.Timeline, i.server.begins.LSN
	i.store(m, func() { i.server.open, i.server.confirmed = true, true })
}
