package simulation

import (
	"time"

	"toban.dev/internal/ha"
)

// rebuild is a copy or a rewind that is going on.
type rebuild struct {
	action ha.Action
	ballot ha.Ballot
	source int
	began  time.Duration
}

func (n *node) startRebuild(d ha.Decision) {
	n.stopServer()
	n.told.Rebuilding = true
	r := &rebuild{d.Action, d.Ballot, indexOf(d.Target), n.clock()}
	n.rebuild = r
	if d.Action == ha.Rewind {
		n.data, n.lostAt = ha.DataIncomplete, n.w.now
	}
	if d.Action == ha.Clone && n.w.breaks(DiscardsFirst) {
		n.discard()
	}
	took := n.w.between(100*ms, 1500*ms)
	n.later(took/2, func() { n.fetch(r, took/2) })
}

// fetch asks the leader for its WAL; the copy is whole after a while more.
func (n *node) fetch(r *rebuild, took time.Duration) {
	n.ask(r.source, func(p *node, reply func(func())) {
		if p.refuses() || !p.serves(r.ballot.Term) && (!n.w.breaks(CloneFromOld) || p.server != ha.ServerPrimary) {
			return
		}
		wal, lineage, system, term := p.wal[:len(p.wal):len(p.wal)], p.mem.Lineage, p.system, p.mem.Won
		reply(func() {
			n.makeRoom(r)
			n.later(took, func() { n.finishRebuild(r, wal, lineage, system, term) })
		})
	}, nil)
	n.later(took+1000*ms, func() {
		if n.rebuild == r {
			n.log("gives up the %s", r.action)
			n.rebuild = nil
		}
	})
}

// makeRoom gives up the data for a copy that flows, where the volume has no room for both and nothing is lost by it; else the copy.
func (n *node) makeRoom(r *rebuild) {
	if n.rebuild != r || r.action != ha.Clone || !n.cramped || n.data == ha.DataEmpty {
		return
	}
	v := n.view()
	for i := range n.heard {
		if n.heard[i].sent <= r.began {
			delete(v.Peers, nameOf(i))
		}
	}
	v.Local.End = n.end()
	if needed := v.DataNeeded(); (needed != nil || n.mem.Ballot != r.ballot) && !n.w.breaks(DiscardsUnasked) {
		n.log("gives up the %s: %v", r.action, needed)
		n.rebuild, n.noRoom = nil, true
		return
	}
	n.discard()
}

// discard removes the data.
func (n *node) discard() {
	if !n.cramped || n.data == ha.DataEmpty {
		return
	}
	n.log("gives up its data of %d", len(n.wal))
	n.w.checkDiscard(n)
	n.data, n.wal = ha.DataEmpty, nil
	n.told.Data = ha.DataEmpty
}

// finishRebuild puts a whole copy in place, if its leader still is the one to copy from.
func (n *node) finishRebuild(r *rebuild, wal []entry, lineage []ha.Start, system string, term uint64) {
	if n.rebuild != r {
		return
	}
	n.rebuild = nil
	if n.mem.Ballot != r.ballot && !n.w.breaks(CloneFromOld) {
		n.log("gives up the %s: the ballot is %v now", r.action, n.mem.Ballot)
		return
	}
	if r.action == ha.Clone && n.w.scarce && n.w.volumes.Float64() < 0.2 {
		n.log("the copy fails")
		return
	}
	if r.action == ha.Rewind && n.w.chance(0.1) {
		n.data, n.rewindFailed = ha.DataPresent, true
		return
	}
	if n.mem.Ballot.Term > term {
		n.w.fail("data is replaced only from the leader of the highest term", "%s copied from term %d, knows %d", n.name, term, n.mem.Ballot.Term)
	}
	m := n.mem
	m.Lineage = lineage
	n.store(m)
	n.data, n.wal, n.system, n.rewindFailed, n.oldest = ha.DataPresent, append([]entry(nil), wal...), system, false, len(wal)/2
	n.noRoom, n.stalledSince = false, -1 // what was stuck is gone with the data
	n.checkLineage()
	n.log("%s done: %d of term %d", r.action, len(wal), term)
}
