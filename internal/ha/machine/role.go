package machine

import (
	"slices"
	"time"

	"toban.dev/internal/ha"
	"toban.dev/internal/wal"
)

// Times between two looks when nothing happens before.
const (
	tickInterval  = 250 * time.Millisecond
	hurryInterval = 50 * time.Millisecond
	soonestTick   = 5 * time.Millisecond
)

// Wake is after how long the next Tick is due at the latest: sooner while a primary may have to be fenced, and when a
// leader will have been silent for too long. until is after how long what is done again after an interval is due.
func (i *Instance) Wake(until func(interval time.Duration) time.Duration) time.Duration {
	elects := i.campaign != nil || i.preemption != nil || i.comeback != nil
	if i.witness.wanted || elects || i.watch.elects.since != never && i.ago(i.watch.elects.since) <= 2*ha.WordPatience {
		return until(hurryInterval)
	}
	due := until(tickInterval)
	if left := untilLost(i); left > 0 {
		return min(due, max(left, soonestTick))
	}
	return due
}

// untilLost is after how long the leader of the ballot is lost by its silence if it says nothing any more; 0 where it
// is not for this instance to wait for that, or it is over.
func untilLost(i *Instance) time.Duration {
	if leader := i.hardState.Ballot.Leader; leader == "" || leader == i.name {
		return 0
	}
	local := ha.Local{Limits: i.limits()}
	i.viewLeader(&local)
	return local.UntilLost(i.config.Async)
}

// advance decides, and begins what was decided. That a server is ended comes before all else, and waits for nothing.
func (i *Instance) advance() {
	d := i.rules.Decide(i.View())
	i.endServer(d)
	if i.storing != nil || i.fence != nil {
		return
	}
	if i.campaign == nil && (i.learn() || i.beginAnew()) {
		return
	}
	if d.Ballot != i.hardState.Ballot {
		i.campaign = nil
		m := i.hardState
		m.Ballot = d.Ballot
		i.store(m, nil)
		return
	}
	i.maintainQuorum()
	if i.storing != nil || !i.free() || i.campaign != nil || i.preemption != nil {
		return
	}
	i.announce(d)
	if d.Action != ha.Lead {
		i.comeback = nil
	}
	if !i.trouble.over(i.now, d) {
		return
	}
	if len(i.votes) > 0 {
		i.serveVotes()
		return
	}
	i.act(d)
}

// learn takes over a newer configuration of the quorum that another instance or the witness has.
func (i *Instance) learn() bool {
	m := i.newestHardState()
	if !m.Configuration.Newer(i.hardState.Configuration) {
		return false
	}
	i.store(m, nil)
	return true
}

// announce notes a decision when it is another one.
func (i *Instance) announce(d ha.Decision) {
	if d.Action != i.last.Action || d.Target != i.last.Target || d.Reason != i.last.Reason ||
		d.Ballot != i.last.Ballot {
		i.log("decided", "action", string(d.Action), "target", d.Target, "term", d.Ballot.Term, "reason",
			d.Reason, "message", d.Message)
	}
	if d.Action != i.last.Action {
		i.trouble = trouble{}
	}
	i.last = d
}

// endServer ends a server at once that must not run by what is decided, whatever is being done or stored.
func (i *Instance) endServer(d ha.Decision) {
	if i.fence != nil || i.server.role == ha.ServerStopped || i.campaign != nil && i.campaign.renewal {
		return
	}
	switch d.Action {
	case ha.Wait, ha.Disown:
		i.fenceServer(d.Reason)
	case ha.Fence:
		i.announce(d)
		i.fenceServer(d.Reason)
		if d.Reason != "Isolated" { // nobody would hear it
			i.afterFence(func() { i.resign(d) })
		}
	case ha.Follow, ha.Await, ha.Clone, ha.Rewind, ha.Initialise:
		if i.server.role == ha.ServerPrimary {
			i.fenceServer(d.Reason)
		}
	case ha.Campaign:
		if i.server.role == ha.ServerPrimary && !i.Leads() {
			i.fenceServer(d.Reason)
		}
	case ha.Lead, ha.Resign:
	}
}

// act begins what was decided. Where the instance already is what it should be, there is nothing to do.
func (i *Instance) act(d ha.Decision) {
	if i.wish.restartServer && i.server.role != ha.ServerStopped && d.Action != ha.Resign {
		i.log("restarting the server, as asked")
		i.stopInOrder(nil)
		return
	}
	switch d.Action {
	case ha.Wait:
	case ha.Fence:
		i.resign(d) // no server runs
	case ha.Resign:
		i.stopInOrder(func() { i.resign(d) })
	case ha.Initialise:
		i.initialise()
	case ha.Clone:
		i.clone(d)
	case ha.Rewind:
		i.rewind(d)
	case ha.Lead:
		i.lead()
	case ha.Follow:
		i.follow(d)
	case ha.Await:
		i.await()
	case ha.Campaign:
		i.startCampaign(i.server.role == ha.ServerPrimary)
	case ha.Disown:
		i.disown()
	}
}

// stopInOrder stops the server in order. A primary writes a checkpoint first, while it serves on: the stop is short
// then. What was decided is asked for again after it, because it may have been long.
func (i *Instance) stopInOrder(then func()) {
	if i.server.role != ha.ServerPrimary || i.server.stopping {
		i.stop(then)
		return
	}
	action := i.last.Action
	i.do(Command{Kind: Checkpoint}, func(Done) { // a stop without one takes longer
		switch d := i.rules.Decide(i.View()); {
		case (action == ha.Resign) != (d.Action == ha.Resign):
			return // it is to hand over by now, or not to any more
		case action == ha.Resign && then != nil: // before the stop: one that fails would follow again at once
			i.watch.noteYield(d, i.now)
		}
		i.stop(then)
	})
}

// resign notes that this instance has given up its term.
func (i *Instance) resign(d ha.Decision) {
	i.watch.resigned, i.watch.resignedTerm, i.successor = i.now, d.Ballot.Term, d.Target
	i.watch.failed = ""
}

// noteYield notes that this instance makes way because nobody acknowledges its commits.
func (w *watch) noteYield(d ha.Decision, now time.Duration) {
	if d.Reason == ha.ReasonUnacknowledged {
		w.yielded = now
	}
}

// initialise makes a new database system, where there is no data yet, and leads its first term. The hard state comes
// first: whoever it names tries again.
func (i *Instance) initialise() {
	m := ha.LeadAlone(i.hardState, 1)
	i.store(m, func() {
		i.watch.preempts = 0
		if i.watch.data.Data == ha.DataEmpty {
			i.do(Command{Kind: Initialise}, func(Done) {})
		}
	})
}

// clone copies the data of the leader. How far the WAL goes that is here is asked for first.
func (i *Instance) clone(d ha.Decision) {
	if i.server.role != ha.ServerStandby {
		i.copyData(Clone, d)
		return
	}
	i.cut(d.Ballot.Term, false, func(end wal.LSN, failed string) {
		if failed == "" {
			i.watch.end, i.watch.known = end, true
		}
		i.copyData(Clone, d)
	})
}

func (i *Instance) rewind(d ha.Decision) { i.copyData(Rewind, d) }

// copyData replaces data by the leader's. Its term history comes with it.
func (i *Instance) copyData(kind Kind, d ha.Decision) {
	if d.Ballot != i.hardState.Ballot {
		return
	}
	began, before, local := i.watch.since, i.hardState.TermHistory, i.View().Local
	i.stopped()
	i.do(Command{Kind: kind, Ballot: d.Ballot}, func(done Done) {
		w := &i.watch
		w.known, w.end = false, 0
		early := done.SameTimeline && i.now-began < checkpointPatience
		if early || done.Unreached {
			// The data is as it was: no server need find its end again, only to be stopped for the next try.
			w.known, w.end = local.Known && local.Unreplayed == 0, local.End
			w.stalled = streaming // a copy would do no better
		}
		if early {
			i.trouble.pause = 0
		}
		if kind == Rewind {
			w.rewindFailed = done.Err != "" && !early && !done.Unreached
		}
		w.noRoom = w.noRoom || done.NoRoom
		if done.Err == "" {
			w.noRoom = false
			// pg_rewind goes by timelines, and may find that nothing is to be done. What has parted by its
			// terms has parted still then.
			w.rewindFailed = kind == Rewind && d.Reason == "Diverged" && slices.Equal(done.TermHistory, before)
			w.stalled = streaming // what was stuck is gone with the data
		}
		if done.TermHistory != nil || done.Err == "" {
			i.hardState.TermHistory = done.TermHistory // it is on disk, with the data
		}
	})
}

// checkpointPatience is how long a new primary may take for its first checkpoint. PostgreSQL 15 takes it for one of the
// timeline before until then.
const checkpointPatience = 30 * time.Second

// answerDiscard says whether the data here may be given up for the copy that is being made. Only what others have said
// since it began counts: who says then that it is not being rebuilt itself does not count on what is given up here.
func (i *Instance) answerDiscard(e DiscardAsked) {
	c := i.command
	if c == nil || c.ID != e.ID {
		i.emit(ReplyDiscard{e.ID, "the copy is not wanted any more"})
		return
	}
	if i.hardState.Ballot != c.Ballot {
		i.emit(ReplyDiscard{e.ID, "the copy is of the leader of an earlier term"})
		return
	}
	if e.Whole {
		i.emit(ReplyDiscard{ID: e.ID})
		return
	}
	v := i.View()
	v.Peers = i.believed()
	for name := range v.Peers {
		if i.news.heard[name].asked <= c.began {
			delete(v.Peers, name)
		}
	}
	if !i.watch.known {
		i.watch.end = max(i.watch.end, v.Peers[c.Ballot.Leader].Written)
	}
	v.Local.End = i.watch.end
	if needed := v.DataNeeded(); needed != nil {
		i.emit(ReplyDiscard{e.ID, needed.Message})
		return
	}
	i.log("gives up its data for the copy that has begun: the volume has no room for both")
	i.watch.data.Data = ha.DataEmpty
	i.emit(ReplyDiscard{ID: e.ID})
}

// disown puts on record that the data has forked: a server has written to it that was not elected.
func (i *Instance) disown() {
	i.do(Command{Kind: MarkForked}, func(d Done) {
		if d.Err == "" {
			i.watch.unelected, i.watch.rewindFailed = false, false
			i.watch.known, i.watch.end = false, 0
		}
	})
}

// follow makes the instance a standby of the leader, whose WAL is its own from here on: term history first, then WAL.
func (i *Instance) follow(d ha.Decision) {
	if i.server.role == ha.ServerStandby && i.server.following == d.Ballot {
		completeHistory(i, d)
		return
	}
	begin := func() {
		if d.Ballot != i.hardState.Ballot || !i.free() {
			return
		}
		i.watch.known = false
		if i.server.role == ha.ServerStopped {
			i.startStandby(d.Ballot, nil)
		} else {
			i.followOther(d.Ballot)
		}
	}
	leader, present := i.news.present[d.Target]
	if !present {
		begin() // followed before; its term history is known
		return
	}
	if len(leader.TermHistory) == 0 {
		return // it does not say yet whose WAL it has
	}
	i.inherit(leader.TermHistory, begin)
}

// completeHistory puts the timeline of the leader's term on disk, where this standby has followed since before there
// was one. From then on the server there takes writes: whether this one streams on is looked at at once.
func completeHistory(i *Instance, d ha.Decision) {
	leader, present := i.news.present[d.Target]
	term := d.Ballot.Term
	if !present || leader.Ballot != d.Ballot || !ha.Unpromoted(i.hardState.TermHistory, term) ||
		len(leader.TermHistory) == 0 || ha.Unpromoted(leader.TermHistory, term) {
		return
	}
	m := i.hardState
	m.TermHistory = leader.TermHistory
	i.store(m, nil)
	i.emit(ObserveServer{})
}

// inherit puts the leader's term history on disk. What is received meanwhile is of the leader before, and ends first.
// With it, what is here of timelines that this instance has no WAL of is forgotten: not where the timeline of its own
// last term is not known, and it may have WAL of that.
func (i *Instance) inherit(history []ha.TermStart, then func()) {
	of := i.hardState.Ballot
	put := func(end wal.LSN, known bool) {
		if i.hardState.Ballot != of {
			return // it is of another leader now
		}
		m := i.hardState // as it is now: much may have been put on disk while the stream was being ended
		inherits := !ha.HoldsUnnamed(m.TermHistory, end, known)
		m.TermHistory = history
		i.write(Store{HardState: m, Inherits: inherits}, then)
	}
	if i.server.role == ha.ServerStandby && i.server.following != (ha.Ballot{}) {
		i.cut(of.Term, false, func(end wal.LSN, failed string) { put(end, failed == "") })
		return
	}
	local := i.View().Local
	put(local.End, local.Known)
}

// await makes the instance a standby of nobody: nothing is received, and so the end of its WAL is known.
func (i *Instance) await() {
	switch {
	case i.server.role == ha.ServerStopped:
		i.startStandby(ha.Ballot{}, nil)
	case i.server.following != ha.Ballot{}:
		i.cut(i.hardState.Ballot.Term, false, func(wal.LSN, string) {})
	}
}
