package machine

import (
	"slices"
	"time"

	"toban.dev/internal/ha"
	"toban.dev/internal/wal"
)

// server is what is known of the instance's server.
type server struct {
	// run is the command that started it, 0 while none runs.
	run  uint64
	role ha.Server
	// following is whom a standby follows, zero for nobody.
	following ha.Ballot
	// confirmed says that a primary leads by the word of a majority, proven that all of its WAL is where the quorum
	// looks for it, proving that this is being seen to, open that clients are let in.
	confirmed, proving, proven, open bool
	// ragged says that behind the end of its WAL, when that was cut, there is the beginning of a record, or may be
	// more.
	ragged bool
	// begins is where the timeline begins that the server was promoted to, as long as it runs.
	begins ha.TermStart
	// stopping says that it is being stopped in order, so that it takes no writes any more, or soon won't.
	stopping bool
	seen     ServerSeen
	// rule is by which commits wait, demanded the demand that is under way for it, 0 for none.
	rule     ha.Rule
	demanded uint64
	then     func(failed string)
}

// command is what is being done with the server, and what follows.
type command struct {
	Command
	then func(Done)
	// rebuilds says that it replaces the data.
	rebuilds bool
	began    time.Duration
}

// do begins a command. There is one at a time.
func (i *Instance) do(c Command, then func(Done)) {
	c.ID = i.nextID()
	i.command = &command{Command: c, then: then, rebuilds: c.Kind == Clone || c.Kind == Rewind, began: i.now}
	i.emit(c)
}

// free says that a command may begin.
func (i *Instance) free() bool { return i.command == nil && i.fence == nil }

// done goes on after a command, a fence or a demand.
func (i *Instance) done(e Done) {
	switch {
	case i.fence != nil && i.fence.ID == e.ID:
		i.fenceDone(e)
	case i.command != nil && i.command.ID == e.ID:
		c := i.command
		i.command = nil
		i.trouble.record(i, c.Kind, e.Err)
		c.then(e)
	case i.server.demanded != 0 && i.server.demanded == e.ID:
		then := i.server.then
		i.server.demanded, i.server.then = 0, nil
		if then != nil {
			then(e.Err)
		}
	}
}

// killed goes on after a fence when nobody is answered any more.
func (i *Instance) killed(e Killed) {
	if i.fence == nil || i.fence.ID != e.ID || i.fence.then == nil {
		return
	}
	then := i.fence.then
	i.fence.then = nil
	then(Done{ID: e.ID})
}

// fenceDone notes that nothing of the server is left. What hangs on a disk may not have ended yet: it is ended again.
func (i *Instance) fenceDone(e Done) {
	then := i.fence.then
	i.fence = nil
	if e.Err != "" {
		i.log("the server could not be ended, and is ended again", "error", e.Err)
		i.fence = &command{Command: Command{ID: i.nextID()}, then: then}
		i.emit(Fence{i.fence.ID})
		return
	}
	if then != nil {
		then(e)
	}
}

// fenceServer ends the server at once, and with it what is being done. It is not waited for:
// nothing is led from now on.
func (i *Instance) fenceServer(why string) {
	if i.fence != nil || i.server.role == ha.ServerStopped && i.command == nil {
		return
	}
	i.log("ends the server at once", "role", string(i.server.role), "reason", why)
	i.command, i.campaign, i.preemption, i.comeback = nil, nil, nil, nil
	i.stopped()
	i.fence = &command{Command: Command{ID: i.nextID()}}
	i.emit(Fence{i.fence.ID})
}

// afterFence has something done when nothing of the server can answer anybody any more.
func (i *Instance) afterFence(then func()) {
	if i.fence == nil {
		then()
		return
	}
	i.fence.then = func(Done) { then() }
}

// stopped notes that no server runs any more. The next one need not be restarted.
func (i *Instance) stopped() {
	i.wish.restartServer = false
	full := i.server.seen.Full
	i.server = server{rule: i.server.rule}
	i.server.seen.Full = full
	i.quorum = quorum{}
}

// runs notes a server that has been started.
func (i *Instance) runs(id uint64, role ha.Server, following ha.Ballot, open bool) {
	i.server.run, i.server.role, i.server.following = id, role, following
	i.server.open, i.server.confirmed = open, open
	i.watch.known, i.watch.end = false, 0
}

// handleServerSeen takes in how the data and the server are.
func (i *Instance) handleServerSeen(e Event) {
	switch e := e.(type) {
	case DataSeen:
		i.watch.data = e
		i.watch.noRoom = i.watch.noRoom && !e.Room
	case ServerSeen:
		if e.Run == i.server.run && e.Following == i.server.following.Term {
			i.moved = i.server.seen.differs(e)
			i.watch.replay(i.now, e)
			i.server.seen = e
			i.watch.unelected = i.watch.unelected || e.Unelected && i.server.role == ha.ServerStandby
		}
	case VolumeSeen:
		i.watch.unwritten = e.Unwritten
	case ServerEnded:
		if e.Run == i.server.run && i.server.run != 0 {
			i.serverEnded(e)
		}
	}
}

// differs says whether what is seen now may change what is decided. That WAL goes on alone does not.
func (s ServerSeen) differs(o ServerSeen) bool {
	return s.Following != o.Following || s.Answers != o.Answers ||
		s.Streaming != o.Streaming || s.Known != o.Known || s.Failure != o.Failure ||
		s.left() != o.left() || s.Unelected != o.Unelected || s.Full != o.Full || !slices.Equal(s.Standbys, o.Standbys)
}

// left says how much a standby has to replay: nothing, a little, or much.
func (s ServerSeen) left() int {
	switch {
	case s.Unreplayed == 0:
		return 0
	case s.Unreplayed <= ha.ReplaySoon:
		return 1
	}
	return 2
}

// replayed is how far a standby has replayed its WAL.
func (s ServerSeen) replayed() wal.LSN {
	end := s.Received
	if s.Known {
		end = s.End
	}
	return end - min(end, wal.LSN(s.Unreplayed))
}

// serverEnded notes that the server has ended by itself. What is left of it is ended.
func (i *Instance) serverEnded(e ServerEnded) {
	i.log("the server has ended", "role", string(i.server.role), "error", e.Why)
	if i.server.role == ha.ServerPrimary {
		i.watch.failed = e.Why
	}
	i.fenceServer("it has ended")
}

// startStandby runs the server as a standby of a leader, or of nobody.
func (i *Instance) startStandby(of ha.Ballot, then func(Done)) {
	i.watch.failed = ""
	i.do(Command{Kind: StartStandby, Ballot: of, Rule: i.rule()}, func(d Done) {
		if d.Err == "" {
			i.runs(d.ID, ha.ServerStandby, of, true)
		}
		if then != nil {
			then(d)
		}
	})
}

// follow has a running standby follow another leader, or nobody.
func (i *Instance) followOther(of ha.Ballot) {
	i.server.following = of
	i.server.seen = ServerSeen{
		Run: i.server.run, Following: of.Term, Full: i.server.seen.Full, Answers: i.server.seen.Answers,
	}
	i.do(Command{Kind: Follow, Ballot: of}, func(d Done) {
		if d.Err != "" {
			i.server.following = ha.Ballot{} // whom it follows is not known: it is told again
		}
	})
}

// cut ends what is received from leaders of terms before one, and goes on with the end of the WAL; when all of it is
// replayed, where that is asked for.
func (i *Instance) cut(term uint64, replayed bool, then func(end wal.LSN, failed string)) {
	if i.server.role == ha.ServerStopped {
		if i.watch.known {
			i.server.ragged = true // where its WAL ends by its checkpoint is not exactly where its next timeline begins
			then(i.watch.end, "")
		} else {
			then(0, "no server runs here that could say how far its WAL goes")
		}
		return
	}
	i.server.following = ha.Ballot{}
	i.server.seen.Streaming, i.server.seen.Known, i.server.seen.Following = false, false, 0
	i.do(Command{Kind: Cut, Term: term, Replayed: replayed}, func(d Done) {
		if d.Err == "" {
			i.server.seen.End, i.server.seen.Known, i.server.seen.Unreplayed = d.End, true, d.Unreplayed
			i.server.ragged = d.Ragged
		}
		then(d.End, d.Err)
	})
}

// stop stops the server in order, and goes on when it has stopped.
func (i *Instance) stop(then func()) {
	primary := i.server.role == ha.ServerPrimary
	i.server.stopping = true
	i.do(Command{Kind: Stop}, func(d Done) {
		i.server.stopping = false
		if d.Err != "" {
			i.fenceServer("it could not be stopped in order")
			return
		}
		i.stopped()
		if primary {
			i.watch.end, i.watch.known = d.End, true
		}
		if then != nil {
			then()
		}
	})
}

// demand makes commits wait by a rule, and goes on when that is so.
func (i *Instance) demand(rule ha.Rule, enforce, barrier bool, then func(failed string)) {
	if before := i.server.then; before != nil {
		i.server.then = nil
		before("another rule is demanded")
	}
	if i.server.role != ha.ServerPrimary || i.fence != nil {
		if then != nil {
			then("there is no primary here")
		}
		return
	}
	i.server.rule, i.server.demanded, i.server.then = rule, i.nextID(), then
	i.emit(Demand{i.server.demanded, rule, enforce, barrier})
}

// trouble keeps a decision that can't be carried out from being tried all the time.
type trouble struct {
	action ha.Action
	pause  time.Duration
	until  time.Duration
	// step is the command that has failed, "" for a hard state that could not be written, err why.
	step Kind
	err  string
}

const (
	firstRetry = 250 * time.Millisecond
	lastRetry  = 10 * time.Second
)

// record notes that a step of what was decided last has failed, or by "" that it has not: then there is no
// trouble with it any more.
func (t *trouble) record(i *Instance, step Kind, err string) {
	if err == "" {
		if t.step == step {
			*t = trouble{}
		}
		return
	}
	t.pause = min(max(2*t.pause, firstRetry), lastRetry)
	t.action, t.until, t.step, t.err = i.last.Action, i.now+t.pause, step, err
}

// over says whether a decision may be tried.
func (t *trouble) over(now time.Duration, d ha.Decision) bool {
	return t.err == "" || d.Action != t.action || now >= t.until
}

// Trouble is why what was decided last could not be done, "" where it could.
func (i *Instance) Trouble() string { return i.trouble.err }
