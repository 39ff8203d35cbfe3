package simulation

import (
	"time"

	"toban.dev/internal/ha"
	"toban.dev/internal/wal"
)

// checker is what an observer who sees everything remembers.
type checker struct {
	w       *World
	acks    []acknowledged
	wins    []won
	changes int
	exempt  bool
	healed  time.Duration
	lastAck time.Duration
	last    *node
}

// acknowledged is a commit that a client was told of.
type acknowledged struct {
	index int
	sum   uint64
	term  uint64
	// kept says that durability is promised for it, to leaders of the term since and later.
	kept  bool
	since uint64
}

// won is a term with its winner and the WAL it began with.
type won struct {
	term uint64
	node *node
	wal  []entry
	open bool // the winner went on as primary: its WAL may have grown since
}

// strong says whether a quorum promises durability.
func strong(q ha.Quorum) bool { return q.Acknowledgements > len(q.Voters)/2 }

// wonBy notes that an instance won a term: nobody else may have, and it must have
// all that was acknowledged before.
func (c *checker) wonBy(n *node, term uint64) {
	if promised := n.disk.mem.Ballot.Term; promised > term {
		c.w.fail("who wins a term has promised no later one",
			"%s wins term %d, and has promised %d", n.name, term, promised)
	}
	for _, o := range c.wins {
		if o.term == term && (o.node != n || term > 1) {
			c.w.fail("a term is won once", "term %d by %s and %s", term, o.node.name, n.name)
		}
	}
	n.election.asked = false // until it has; one that takes its leader for ended does not ask
	c.wins = append(c.wins, won{term, n, n.disk.wal[:len(n.disk.wal):len(n.disk.wal)], n.role() == ha.ServerPrimary})
	n.checkTermHistory()
	c.complete(n, term)
}

// leads checks a primary that begins.
func (c *checker) leads(n *node) { c.complete(n, n.disk.mem.Won) }

// complete checks that a leader has every acknowledged write of earlier terms.
func (c *checker) complete(n *node, term uint64) {
	for _, a := range c.acks {
		if a.kept && a.since <= term && sumAt(n.disk.wal, a.index+1) != a.sum {
			c.w.fail("no acknowledged write is lost", "%s leads term %d with %d, but lacks %d of term %d",
				n.name, term, len(n.disk.wal), a.index, a.term)
			return
		}
	}
}

// comesBack checks that a leader which lets clients in again has not been overtaken. With a witness it looks there
// for a later term only now and then. That its agent hangs is not held against it, nor that its clock has gone back.
func (c *checker) comesBack(n *node) {
	if l := n.lead(); l.strong && l.proven < l.began && !c.w.breaks(OpensUnasked) {
		c.w.fail("a leader that comes back shows what is proven", "%s opens with %d, of which %d are",
			n.name, l.began, l.proven)
	}
	if n.disk.mem.Configuration.Witnesses(witnessID) || n.busy() || c.w.now < c.w.excused {
		return
	}
	for _, a := range c.acks {
		if a.kept && a.term > n.disk.mem.Won {
			c.w.fail("a leader that comes back reads nothing stale",
				"%s opens in term %d, and %d was acknowledged in term %d", n.name, n.disk.mem.Won, a.index, a.term)
			return
		}
	}
}

// preempted checks that nobody can read any more at a primary of an earlier term what an acknowledgement preempts.
// A pause is not held against it, nor that the leader could not ask at the API who has the read lease: then the one
// that has it is stopped when it has it no more, which takes some milliseconds.
func (c *checker) preempted(n *node, a acknowledged) {
	for _, o := range c.w.nodes {
		serves := o != n && o.up && o.lead() != nil && o.server.open && o.lead().term < a.term
		leased := serves && (c.w.now < o.leaseGone || o.machine.View().Local.HasReadLease)
		if !serves || c.w.now < max(o.excused, c.w.excused) || !n.election.asked && leased ||
			n.election.onWord && o.election.cameBack {
			continue
		}
		c.w.fail("no stale reads", "%s still serves in term %d, %s acknowledges in %d",
			o.name, o.lead().term, n.name, a.term)
	}
}

// acknowledge notes that a client was told of a commit.
func (c *checker) acknowledge(n *node, index int) {
	if n.role() != ha.ServerPrimary {
		c.w.fail("only a primary acknowledges", "%s is none", n.name)
	}
	sum := n.disk.wal[index].sum
	a := acknowledged{index: index, sum: sum, term: n.lead().term, kept: n.lead().strong, since: n.lead().term}
	if a.kept {
		c.preempted(n, a)
		c.later(n, a)
		c.behind(n, a)
	}
	c.acks = append(c.acks, a)
	c.lastAck, c.last = c.w.now, n
}

// later checks that an acknowledgement that comes late is of a write that
// later leaders have.
func (c *checker) later(n *node, a acknowledged) {
	for _, o := range c.wins {
		if o.term <= a.term {
			continue
		}
		wal := o.wal
		if o.open {
			wal = o.node.disk.wal
		}
		if sumAt(wal, a.index+1) != a.sum {
			c.w.fail("no acknowledgement after a later term without its having the write",
				"%s acknowledges %d in term %d, but %s won %d without it", n.name, a.index, a.term, o.node.name, o.term)
			return
		}
	}
}

// behind checks that a voter which lacks an acknowledged write would also be
// told so by its position: else it could be elected.
func (c *checker) behind(n *node, a acknowledged) {
	at := n.disk.mem.Position(wal.LSN(a.index + 1)) //nolint:gosec // small
	for _, v := range n.disk.mem.Configuration.Voters() {
		o := c.w.nodes[indexOf(v.Instance())]
		if o.disk.mem.Voter != v || o.disk.data != ha.DataPresent || sumAt(o.disk.wal, a.index+1) == a.sum {
			continue
		}
		if p := o.disk.mem.Position(o.disk.end()); !p.Before(at) {
			c.w.fail("who lacks an acknowledged write has an earlier position",
				"%s has %v, lacks %v of %s", o.name, p, at, n.name)
		}
	}
}

// discards checks that what an instance gives up for a copy is still on as many disks as is promised. That others
// have lost theirs a moment ago, which nobody can know yet, is not held against it.
func (c *checker) discards(n *node) {
	record := c.w.newestConfiguration()
	if !record.Has(n.disk.mem.Voter) || n.disk.data != ha.DataPresent || c.w.now < c.w.excused {
		return
	}
	for _, a := range c.acks {
		if !a.kept || sumAt(n.disk.wal, a.index+1) != a.sum {
			continue
		}
		have := 0
		for _, o := range c.w.nodes {
			holds := o.disk.data == ha.DataPresent && sumAt(o.disk.wal, a.index+1) == a.sum
			lately := o.disk.lostAt > 0 && c.w.now-o.disk.lostAt < 4*time.Second
			if o != n && o.disk.exists && (holds || lately) {
				have++
			}
		}
		if have < record.Now.Acknowledgements {
			c.w.fail("data that others need is not given up",
				"%s gives up %d of term %d, which is on %d other disks, of %d that are promised",
				n.name, a.index, a.term, have, record.Now.Acknowledgements)
			return
		}
	}
}

// inForce notes that a quorum is in force, and with it what is promised of the
// writes that were acknowledged so far.
func (c *checker) inForce(n *node, r ha.Configuration) {
	for i := range c.acks {
		a := &c.acks[i]
		has := sumAt(n.disk.wal, a.index+1) == a.sum && (n.lead() == nil || a.index < n.lead().acked)
		if strong(r.Now) && !a.kept && has {
			a.since = n.disk.mem.Won
		}
		a.kept = strong(r.Now) && (a.kept || has)
	}
}

// checkTermHistory checks that an instance's term history tells who wrote the end of its WAL.
func (n *node) checkTermHistory() {
	if len(n.disk.wal) == 0 {
		return
	}
	if p := n.disk.mem.Position(n.disk.end()); p.Term != n.disk.wal[len(n.disk.wal)-1].term {
		n.w.fail("a term history tells who wrote the WAL",
			"%s takes its end %d for one of term %d, it is of term %d (%v)",
			n.name, len(n.disk.wal), p.Term, n.disk.wal[len(n.disk.wal)-1].term, n.disk.mem.TermHistory)
	}
}

// checkIsolation checks, at a tick, that no primary goes on without majority and
// API, nor comes back so. A pause is not held against it.
func (n *node) checkIsolation() {
	paused := n.w.now-n.lastTick > time.Second
	n.lastTick = n.w.now
	if paused {
		n.lastContact = max(n.lastContact, n.w.now)
		return
	}
	if l := n.machine.View().Local; l.MayServe() {
		n.lastContact = max(n.lastContact, n.w.now)
		return
	}
	const slack = time.Second
	if without := n.w.now - n.lastContact; n.role() == ha.ServerPrimary && n.server.open && without > slack {
		n.w.fail("an isolated primary stops", "%s runs, without contact for %s", n.name, without)
	}
}

// alive says whether the cluster is as it should be: one leader, all members
// stream from it, all are voters, and writes are acknowledged.
func (c *checker) alive() bool {
	n := c.last
	if n == nil || c.lastAck <= c.healed+time.Second || c.w.now-c.lastAck > time.Second || !n.up ||
		n.lead() == nil || !n.serves(n.lead().term) {
		return false
	}
	r := n.disk.mem.Configuration
	if r.Next != nil || len(r.Now.Voters) != len(c.w.op.members) ||
		strong(r.Now) == (c.w.op.async && len(c.w.op.members) > 1) {
		return false
	}
	return c.allFollow(n)
}

// allFollow says whether all members stream from a leader that is the only primary.
func (c *checker) allFollow(n *node) bool {
	r := n.disk.mem.Configuration
	for _, name := range c.w.op.members {
		m := c.w.nodes[indexOf(name)]
		if !r.Has(m.disk.mem.Voter) ||
			m != n && (!m.streaming() || m.conn().leader != n.index || m.server.following != n.lead().term) {
			return false
		}
	}
	for _, o := range c.w.nodes {
		if o != n && o.up && o.role() == ha.ServerPrimary {
			return false
		}
	}
	return true
}

// lost says that so many voters lost their hard state or data that nobody can be
// elected: for every one that may lead, a majority is missing or has more WAL.
func (c *checker) lost() bool {
	newest := c.w.newestConfiguration()
	for _, c := range c.w.nodes {
		if !c.disk.exists || c.disk.data != ha.DataPresent || !newest.Has(c.disk.mem.Voter) {
			continue
		}
		votes := map[ha.Voter]bool{}
		for _, n := range c.w.nodes {
			behind := c.disk.mem.Position(c.disk.end()).Before(n.disk.mem.Position(n.disk.end()))
			votes[n.disk.mem.Voter] = n.disk.exists && n.disk.data == ha.DataPresent && !behind
		}
		if newest.Elects(votes, true) {
			return false
		}
	}
	return true
}

// newestConfiguration is the newest that is known anywhere.
func (w *World) newestConfiguration() ha.Configuration {
	newest := w.api.memory.Configuration
	for _, n := range w.nodes {
		if n.disk.exists && n.disk.mem.Configuration.Newer(newest) {
			newest = n.disk.mem.Configuration
		}
	}
	return newest
}

// finish waits until the healed cluster is as it should be.
func (c *checker) finish() {
	healed := c.w.now
	for end := c.w.now + 120*time.Second; c.w.now < end && c.w.failure == ""; {
		c.w.runUntil(c.w.now + 500*time.Millisecond)
		if c.w.now-healed > 60*time.Second {
			c.w.enlarge()
		}
		if c.w.now-healed > 30*time.Second && c.lost() {
			c.exempt = true
			return
		}
		if c.alive() {
			c.finalCheck()
			return
		}
	}
	if c.w.failure == "" {
		if c.exempt = c.lost(); !c.exempt {
			c.w.dump()
			c.w.fail("a healed cluster works", "not within two minutes")
		}
	}
}

// enlarge does what an instance asks for that keeps its data, for want of room for a copy: its volume becomes larger.
func (w *World) enlarge() {
	for _, n := range w.nodes {
		if n.disk.cramped && n.up {
			n.log("has a larger volume")
			n.disk.cramped = false
			n.seeData()
		}
	}
}

// finalCheck checks the last leader.
func (c *checker) finalCheck() { c.complete(c.last, c.last.lead().term) }

// dump logs the state of all.
func (w *World) dump() {
	for _, n := range w.nodes {
		if n.disk.exists {
			d := ha.Decide(n.machine.View())
			n.log("is %s/%s, hard state %+v, wal %d, known %v, streaming %v: %s %s %s %s",
				n.disk.data, n.role(), n.disk.mem, len(n.disk.wal), n.known(), n.streaming(), d.Action, d.Reason,
				d.Refusal, d.Message)
			n.log("the machine: %s", n.machine)
			if l := n.lead(); l != nil {
				n.log("leads: %+v, rule %s", *l, n.server.rule)
			}
		}
	}
	w.log("API", "%+v; members %v async %v", w.api.memory, w.op.members, w.op.async)
}

// checkChange checks that a leader whose next configuration is on its disk goes on: it is not without a majority by
// that configuration. Clocks that have jumped and pauses are not held against it; and what else is broken is to be
// noticed by what it breaks.
func (n *node) checkChange() {
	if n.w.broken != Whole && !n.w.breaks(CountsUnheard) {
		return
	}
	if n.w.now > max(n.w.excused, n.excused) && n.leads() && !n.mayServe() {
		n.w.fail("no change of the quorum stops its leader", "%s has the configuration %d.%d, and hears no majority",
			n.name, n.disk.mem.Configuration.Term, n.disk.mem.Configuration.Version)
	}
}

// mayServe says whether the instance may be a primary at this moment, by what it has heard.
func (n *node) mayServe() bool {
	n.machine.Says(n.clock())
	return n.machine.View().Local.MayServe()
}
