package simulation

import (
	"math/rand/v2"
	"time"

	"toban.dev/internal/ha"
	"toban.dev/internal/ha/machine"
)

// nemesis is what breaks the world.
type nemesis struct {
	w *World
	// firewall decides when one resets connections, replay when a standby replays slowly, dead whether a primary takes
	// no replication for long, and that is all. They are sources of their own.
	firewall, replay, dead *rand.Rand
	// often is how often each fault happens, by its number.
	often [19]int
	// ambush says that something happens to the next leader.
	ambush bool
}

// schedule plans the faults of a run.
func (x *nemesis) schedule() {
	if x.dead.Float64() < 0.02 {
		x.blockReplication()
		return
	}
	x.w.op.end = x.w.between(10*time.Second, 30*time.Second)
	x.choose()
	x.refuseReplication()
	x.resetConnections()
	x.holdReplay()
	for range 8 + x.w.rng.IntN(20) {
		x.w.after(x.w.between(3*time.Second, x.w.op.end), x.fault)
	}
}

// refuseReplication has the leader take no replication for a while, in some runs: nobody streams from it or copies its
// data, though the agents hear each other. It removes WAL meanwhile.
func (x *nemesis) refuseReplication() {
	if !x.w.scarce {
		return
	}
	at := 3*time.Second + time.Duration(x.w.volumes.Int64N(int64(x.w.op.end)))
	lasts := time.Second + time.Duration(x.w.volumes.Int64N(int64(7*time.Second)))
	x.w.after(at, func() {
		for _, n := range x.w.nodes {
			if x.refusesNow(n, lasts) {
				n.later(lasts/2, func() { n.disk.oldest = max(n.disk.oldest, len(n.disk.wal)) })
			}
		}
	})
}

// refusesNow has a leader take no replication for a while.
func (x *nemesis) refusesNow(n *node, lasts time.Duration) bool {
	if !n.up || n.lead() == nil || x.w.op.healing {
		return false
	}
	n.log("takes no replication for %s", lasts)
	n.deafUntil = x.w.now + lasts
	n.hangUp()
	n.server.conns = [maxNodes]*downstreamConn{}
	return true
}

// blockReplication has the leader take no replication for so long that it is to make way, while all else is well:
// writes go on soon after that, unless the next one fails too.
func (x *nemesis) blockReplication() {
	at, lasts := 5*time.Second, ha.AcknowledgeLimit+30*time.Second
	x.w.op.end = at + lasts + 5*time.Second
	x.w.after(at, func() {
		for _, n := range x.w.nodes {
			quorum := n.disk.mem.Configuration.Now
			if !x.refusesNow(n, lasts) || len(quorum.Voters) < 3 || !strong(quorum) {
				continue
			}
			term := n.disk.mem.Won
			x.w.after(ha.AcknowledgeLimit+28*time.Second, func() { // a checkpoint may take 20 s
				if x.w.now-x.w.check.lastAck > 5*time.Second && x.w.newestTerm() == term {
					x.w.fail("a leader whose commits nobody acknowledges makes way",
						"%s leads, the last write was %s ago", n.name, x.w.now-x.w.check.lastAck)
				}
			})
		}
	})
}

// resetConnections has a firewall reset what is sent to a leader and by it for a while, in some runs: to the others it
// looks as if it had ended, and they elect before it is fenced. So what is read there may be overtaken until it is.
func (x *nemesis) resetConnections() {
	if x.firewall.Float64() < 0.7 {
		return
	}
	for range 1 + x.firewall.IntN(3) {
		at := 3*time.Second + time.Duration(x.firewall.Int64N(int64(x.w.op.end)))
		lasts := 300*ms + time.Duration(x.firewall.Int64N(int64(4*time.Second)))
		x.w.after(at, func() {
			for _, n := range x.w.nodes {
				if n.up && n.lead() != nil && !x.w.op.healing {
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

// holdReplay has standbys have much to replay for a while, in some runs, though they receive what there is.
func (x *nemesis) holdReplay() {
	if x.replay.Float64() < 0.6 {
		return
	}
	for range 1 + x.replay.IntN(4) {
		at := 3*time.Second + time.Duration(x.replay.Int64N(int64(x.w.op.end)))
		lasts := time.Second + time.Duration(x.replay.Int64N(int64(20*time.Second)))
		n := x.w.nodes[x.replay.IntN(len(x.w.nodes))]
		x.w.after(at, func() {
			if n.role() == ha.ServerStandby && !x.w.op.healing {
				n.log("has %s of WAL to replay", lasts)
				n.server.replaysIn(x.w.now, lasts)
			}
		})
	}
}

func (n *node) resetConnections(lasts time.Duration) {
	n.log("is behind a firewall that resets connections for %s", lasts)
	n.hangUp()
	n.server.conns = [maxNodes]*downstreamConn{}
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
func (x *nemesis) choose() {
	x.often = [...]int{6, 4, 2, 2, 6, 5, 5, 3, 3, 3, 3, 3, 2, 5, 2, 2, 4, 4, 4}
	for i := range x.often {
		x.often[i] *= pick(x.w, 3, 4, 0, 0, 2) // by 0, 1 or 4
	}
	x.often[x.w.rng.IntN(len(x.often))]++
}

// pauseIsNoticedFor is when what was missed in a pause has been made up for.
const pauseIsNoticedFor = 1500 * ms

// fault does one random thing to the cluster.
func (x *nemesis) fault() {
	if x.w.op.healing {
		return
	}
	n := x.victim()
	switch kind := pick(x.w, x.often[:]...); kind {
	case 0:
		x.restart(n, x.w.between(50*ms, 6*time.Second))
	case 1:
		x.endServer(n)
	case 2:
		x.loseVolume(n)
	case 3:
		x.loseData(n)
	case 4:
		x.pause(n)
	case 5:
		x.isolate(n)
	case 6:
		x.cutOneWay()
	case 7:
		x.disturb()
	case 8:
		by := x.w.between(-5*time.Second, 10*time.Second)
		n.log("clock jumps by %s", by)
		n.offset += by
		x.w.excused = max(x.w.excused, x.w.now+15*time.Second)
		n.lastContact = max(n.lastContact, x.w.now-min(by, 0))
	default:
		x.change(n, kind)
	}
}

// change does what people and the API do.
func (x *nemesis) change(n *node, kind int) {
	switch kind {
	case 9:
		x.loseAPI(n)
	case 10:
		x.w.resize()
	case 11:
		x.leave(n)
	case 12:
		x.w.op.async = !x.w.op.async
		x.w.log("CONFIG", "async %v", x.w.op.async)
	case 13:
		x.switchOver()
	case 14:
		n.log("removes old WAL")
		n.disk.oldest = max(n.disk.oldest, len(n.disk.wal)-2)
	case 15:
		x.restartAll()
	case 16:
		x.ambush = true
	case 18:
		n.stall(x.w.between(500*ms, 8*time.Second))
	case 17:
		d := x.w.between(500*ms, 6*time.Second)
		n.log("its agent hangs for %s, its server goes on", d)
		n.pause.busy = max(n.pause.busy, x.w.now+d)
		n.excused = max(n.excused, x.w.now+d+pauseIsNoticedFor)
	}
}

// victim is an instance that something is done to: often the leader.
func (x *nemesis) victim() *node {
	if x.w.chance(0.4) {
		for _, n := range x.w.nodes {
			if n.up && n.role() == ha.ServerPrimary {
				return n
			}
		}
	}
	for {
		if n := x.w.nodes[x.w.rng.IntN(maxNodes)]; n.disk.exists {
			return n
		}
	}
}

func (x *nemesis) restart(n *node, down time.Duration) {
	if !n.up {
		return
	}
	n.crash()
	x.w.after(down, func() {
		if n.disk.exists && !n.up {
			n.start()
		}
	})
}

// begun does away with a new leader, where one was waited for: a term that has
// begun and that few have seen is the hardest on all others.
func (x *nemesis) begun(n *node) {
	if !x.ambush || x.w.op.healing {
		return
	}
	x.ambush = false
	x.w.after(x.w.between(1*ms, 800*ms), func() {
		switch {
		case x.w.op.healing:
		case x.w.chance(0.5):
			x.restart(n, x.w.between(time.Second, 10*time.Second))
		default:
			x.isolate(n)
		}
	})
}

func (x *nemesis) restartAll() {
	for _, n := range x.w.nodes {
		if n.disk.exists {
			x.restart(n, x.w.between(100*ms, 4*time.Second))
		}
	}
}

func (x *nemesis) endServer(n *node) {
	if !n.up || n.server == nil {
		return
	}
	n.log("server ends")
	run := n.server.run
	n.endServer()
	n.step(machine.ServerEnded{Run: run, Why: "the server has ended"})
}

func (x *nemesis) loseVolume(n *node) {
	if !n.up || x.w.op.system == "" || n.config.SystemIdentifier == "" || x.fragile(n) && x.w.chance(0.9) {
		return
	}
	n.log("loses its volume")
	n.disk.lostAt = x.w.now
	n.crash()
	if x.w.breaks(VoterKept) {
		n.disk.data, n.disk.wal, n.disk.maxTerms = ha.DataPresent, nil, [2]uint64{}
		n.disk.mem = ha.HardState{Voter: n.disk.mem.Voter, Configuration: n.disk.mem.Configuration}
	} else {
		n.create()
	}
	x.w.after(x.w.between(100*ms, 3*time.Second), func() {
		if n.disk.exists && !n.up {
			n.start()
		}
	})
}

// fragile says that another loss could be one too many.
func (x *nemesis) fragile(n *node) bool {
	count := 0
	for _, o := range x.w.nodes {
		if o != n && o.disk.exists && o.disk.data == ha.DataPresent && o.disk.mem.Configuration.Has(o.disk.mem.Voter) &&
			len(o.disk.mem.Configuration.Now.Voters) > 1 {
			count++
		}
	}
	return count < 2
}

func (x *nemesis) loseData(n *node) {
	if !n.up || x.w.op.system == "" || n.config.SystemIdentifier == "" || x.fragile(n) && x.w.chance(0.9) {
		return
	}
	n.log("loses its data")
	n.disk.lostAt = x.w.now
	n.crash()
	n.disk.data, n.disk.wal = ha.DataEmpty, nil
	x.w.after(x.w.between(100*ms, 2*time.Second), func() {
		if n.disk.exists && !n.up {
			n.start()
		}
	})
}

func (x *nemesis) pause(n *node) {
	d := x.w.between(50*ms, 8*time.Second)
	n.log("pauses for %s", d)
	n.pause.until = max(n.pause.until, x.w.now+d)
	n.excused = max(n.excused, x.w.now+d+pauseIsNoticedFor)
}

// isolate cuts an instance off, from everybody or from some, perhaps also from the API.
func (x *nemesis) isolate(n *node) {
	all, api := x.w.chance(0.6), x.w.chance(0.6)
	n.log("is cut off, API too: %v", api)
	for i := range maxNodes {
		if all || x.w.chance(0.5) {
			x.w.net.cut[n.index][i], x.w.net.cut[i][n.index] = true, true
		}
	}
	x.w.api.away[n.index] = x.w.api.away[n.index] || api
	x.w.after(x.w.between(300*ms, 9*time.Second), func() { x.join(n) })
}

func (x *nemesis) join(n *node) {
	n.log("is joined again")
	for i := range maxNodes {
		x.w.net.cut[n.index][i], x.w.net.cut[i][n.index] = false, false
	}
	x.w.api.away[n.index] = false
}

func (x *nemesis) cutOneWay() {
	a, b := x.victim(), x.victim()
	if a == b {
		return
	}
	x.w.log(a.name, "can't send to %s", b.name)
	x.w.net.cut[a.index][b.index] = true
	x.w.after(x.w.between(300*ms, 9*time.Second), func() { x.w.net.cut[a.index][b.index] = false })
}

// disturb makes the network slow and lossy for a while.
func (x *nemesis) disturb() {
	x.w.net.loss, x.w.net.slow = 0.3*x.w.rng.Float64(), x.w.between(20*ms, 1500*ms)
	x.w.log("NET", "loses %.2f, delays up to %s", x.w.net.loss, x.w.net.slow)
	x.w.after(x.w.between(time.Second, 6*time.Second), func() { x.w.net.loss, x.w.net.slow = 0, 0 })
}

func (x *nemesis) loseAPI(n *node) {
	all := x.w.chance(0.5)
	x.w.log("API", "is away for %s, all %v", n.name, all)
	for i := range maxNodes {
		if all || i == n.index {
			x.w.api.away[i] = true
			x.w.after(x.w.between(time.Second, 10*time.Second), func() { x.w.api.away[i] = false })
		}
	}
}

func (w *World) resize() {
	w.op.members = names(1 + pick(w, 2, 4, 6, 2, 3))
	w.log("CONFIG", "members %v", w.op.members)
}

// leave ends an instance in order.
func (x *nemesis) leave(n *node) {
	n.log("is asked to leave")
	n.step(machine.LeaveAsked{})
	epoch := n.epoch
	x.w.after(x.w.between(500*ms, 4*time.Second), func() {
		if n.epoch == epoch {
			x.restart(n, x.w.between(200*ms, 3*time.Second))
		}
	})
}

// switchOver asks whoever leads to leave the lead to another.
func (x *nemesis) switchOver() {
	for _, n := range x.w.nodes {
		if n.up && n.lead() != nil {
			to := ""
			if x.w.chance(0.5) {
				to = x.w.op.members[x.w.rng.IntN(len(x.w.op.members))]
			}
			n.log("is asked to resign to %q", to)
			n.step(machine.ResignAsked{To: to})
		}
	}
}

// heal takes every fault back.
func (x *nemesis) heal() {
	x.w.log("HEAL", "members %v, async %v", x.w.op.members, x.w.op.async)
	x.w.op.healing = true
	x.w.net = network{arrival: x.w.net.arrival}
	x.w.api.away = [maxNodes]bool{}
	x.w.check.healed = x.w.now
	for _, n := range x.w.nodes {
		n.deafUntil, n.disk.stalledUntil = min(n.deafUntil, x.w.now), min(n.disk.stalledUntil, x.w.now)
		n.rewoundUntil = min(n.rewoundUntil, x.w.now)
		if n.server != nil {
			n.server.replayedAt = min(n.server.replayedAt, x.w.now)
		}
		n.pause.end()
		if n.disk.exists && !n.up {
			n.start()
		}
	}
}
