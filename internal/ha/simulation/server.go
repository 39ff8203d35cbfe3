package simulation

import (
	"time"

	"toban.dev/internal/ha"
	"toban.dev/internal/ha/machine"
	"toban.dev/internal/wal"
)

// server is an instance's server while it runs.
type server struct {
	run  uint64
	role ha.Server
	// following is the term whose leader a standby has as upstream, upstream that one.
	following uint64
	upstream  int
	conn      *upstreamConn
	// conns are the streams to those who follow this one: a primary, or one that was elected and is being promoted.
	conns [maxNodes]*downstreamConn
	// replayedAt is when all that was received has been replayed.
	replayedAt time.Duration
	// rule is by which commits wait, lead what a primary knows while it is one, open whether it lets clients in.
	rule ha.Rule
	lead *leadership
	open bool
}

// lead is what the instance knows as a primary, nil where it is none.
func (n *node) lead() *leadership {
	if n.server == nil {
		return nil
	}
	return n.server.lead
}

// role is what the instance's server is.
func (n *node) role() ha.Server {
	if n.server == nil {
		return ha.ServerStopped
	}
	return n.server.role
}

// known says whether the end of the WAL is known.
func (n *node) known() bool {
	return n.role() == ha.ServerStandby && n.server.conn == nil && n.consistent()
}

// unreplayed is how many bytes a standby has still to replay: much, or for a moment a little.
func (s *server) unreplayed(now time.Duration) uint64 {
	switch left := s.replayedAt - now; {
	case left <= 0:
		return 0
	case left < 300*ms:
		return 1
	}
	return 2 * ha.ReplaySoon
}

// replaysIn says that what was received has been replayed after a time, and not before what is being replayed.
func (s *server) replaysIn(now, takes time.Duration) { s.replayedAt = max(s.replayedAt, now+takes) }

// consistent says that the server has replayed as much as it must before it lets anybody ask it anything. It receives
// WAL before that.
func (n *node) consistent() bool { return n.w.now >= n.rewoundUntil }

// endServer ends the server at once.
func (n *node) endServer() {
	n.hangUp()
	n.server, n.task, n.demanded = nil, 0, 0
}

// done says that a command has ended.
func (n *node) done(d machine.Done) {
	n.seeServer()
	n.step(d)
}

// fence ends the server at once, and what is being done with it. On a volume that stalls, what is left of it answers
// nobody any more, and is gone when that goes on.
func (n *node) fence(id uint64) {
	n.log("FENCE")
	if !n.w.breaks(LateCommand) {
		n.task = 0
	}
	n.rebuild = nil
	takes := n.w.between(1*ms, 20*ms)
	if n.leased {
		n.leaseGone = n.w.now + takes
	}
	if n.w.breaks(KilledTooEarly) {
		n.later(takes, func() { n.step(machine.Killed{ID: id}) })
		takes += time.Second
	}
	n.later(takes, func() {
		task := n.task
		n.endServer()
		if n.w.breaks(LateCommand) {
			n.task = task
		}
		n.step(machine.Killed{ID: id})
		n.whenWritten(func() {
			n.seeData()
			n.step(machine.Done{ID: id})
		})
	})
}

// begin carries a command out.
func (n *node) begin(c machine.Command) {
	n.task = c.ID
	switch c.Kind {
	case machine.StartStandby:
		n.soon(c, 20*ms, 150*ms, func() { n.startStandby(c) })
	case machine.StartPrimary:
		n.soon(c, 20*ms, 60*ms, func() { n.startPrimary(c) })
	case machine.Follow:
		n.soon(c, 5*ms, 30*ms, func() { n.follow(c.Ballot) })
	case machine.Cut:
		n.cut(c)
	case machine.Promote:
		n.promote(c)
	case machine.Open:
		n.soon(c, 1*ms, 10*ms, n.open)
	case machine.Checkpoint:
		n.checkpoint(c)
	case machine.Stop:
		n.stop(c)
	case machine.Initialise:
		n.soon(c, 30*ms, 300*ms, n.initialise)
	case machine.Clone, machine.Rewind:
		n.startRebuild(c)
	case machine.MarkForked:
		n.soon(c, 1*ms, 20*ms, func() { n.disk.data = ha.DataForked; n.seeData() })
	}
}

// soon does something and ends the command, after a while, unless it has been ended before or it is too late by then.
// Now and then that is long.
func (n *node) soon(c machine.Command, low, high time.Duration, do func()) {
	if n.w.chance(0.02) {
		high = max(high, 4*time.Second)
	}
	n.later(n.w.between(low, high), func() {
		switch {
		case n.task != c.ID:
		case c.Until != 0 && n.clock() > c.Until:
			n.endTask(c, "it is too late")
		default:
			do()
			n.endTask(c, "")
		}
	})
}

// endTask ends a command.
func (n *node) endTask(c machine.Command, err string) {
	if n.task == c.ID {
		n.task = 0
		d := machine.Done{ID: c.ID, Err: err, End: n.disk.end()}
		if n.server != nil {
			d.Unreplayed = n.server.unreplayed(n.w.now)
		}
		n.done(d)
	}
}

// startStandby runs the server as a standby.
func (n *node) startStandby(c machine.Command) {
	n.endServer()
	n.task = c.ID
	n.server = &server{
		run: c.ID, role: ha.ServerStandby, rule: c.Rule, replayedAt: n.w.now + n.w.between(20*ms, 250*ms),
	}
	n.follow(c.Ballot)
	n.monitor(c.ID)
}

// startPrimary starts the server of a leader that comes back. It lets nobody in until it has
// recovered, which may take long.
func (n *node) startPrimary(c machine.Command) {
	n.endServer()
	n.task = c.ID
	s := &server{run: c.ID, role: ha.ServerPrimary, rule: c.Rule}
	n.server = s
	recovery := n.w.between(20*ms, 250*ms)
	if n.w.chance(0.12) {
		recovery = n.w.between(time.Second, 6*time.Second)
	}
	n.later(recovery, func() {
		if n.server != s {
			return
		}
		n.takeLead(n.disk.mem.Won)
		if !c.Closed {
			n.election.cameBack = true
			n.open()
		}
		n.seeServer()
	})
	n.monitor(c.ID)
}

// open lets clients in.
func (n *node) open() {
	if n.server == nil || n.server.role != ha.ServerPrimary || n.server.open {
		return
	}
	n.server.open, n.election.cameBack = true, true
	n.w.check.comesBack(n)
	n.letClientsIn()
}

// letClientsIn begins the clients' work at a primary.
func (n *node) letClientsIn() {
	n.server.open = true
	l := n.server.lead
	n.later(n.w.between(50*ms, 300*ms), func() { n.load(l) })
}

// cut ends what is received, and tells the end of the WAL; when all of it is replayed, where that is asked for.
func (n *node) cut(c machine.Command) {
	if n.w.breaks(NoRevocation) {
		n.later(n.w.between(1*ms, 20*ms), func() { n.endTask(c, "") })
		return
	}
	until := n.w.now + 800*ms
	n.later(n.w.between(1*ms, 20*ms), func() {
		if n.task == c.ID && n.role() == ha.ServerStandby {
			n.stopReceiving()
		}
		n.awaitEnd(c, until)
	})
}

func (n *node) awaitEnd(c machine.Command, until time.Duration) {
	switch {
	case n.task != c.ID:
	case n.known() && (n.w.now >= n.server.replayedAt || !c.Replayed):
		n.endTask(c, "")
	case n.w.now >= until || n.role() != ha.ServerStandby:
		n.endTask(c, "the end of the WAL is not known")
	default:
		n.later(20*ms, func() { n.awaitEnd(c, until) })
	}
}

// promote makes a standby a primary. Some promotions take longer than is waited for, and go on by themselves.
func (n *node) promote(c machine.Command) {
	s := n.server
	takes, deadline := n.w.between(30*ms, 300*ms), 20*time.Second
	if s != nil {
		takes += max(0, s.replayedAt-n.w.now)
	}
	if n.w.chance(0.03) {
		takes, deadline = n.w.between(2*time.Second, 6*time.Second), n.w.between(time.Second, 3*time.Second)
	}
	n.later(takes, func() {
		if n.server != s || s == nil || n.task != c.ID && !n.w.breaks(LateCommand) && s.role != ha.ServerStandby {
			return
		}
		n.promoted(c)
	})
	n.later(deadline, func() { n.endTask(c, "the promotion takes too long") })
}

// promoted is the moment in which the server takes writes.
func (n *node) promoted(c machine.Command) {
	n.server.role, n.server.rule, n.server.conn, n.server.following = ha.ServerPrimary, c.Rule, nil, 0
	n.election.cameBack = false
	timeline := wal.Timeline(1)
	for _, s := range n.disk.mem.TermHistory {
		timeline = max(timeline, s.Timeline)
	}
	begins := n.begins(c.Term)
	n.takeLead(c.Term)
	n.letClientsIn()
	if n.task == c.ID {
		n.task = 0
		n.done(machine.Done{ID: c.ID, Timeline: timeline + 1, Begins: begins})
	}
}

// begins is where the WAL of a term begins, as PostgreSQL's history of timelines tells it: also after a promotion that
// nobody has heard of, and that was made again.
func (n *node) begins(term uint64) wal.LSN {
	for i, e := range n.disk.wal {
		if e.term == term {
			return wal.LSN(i)
		}
	}
	return n.disk.end()
}

// checkpoint takes a while, and now and then a long one.
func (n *node) checkpoint(c machine.Command) {
	takes := n.w.between(5*ms, 150*ms)
	if n.w.chance(0.1) {
		takes = n.w.between(time.Second, 20*time.Second)
	}
	n.later(takes, func() { n.endTask(c, "") })
}

// stop stops the server in order: what the standbys lack is sent first.
func (n *node) stop(c machine.Command) {
	if n.w.breaks(PromoteBeforeStop) {
		n.later(ms, func() { n.endTask(c, "") })
		return
	}
	if l := n.lead(); l != nil {
		n.push()
		l.closing = true
	}
	n.later(n.w.between(20*ms, 200*ms), func() {
		if n.task == c.ID {
			n.endServer()
			n.task = c.ID
			n.endTask(c, "")
		}
	})
}

// initialise makes the data.
func (n *node) initialise() {
	n.w.ids++
	n.disk.data, n.disk.wal, n.disk.system = ha.DataPresent, nil, nameOf(n.index)
	if n.w.op.system != "" && n.w.op.system != n.disk.system {
		n.disk.system = "other"
	}
	n.seeData()
}

// demand puts a rule in force, and waits until all WAL meets it, for a while.
func (n *node) demand(e machine.Demand) {
	n.demanded = e.ID
	n.later(n.w.between(2*ms, 40*ms), func() {
		if n.demanded != e.ID {
			return
		}
		if n.lead() == nil {
			n.demandEnds(e.ID, "the server does not answer")
			return
		}
		n.server.rule = e.Rule
		n.commit()
		if !e.Barrier || n.w.breaks(NoBarrier) || !n.server.open && n.opensUnproven() {
			n.demandEnds(e.ID, "")
			return
		}
		n.write()
		n.push()
		n.awaitBarrier(e.ID, len(n.disk.wal), n.w.now+5*time.Second)
	})
}

// opensUnproven says that a leader which comes back does not wait for its WAL to be proven. One that nobody confirms
// gets no proof either: without a question, and with the proof, nothing would be noticed.
func (n *node) opensUnproven() bool { return n.w.breaks(OpensUnproven) || n.w.breaks(OpensUnasked) }

func (n *node) awaitBarrier(id uint64, end int, until time.Duration) {
	switch {
	case n.demanded != id:
	case n.lead() == nil || n.w.now > until:
		n.demandEnds(id, "the standbys do not have all WAL")
	case n.lead().acked >= end:
		n.demandEnds(id, "")
	default:
		n.later(20*ms, func() { n.awaitBarrier(id, end, until) })
	}
}

func (n *node) demandEnds(id uint64, err string) {
	if n.demanded == id {
		n.demanded = 0
		n.step(machine.Done{ID: id, Err: err})
	}
}

// monitor looks after a server while it runs.
func (n *node) monitor(run uint64) {
	n.later(n.w.between(100*ms, 500*ms), func() {
		if n.server != nil && n.server.run == run {
			n.seeServer()
			n.monitor(run)
		}
	})
}

// seeServer says how the server is.
func (n *node) seeServer() {
	s := n.server
	if s == nil || n.machine == nil {
		return
	}
	e := machine.ServerSeen{Run: s.run, Following: s.following, Oldest: wal.LSN(n.disk.oldest)} //nolint:gosec // small
	switch {
	case s.role == ha.ServerStandby && !n.consistent():
	case s.role == ha.ServerStandby:
		e.Answers, e.Streaming, e.Received, e.Known = true, n.streaming(), n.disk.end(), n.known()
		if e.Unreplayed = s.unreplayed(n.w.now); e.Known {
			e.End = n.disk.end()
		}
	case s.lead != nil:
		e.Answers, e.Written, e.Standbys = true, n.disk.end(), n.caughtUp()
	}
	n.step(e)
}
