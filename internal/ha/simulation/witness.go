package simulation

import (
	"time"

	"toban.dev/internal/ha"
)

// witnessID is the identity of the object that can be the witness.
const witnessID = "uid-1"

// api is the Kubernetes API with its one object.
type api struct {
	memory  ha.Memory
	version int
	away    [maxNodes]bool
}

// witnessView is what an instance last read there.
type witnessView struct {
	ok      bool
	at      time.Duration
	ballot  ha.Ballot
	holding uint64
}

// call runs f at the API, and what f returns on the instance.
func (n *node) call(f func() func()) {
	w, epoch := n.w, n.epoch
	if w.api.away[n.index] {
		return
	}
	w.after(w.between(1*ms, 30*ms), func() {
		done := f()
		w.after(w.between(1*ms, 30*ms), func() {
			if !w.api.away[n.index] {
				n.resume(epoch, done)
			}
		})
	})
}

func (n *node) pollWitness() {
	sent := n.clock()
	n.call(func() func() {
		m := n.w.api.memory
		return func() {
			n.seeWitness(sent, m)
			n.learn(m.Ballot, m.Record)
		}
	})
}

// seeWitness takes in what was on record when it was asked for.
func (n *node) seeWitness(sent time.Duration, m ha.Memory) {
	if !n.witness.ok || n.witness.at < sent {
		n.witness = witnessView{true, sent, m.Ballot, m.Holding}
	}
}

// swap writes the object unless it was changed since it was read.
func (n *node) swap(version int, m ha.Memory, done func(ok bool)) {
	n.call(func() func() {
		a := &n.w.api
		ok := a.version == version || n.w.breaks(NoCompare)
		if ok {
			a.memory = m
			a.version++
		}
		return func() { done(ok) }
	})
}

// read reads the object.
func (n *node) read(done func(m ha.Memory, version int)) {
	n.call(func() func() {
		m, version := n.w.api.memory, n.w.api.version
		return func() { done(m, version) }
	})
}

// askWitness asks the witness for its vote.
func (n *node) askWitness(c *campaign) {
	r := c.request
	r.Voter = witnessID
	answer := func(reply ha.VoteReply) {
		c.witness = &reply
		c.waiting--
		n.count(c, false)
	}
	n.read(func(m ha.Memory, version int) {
		voting := ha.Voting{Memory: m, Witness: true}
		reply := ha.Consider(voting, r)
		if !reply.Granted {
			answer(reply)
			return
		}
		voting.Memory = ha.Promise(m, r)
		n.swap(version, voting.Memory, func(ok bool) {
			reply := ha.Grant(voting, r)
			reply.Granted = reply.Granted && ok
			answer(reply)
		})
	})
}

// offerWitness has the witness accept a record.
func (n *node) offerWitness(l *leadership, r ha.Record) {
	n.read(func(m ha.Memory, version int) {
		next, answer := ha.Accept(m, n.name, r)
		n.highest = max(n.highest, answer.Ballot.Term)
		if !answer.Accepted {
			return
		}
		n.swap(version, next, func(ok bool) {
			l.witness = l.witness || ok && same(r, n.mem.Record)
			n.proceed(l, r)
		})
	})
}
