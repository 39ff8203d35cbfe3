package machine

import (
	"slices"
	"time"

	"toban.dev/internal/ha"
)

// Times of one that was elected over another: how long the API may take to say whether that one holds on, and how often is
// looked whether it has stopped.
const (
	overtakeDeadline = 300 * time.Millisecond
	releaseInterval  = 100 * time.Millisecond
	// holdAfter is how long a majority may be silent before the leader puts on record that it holds on.
	holdAfter = 600 * time.Millisecond
)

// takeover is a winner's wait until no leader of an earlier term can serve any more.
type takeover struct {
	term uint64
	look uint64
	// waits says that one holds on: until it has stopped, or until the deadline.
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
	i.overtake(func(may bool) {
		if may && i.server.role == ha.ServerStandby && i.free() && i.storing == nil && i.Leads() {
			i.promote()
		}
	})
}

// overtake goes on when no leader of an earlier term holds on by the Kubernetes API. That takes long only where there is
// one. Where the API does not answer, nobody is waited for.
func (i *Instance) overtake(then func(may bool)) {
	term := i.memory.Won
	if !i.config.API || i.watch.overtakes != term {
		then(true)
		return
	}
	i.takeover = &takeover{term: term, deadline: i.now + overtakeDeadline, then: then}
	ballot, alone := i.memory.Ballot, i.View().Local.Alone > holdAfter
	i.takeover.look = i.operate(ha.WitnessOperation{Overtake: &ballot, Alone: alone})
}

// overtakeAnswered goes on with what the witness has said.
func (i *Instance) overtakeAnswered(e WitnessAnswered) {
	t := i.takeover
	if t == nil || t.look != e.ID {
		return
	}
	switch {
	case t.waits:
		if !e.Failed && !e.Memory.HeldBefore(t.term) {
			i.endTakeover()
		}
	case e.Failed:
		i.note("leads without knowing whether another holds on by the Kubernetes API", "term", t.term)
		i.leaveTakeover(true)
	case !e.Answer.Granted:
		i.leaveTakeover(false) // a later term is on record there, and seen from now on
	case e.Answer.Wait:
		i.note("waits until a leader of an earlier term no longer holds on by the Kubernetes API", "term", t.term)
		t.waits, t.looked, t.deadline = true, i.now, i.now+i.limits().Overtake
	default:
		i.watch.overtakes = 0
		i.leaveTakeover(true)
	}
}

// takeOverInTime goes on when nothing has been heard for too long, and looks again while another holds on.
func (i *Instance) takeOverInTime() {
	t := i.takeover
	switch {
	case t == nil || i.storing != nil:
	case t.term != i.memory.Ballot.Term:
		i.takeover = nil
	case i.now >= t.deadline && t.waits:
		i.endTakeover()
	case i.now >= t.deadline:
		i.note("leads without knowing whether another holds on by the Kubernetes API", "term", t.term)
		i.leaveTakeover(true)
	case t.waits && i.now-t.looked >= releaseInterval:
		t.looked, t.look = i.now, i.operate(ha.WitnessOperation{})
	}
}

// endTakeover is the end of the wait for another to stop.
func (i *Instance) endTakeover() {
	i.watch.overtakes = 0
	local := i.View().Local
	i.leaveTakeover(i.memory.Ballot.Term == i.takeover.term && local.MayServe())
}

func (i *Instance) leaveTakeover(may bool) {
	then := i.takeover.then
	i.takeover = nil
	then(may)
}

// promote makes the standby the primary of the term that it has won. Where that does not come to its end, PostgreSQL may go
// on with it by itself: the server is ended at once.
func (i *Instance) promote() {
	i.server.role, i.server.open, i.server.confirmed, i.server.following = ha.ServerPrimary, false, false, ha.Ballot{}
	i.server.seen = ServerSeen{Run: i.server.run, Answers: true, Full: i.server.seen.Full}
	i.server.rule = i.rule()
	i.do(Command{Kind: Promote, Term: i.memory.Won, Rule: i.server.rule}, func(d Done) {
		if d.Err != "" {
			i.fenceServer("the promotion has not come to its end")
			return
		}
		i.emit(Publish{}) // clients wait for it
		i.server.begins = ha.Start{LSN: d.Begins, Timeline: d.Timeline}
		i.noteTimeline()
	})
}

// noteTimeline puts on disk where the WAL of the term begins that this instance has been promoted in. It is not followed
// before: who follows takes over the lineage. A disk that does not take it is tried again (lead).
func (i *Instance) noteTimeline() {
	m := i.memory
	m.Lineage = slices.Clone(m.Lineage)
	last := &m.Lineage[len(m.Lineage)-1]
	last.Timeline, last.LSN = i.server.begins.Timeline, i.server.begins.LSN
	i.store(m, func() { i.server.open, i.server.confirmed = true, true })
}
