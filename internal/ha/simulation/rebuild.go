package simulation

import (
	"time"

	"toban.dev/internal/ha"
	"toban.dev/internal/ha/machine"
)

// rebuild is a copy or a rewind that is going on.
type rebuild struct {
	command machine.Command
	source  int
}

func (n *node) startRebuild(c machine.Command) {
	n.endServer()
	n.task = c.ID
	r := &rebuild{c, indexOf(c.Ballot.Leader)}
	n.rebuild = r
	if c.Kind == machine.Rewind {
		n.data, n.lostAt = ha.DataIncomplete, n.w.now
	}
	if c.Kind == machine.Clone && n.w.breaks(DiscardsFirst) {
		n.discard()
	}
	took := n.w.between(100*ms, 1500*ms)
	n.later(took/2, func() { n.fetch(r, took/2) })
}

// rebuilds says that a rebuild is still wanted.
func (n *node) rebuilds(r *rebuild) bool { return n.rebuild == r && n.task == r.command.ID }

// endRebuild ends it.
func (n *node) endRebuild(r *rebuild, d machine.Done) {
	if n.rebuilds(r) {
		n.rebuild, n.task = nil, 0
		d.ID = r.command.ID
		n.seeData()
		n.done(d)
	}
}

// fetch asks the leader for its WAL; the copy is whole after a while more.
func (n *node) fetch(r *rebuild, took time.Duration) {
	n.ask(r.source, func(p *node, reply func(func())) {
		if p.refuses() ||
			!p.serves(r.command.Ballot.Term) && (!n.w.breaks(CloneFromOld) || p.role() != ha.ServerPrimary) {
			return
		}
		wal, history, system, term := p.wal[:len(p.wal):len(p.wal)], p.mem.TermHistory, p.system, p.mem.Won
		reply(func() {
			n.makeRoom(r, func() {
				n.later(took, func() { n.finishRebuild(r, wal, history, system, term) })
			})
		})
	}, nil)
	n.later(took+1000*ms, func() { n.endRebuild(r, machine.Done{Err: "the copy does not come to its end"}) })
}

// makeRoom gives up the data for a copy that flows, where the volume has no room for both and nothing is
// lost by it; else the copy.
func (n *node) makeRoom(r *rebuild, then func()) {
	if !n.rebuilds(r) {
		return
	}
	if r.command.Kind != machine.Clone || !n.cramped || n.data == ha.DataEmpty {
		then()
		return
	}
	n.mayDiscard(r, false, func() {
		n.discard()
		then()
	})
}

// mayDiscard asks whether the data may be given up for the copy.
func (n *node) mayDiscard(r *rebuild, whole bool, then func()) {
	id := r.command.ID
	n.replies[id] = func(e machine.Effect) {
		if !n.rebuilds(r) {
			return // it has been ended while that was asked
		}
		said := e.(machine.ReplyDiscard) //nolint:errcheck,forcetypeassert // it answers nothing else
		unasked := n.w.breaks(DiscardsUnasked) && !whole || n.w.breaks(CloneFromOld)
		if said.Needed != "" && !unasked {
			n.log("gives up the copy: %s", said.Needed)
			n.endRebuild(r, machine.Done{Err: said.Needed, NoRoom: !whole, TermHistory: n.mem.TermHistory})
			return
		}
		then()
	}
	n.step(machine.DiscardAsked{ID: id, Whole: whole})
}

// discard removes the data.
func (n *node) discard() {
	if !n.cramped || n.data == ha.DataEmpty {
		return
	}
	n.log("gives up its data of %d", len(n.wal))
	n.w.check.discards(n)
	n.data, n.wal = ha.DataEmpty, nil
}

// finishRebuild replaces the data by the leader's.
func (n *node) finishRebuild(r *rebuild, wal []entry, history []ha.TermStart, system string, term uint64) {
	if !n.rebuilds(r) {
		return
	}
	if n.w.scarce && n.w.volumes.Float64() < 0.2 {
		n.endRebuild(r, machine.Done{Err: "the copy fails"})
		return
	}
	if r.command.Kind == machine.Rewind && n.w.chance(0.1) {
		n.data = ha.DataPresent
		n.endRebuild(r, machine.Done{Err: "the rewind fails", TermHistory: n.mem.TermHistory})
		return
	}
	n.mayDiscard(r, true, func() { n.replace(r, wal, history, system, term) })
}

// minimum is how long a rewound server replays before it is consistent: in most schedules for no time, as
// far as elections notice.
func (n *node) minimum() time.Duration {
	if !n.w.scarce || n.w.volumes.Float64() < 0.3 {
		return 0
	}
	return time.Duration(n.w.volumes.Int64N(int64(20 * time.Second)))
}

// replace puts the copy in the place of the data.
func (n *node) replace(r *rebuild, wal []entry, history []ha.TermStart, system string, term uint64) {
	if n.mem.Ballot.Term > term {
		n.w.fail("data is replaced only from the leader of the highest term", "%s copied from term %d, knows %d",
			n.name, term, n.mem.Ballot.Term)
	}
	n.mem.TermHistory = history
	n.data, n.wal, n.system, n.oldest = ha.DataPresent, append([]entry(nil), wal...), system, len(wal)/2
	n.rewoundUntil = n.w.now
	if r.command.Kind == machine.Rewind {
		n.rewoundUntil += n.minimum()
	}
	n.checkTermHistory()
	n.log("%s done: %d of term %d", r.command.Kind, len(wal), term)
	n.endRebuild(r, machine.Done{TermHistory: history})
}
