package simulation

import (
	"time"

	"toban.dev/internal/ha"
	"toban.dev/internal/ha/machine"
)

// rebuild is a copy or a rewind that is going on.
type rebuild struct {
	n       *node
	command machine.Command
	source  int
}

func (n *node) startRebuild(c machine.Command) {
	n.endServer()
	n.task = c.ID
	r := &rebuild{n, c, indexOf(c.Ballot.Leader)}
	n.rebuild = r
	if c.Kind == machine.Rewind {
		n.disk.data, n.disk.lostAt = ha.DataIncomplete, n.w.now
	}
	if c.Kind == machine.Clone && n.w.breaks(DiscardsFirst) {
		n.discard()
	}
	took := n.w.between(100*ms, 1500*ms)
	n.later(took/2, func() { r.fetch(took / 2) })
}

// goesOn says that a rebuild is still wanted.
func (r *rebuild) goesOn() bool { return r.n.rebuild == r && r.n.task == r.command.ID }

// end ends it.
func (r *rebuild) end(d machine.Done) {
	if r.goesOn() {
		r.n.rebuild, r.n.task = nil, 0
		d.ID = r.command.ID
		r.n.seeData()
		r.n.done(d)
	}
}

// fetch asks the leader for its WAL; the copy is whole after a while more.
func (r *rebuild) fetch(took time.Duration) {
	r.n.ask(r.source, func(p *node, reply func(func())) {
		if p.refuses() ||
			!p.serves(r.command.Ballot.Term) && (!r.n.w.breaks(CloneFromOld) || p.role() != ha.ServerPrimary) {
			return
		}
		d := &p.disk
		wal, history, system, term := d.wal[:len(d.wal):len(d.wal)], d.mem.TermHistory, d.system, d.mem.Won
		reply(func() {
			r.makeRoom(func() {
				r.n.later(took, func() { r.finish(wal, history, system, term) })
			})
		})
	}, nil)
	r.n.later(took+1000*ms, func() { r.end(machine.Done{Err: "the copy does not come to its end"}) })
}

// makeRoom gives up the data for a copy that flows, where the volume has no room for both and nothing is
// lost by it; else the copy.
func (r *rebuild) makeRoom(then func()) {
	if !r.goesOn() {
		return
	}
	if r.command.Kind != machine.Clone || !r.n.disk.cramped || r.n.disk.data == ha.DataEmpty {
		then()
		return
	}
	r.mayDiscard(false, func() {
		r.n.discard()
		then()
	})
}

// mayDiscard asks whether the data may be given up for the copy.
func (r *rebuild) mayDiscard(whole bool, then func()) {
	id := r.command.ID
	r.n.replies[id] = func(e machine.Effect) {
		if !r.goesOn() {
			return // it has been ended while that was asked
		}
		said := e.(machine.ReplyDiscard) //nolint:errcheck,forcetypeassert // it answers nothing else
		unasked := r.n.w.breaks(DiscardsUnasked) && !whole || r.n.w.breaks(CloneFromOld)
		if said.Needed != "" && !unasked {
			r.n.log("gives up the copy: %s", said.Needed)
			r.end(machine.Done{Err: said.Needed, NoRoom: !whole, TermHistory: r.n.disk.mem.TermHistory})
			return
		}
		then()
	}
	r.n.step(machine.DiscardAsked{ID: id, Whole: whole})
}

// discard removes the data.
func (n *node) discard() {
	if !n.disk.cramped || n.disk.data == ha.DataEmpty {
		return
	}
	n.log("gives up its data of %d", len(n.disk.wal))
	n.w.check.discards(n)
	n.disk.data, n.disk.wal = ha.DataEmpty, nil
}

// finish replaces the data by the leader's.
func (r *rebuild) finish(wal []entry, history []ha.TermStart, system string, term uint64) {
	if !r.goesOn() {
		return
	}
	if r.n.w.scarce && r.n.w.volumes.Float64() < 0.2 {
		r.end(machine.Done{Err: "the copy fails"})
		return
	}
	if r.command.Kind == machine.Rewind && r.n.w.chance(0.1) {
		r.n.disk.data = ha.DataPresent
		r.end(machine.Done{Err: "the rewind fails", TermHistory: r.n.disk.mem.TermHistory})
		return
	}
	r.mayDiscard(true, func() { r.replace(wal, history, system, term) })
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
func (r *rebuild) replace(wal []entry, history []ha.TermStart, system string, term uint64) {
	if r.n.disk.mem.Ballot.Term > term {
		r.n.w.fail("data is replaced only from the leader of the highest term", "%s copied from term %d, knows %d",
			r.n.name, term, r.n.disk.mem.Ballot.Term)
	}
	r.n.disk.mem.TermHistory = history
	d := &r.n.disk
	d.data, d.wal, d.system, d.oldest = ha.DataPresent, append([]entry(nil), wal...), system, len(wal)/2
	r.n.rewoundUntil = r.n.w.now
	if r.command.Kind == machine.Rewind {
		r.n.rewoundUntil += r.n.minimum()
	}
	r.n.checkTermHistory()
	r.n.log("%s done: %d of term %d", r.command.Kind, len(wal), term)
	r.end(machine.Done{TermHistory: history})
}
