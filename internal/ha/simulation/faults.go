package simulation

import (
	"time"

	"toban.dev/internal/ha"
	"toban.dev/internal/ha/machine"
)

// schedule plans the faults of a run.
func (w *World) schedule() {
	w.op.end = w.between(10*time.Second, 30*time.Second)
	w.choose()
	w.refuseReplication()
	w.resetConnections()
	for range 8 + w.rng.IntN(20) {
		w.after(w.between(3*time.Second, w.op.end), w.fault)
	}
}

// refuseReplication has the leader take no replication for a while, in some runs: nobody streams from it or copies its
// data, though the agents hear each other. It removes WAL meanwhile.
func (w *World) refuseReplication() {
	if !w.scarce {
		return
	}
	at := 3*time.Second + time.Duration(w.volumes.Int64N(int64(w.op.end)))
	lasts := time.Second + time.Duration(w.volumes.Int64N(int64(7*time.Second)))
	w.after(at, func() {
		for _, n := range w.nodes {
			if n.up && n.lead() != nil && !w.op.healing {
				n.log("takes no replication for %s", lasts)
				n.deafUntil = w.now + lasts
				n.hangUp()
				n.lead().conns = [maxNodes]*downstreamConn{}
				n.later(lasts/2, func() { n.oldest = max(n.oldest, len(n.wal)) })
			}
		}
	})
}

// resetConnections has a firewall reset what is sent to a leader and by it for a while, in some runs: to the others it
// looks as if it had ended, and they elect before it is fenced. So what is read there may be overtaken until it is.
func (w *World) resetConnections() {
	if w.firewall.Float64() < 0.7 {
		return
	}
	for range 1 + w.firewall.IntN(3) {
		at := 3*time.Second + time.Duration(w.firewall.Int64N(int64(w.op.end)))
		lasts := 300*ms + time.Duration(w.firewall.Int64N(int64(4*time.Second)))
		w.after(at, func() {
			for _, n := range w.nodes {
				if n.up && n.lead() != nil && !w.op.healing {
					n.resetConnections(lasts)
					return
				}
			}
		})
	}
}

// fencedWithin is how long a primary that nobody answers may serve: until its limit is over, by a slow clock, until its
// agent looks again, and until its server has ended.
const fencedWithin = ha.FenceLimit + 500*ms

func (n *node) resetConnections(lasts time.Duration) {
	n.log("is behind a firewall that resets connections for %s", lasts)
	n.hangUp()
	n.lead().conns = [maxNodes]*downstreamConn{}
	n.excused = max(n.excused, n.w.now+fencedWithin)
	for i := range maxNodes {
		n.w.net.resets[n.index][i], n.w.net.resets[i][n.index] = i != n.index, i != n.index
	}
	n.w.after(lasts, func() {
		for i := range maxNodes {
			n.w.net.resets[n.index][i], n.w.net.resets[i][n.index] = false, false
		}
	})
}

// choose says how often each fault happens in this run: some never do, so that
// others come thick and fast.
func (w *World) choose() {
	w.faults = [...]int{6, 4, 2, 2, 6, 5, 5, 3, 3, 3, 3, 3, 2, 5, 2, 2, 4, 4, 4}
	for i := range w.faults {
		w.faults[i] *= pick(w, 3, 4, 0, 0, 2) // by 0, 1 or 4
	}
	w.faults[w.rng.IntN(len(w.faults))]++
}

// pauseIsNoticedFor is when what was missed in a pause has been made up for.
const pauseIsNoticedFor = 1500 * ms

// fault does one random thing to the cluster.
func (w *World) fault() {
	if w.op.healing {
		return
	}
	n := w.victim()
	switch kind := pick(w, w.faults[:]...); kind {
	case 0:
		w.restart(n, w.between(50*ms, 6*time.Second))
	case 1:
		w.endServer(n)
	case 2:
		w.loseVolume(n)
	case 3:
		w.loseData(n)
	case 4:
		w.pause(n)
	case 5:
		w.isolate(n)
	case 6:
		w.cutOneWay()
	case 7:
		w.disturb()
	case 8:
		by := w.between(-5*time.Second, 10*time.Second)
		n.log("clock jumps by %s", by)
		n.offset += by
		w.excused = max(w.excused, w.now+15*time.Second)
		n.lastContact = max(n.lastContact, w.now-min(by, 0))
	default:
		w.change(n, kind)
	}
}

// change does what people and the API do.
func (w *World) change(n *node, kind int) {
	switch kind {
	case 9:
		w.loseAPI(n)
	case 10:
		w.resize()
	case 11:
		w.leave(n)
	case 12:
		w.op.async = !w.op.async
		w.log("CONFIG", "async %v", w.op.async)
	case 13:
		w.switchOver()
	case 14:
		n.log("removes old WAL")
		n.oldest = max(n.oldest, len(n.wal)-2)
	case 15:
		w.restartAll()
	case 16:
		w.ambush = true
	case 18:
		n.stall(w.between(500*ms, 8*time.Second))
	case 17:
		d := w.between(500*ms, 6*time.Second)
		n.log("its agent hangs for %s, its server goes on", d)
		n.pause.busy = max(n.pause.busy, w.now+d)
		n.excused = max(n.excused, w.now+d+pauseIsNoticedFor)
	}
}

// victim is an instance that something is done to: often the leader.
func (w *World) victim() *node {
	if w.chance(0.4) {
		for _, n := range w.nodes {
			if n.up && n.role() == ha.ServerPrimary {
				return n
			}
		}
	}
	for {
		if n := w.nodes[w.rng.IntN(maxNodes)]; n.exists {
			return n
		}
	}
}

func (w *World) restart(n *node, down time.Duration) {
	if !n.up {
		return
	}
	n.crash()
	w.after(down, func() {
		if n.exists && !n.up {
			n.start()
		}
	})
}

// begun does away with a new leader, where one was waited for: a term that has
// begun and that few have seen is the hardest on all others.
func (w *World) begun(n *node) {
	if !w.ambush || w.op.healing {
		return
	}
	w.ambush = false
	w.after(w.between(1*ms, 800*ms), func() {
		switch {
		case w.op.healing:
		case w.chance(0.5):
			w.restart(n, w.between(time.Second, 10*time.Second))
		default:
			w.isolate(n)
		}
	})
}

func (w *World) restartAll() {
	for _, n := range w.nodes {
		if n.exists {
			w.restart(n, w.between(100*ms, 4*time.Second))
		}
	}
}

func (w *World) endServer(n *node) {
	if !n.up || n.server == nil {
		return
	}
	n.log("server ends")
	run := n.server.run
	n.endServer()
	n.step(machine.ServerEnded{Run: run, Why: "the server has ended"})
}

func (w *World) loseVolume(n *node) {
	if !n.up || w.op.system == "" || n.config.SystemIdentifier == "" || w.fragile(n) && w.chance(0.9) {
		return
	}
	n.log("loses its volume")
	n.lostAt = w.now
	n.crash()
	if w.breaks(VoterKept) {
		n.data, n.wal, n.maxTerms = ha.DataPresent, nil, [2]uint64{}
		n.mem = ha.HardState{Voter: n.mem.Voter, Configuration: n.mem.Configuration}
	} else {
		n.create()
	}
	w.after(w.between(100*ms, 3*time.Second), func() {
		if n.exists && !n.up {
			n.start()
		}
	})
}

// fragile says that another loss could be one too many.
func (w *World) fragile(n *node) bool {
	count := 0
	for _, o := range w.nodes {
		if o != n && o.exists && o.data == ha.DataPresent && o.mem.Configuration.Has(o.mem.Voter) &&
			len(o.mem.Configuration.Now.Voters) > 1 {
			count++
		}
	}
	return count < 2
}

func (w *World) loseData(n *node) {
	if !n.up || w.op.system == "" || n.config.SystemIdentifier == "" || w.fragile(n) && w.chance(0.9) {
		return
	}
	n.log("loses its data")
	n.lostAt = w.now
	n.crash()
	n.data, n.wal = ha.DataEmpty, nil
	w.after(w.between(100*ms, 2*time.Second), func() {
		if n.exists && !n.up {
			n.start()
		}
	})
}

func (w *World) pause(n *node) {
	d := w.between(50*ms, 8*time.Second)
	n.log("pauses for %s", d)
	n.pause.until = max(n.pause.until, w.now+d)
	n.excused = max(n.excused, w.now+d+pauseIsNoticedFor)
}

// isolate cuts an instance off, from everybody or from some, perhaps also from the API.
func (w *World) isolate(n *node) {
	all, api := w.chance(0.6), w.chance(0.6)
	n.log("is cut off, API too: %v", api)
	for i := range maxNodes {
		if all || w.chance(0.5) {
			w.net.cut[n.index][i], w.net.cut[i][n.index] = true, true
		}
	}
	w.api.away[n.index] = w.api.away[n.index] || api
	w.after(w.between(300*ms, 9*time.Second), func() { w.join(n) })
}

func (w *World) join(n *node) {
	n.log("is joined again")
	for i := range maxNodes {
		w.net.cut[n.index][i], w.net.cut[i][n.index] = false, false
	}
	w.api.away[n.index] = false
}

func (w *World) cutOneWay() {
	a, b := w.victim(), w.victim()
	if a == b {
		return
	}
	w.log(a.name, "can't send to %s", b.name)
	w.net.cut[a.index][b.index] = true
	w.after(w.between(300*ms, 9*time.Second), func() { w.net.cut[a.index][b.index] = false })
}

// disturb makes the network slow and lossy for a while.
func (w *World) disturb() {
	w.net.loss, w.net.slow = 0.3*w.rng.Float64(), w.between(20*ms, 1500*ms)
	w.log("NET", "loses %.2f, delays up to %s", w.net.loss, w.net.slow)
	w.after(w.between(time.Second, 6*time.Second), func() { w.net.loss, w.net.slow = 0, 0 })
}

func (w *World) loseAPI(n *node) {
	all := w.chance(0.5)
	w.log("API", "is away for %s, all %v", n.name, all)
	for i := range maxNodes {
		if all || i == n.index {
			w.api.away[i] = true
			w.after(w.between(time.Second, 10*time.Second), func() { w.api.away[i] = false })
		}
	}
}

func (w *World) resize() {
	w.op.members = names(1 + pick(w, 2, 4, 6, 2, 3))
	w.log("CONFIG", "members %v", w.op.members)
}

// leave ends an instance in order.
func (w *World) leave(n *node) {
	n.log("is asked to leave")
	n.step(machine.LeaveAsked{})
	epoch := n.epoch
	w.after(w.between(500*ms, 4*time.Second), func() {
		if n.epoch == epoch {
			w.restart(n, w.between(200*ms, 3*time.Second))
		}
	})
}

// switchOver asks whoever leads to leave the lead to another.
func (w *World) switchOver() {
	for _, n := range w.nodes {
		if n.up && n.lead() != nil {
			to := ""
			if w.chance(0.5) {
				to = w.op.members[w.rng.IntN(len(w.op.members))]
			}
			n.log("is asked to resign to %q", to)
			n.step(machine.ResignAsked{To: to})
		}
	}
}

// heal takes every fault back.
func (w *World) heal() {
	w.log("HEAL", "members %v, async %v", w.op.members, w.op.async)
	w.op.healing = true
	w.net = network{arrival: w.net.arrival}
	w.api.away = [maxNodes]bool{}
	w.check.healed = w.now
	for _, n := range w.nodes {
		n.deafUntil, n.stalledUntil = min(n.deafUntil, w.now), min(n.stalledUntil, w.now)
		n.rewoundUntil = min(n.rewoundUntil, w.now)
		n.pause.end()
		if n.exists && !n.up {
			n.start()
		}
	}
}
