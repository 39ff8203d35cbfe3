package simulation

import (
	"time"

	"toban.dev/internal/ha"
	"toban.dev/internal/ha/machine"
)

// pollInterval is how often the others are asked how they are.
const pollInterval = 250 * ms

// carryOut begins what the machine wants.
func (n *node) carryOut(effect machine.Effect) {
	switch e := effect.(type) {
	case machine.Store:
		n.storeLater(e)
	case machine.Fence:
		n.fence(e.ID)
	case machine.Command:
		n.begin(e)
	case machine.Demand:
		n.demand(e)
	case machine.AskVote:
		n.askVote(e)
	case machine.Propose:
		n.propose(e.Proposal)
	case machine.AskWitness:
		n.askWitness(e)
	case machine.ObserveServer:
		n.later(n.w.between(1*ms, 50*ms), n.seeServer)
	case machine.Broadcast:
		n.broadcast()
	case machine.ReplyVote:
		n.reply(e.ID, e)
	case machine.ReplyConfiguration:
		n.reply(e.ID, e)
	case machine.ReplyDiscard:
		n.reply(e.ID, e)
	case machine.Log:
		if n.w.tracing {
			n.log("%s %v", e.Message, e.Values)
		}
	case machine.Publish:
	}
}

// storeLater puts a hard state on disk, which takes a while, and on a volume that stalls until that goes on.
func (n *node) storeLater(e machine.Store) {
	begun := n.w.now
	takes := max(n.w.between(1*ms, 20*ms), n.disk.stalledUntil-n.w.now)
	n.later(takes, func() {
		if n.disk.stalledUntil > n.w.now {
			n.storeLater(e)
			return
		}
		if n.w.failsToStore() {
			n.log("can't store the ballot %v", e.HardState.Ballot)
			n.step(machine.Stored{ID: e.ID, Err: "the disk does not take it"})
			return
		}
		m := e.HardState
		if !e.TermHistory {
			m.TermHistory = n.disk.mem.TermHistory // it lies with the data, which a copy may have replaced meanwhile
		}
		changes := m.Configuration.Newer(n.disk.mem.Configuration) && n.w.now-begun < storesWithin && n.mayServe()
		n.store(n.breakStore(m))
		n.step(machine.Stored{ID: e.ID})
		if changes {
			n.checkChange()
		}
	})
}

// storesWithin is how long a hard state usually takes at most: what was heard when it was begun is still new then.
const storesWithin = 100 * ms

// failsToStore says that a disk does not take a hard state. In most schedules all do.
func (w *World) failsToStore() bool { return w.scarce && !w.op.healing && w.volumes.Float64() < 0.05 }

// reply gives an answer to who has asked for it.
func (n *node) reply(id uint64, e machine.Effect) {
	if answer := n.replies[id]; answer != nil {
		delete(n.replies, id)
		answer(e)
	}
}

// asks has the machine answer an event, by its number.
func (n *node) asks(event func(id uint64) machine.Event, answer func(machine.Effect)) {
	n.w.ids++
	id := n.w.ids << 20 // no number of the machine's own
	n.replies[id] = answer
	n.step(event(id))
}

func (n *node) askVote(e machine.AskVote) {
	r := e.Request
	if !r.PreVote && !r.Confirm {
		n.election.onWord = r.Resigned > 0
	}
	if r.Confirm && n.w.breaks(OpensUnasked) {
		n.later(ms, func() {
			n.step(machine.VoteAnswered{
				Round: e.Round, Voter: r.Voter, Reply: ha.VoteReply{Granted: true, Ballot: n.disk.mem.Ballot},
			})
		})
		return
	}
	n.ask(indexOf(r.Voter.Instance()), func(p *node, reply func(func())) {
		if p.busy() {
			return
		}
		p.asks(func(id uint64) machine.Event { return machine.VoteAsked{ID: id, Request: r} },
			func(answer machine.Effect) {
				said := answer.(machine.ReplyVote) //nolint:errcheck,forcetypeassert // it answers nothing else
				reply(func() {
					n.step(machine.VoteAnswered{Round: e.Round, Voter: r.Voter, Reply: said.Reply, Failed: said.Failed})
				})
			})
	}, nil)
}

// propose offers a configuration to a voter.
func (n *node) propose(proposal machine.Proposal) {
	to := indexOf(proposal.Voter.Instance())
	if to < 0 {
		return
	}
	answered := func(r ha.AcceptReply) {
		n.step(machine.ConfigurationAnswered{Voter: proposal.Voter, Configuration: proposal.Configuration, Reply: r})
	}
	if n.w.breaks(ShrinkUnrecorded) {
		n.later(ms, func() { answered(ha.AcceptReply{Accepted: true}) })
		return
	}
	n.ask(to, func(p *node, reply func(func())) {
		if p.busy() {
			return
		}
		p.asks(func(id uint64) machine.Event { return machine.ConfigurationProposed{ID: id, Proposal: proposal} },
			func(answer machine.Effect) {
				said := answer.(machine.ReplyConfiguration) //nolint:errcheck,forcetypeassert // it answers nothing else
				reply(func() { answered(said.Reply) })
			})
	}, nil)
}

// broadcast tells all others how this instance is.
func (n *node) broadcast() {
	said := n.machine.Says(n.clock())
	for _, name := range n.machine.Peers() {
		p := n.w.nodes[indexOf(name)]
		n.w.send(n.index, p.index, func() {
			if !p.busy() {
				p.step(machine.PeerAnnounced{Status: said})
			}
		}, nil)
	}
}

// poll asks everybody how they are.
func (n *node) poll() {
	if !n.busy() {
		for _, name := range n.machine.Peers() {
			n.pollOne(name)
		}
	}
	n.later(n.w.between(pollInterval*4/5, pollInterval*6/5), n.poll)
}

func (n *node) pollOne(name string) {
	asked := n.clock()
	n.ask(indexOf(name), func(p *node, reply func(func())) {
		if p.busy() {
			return
		}
		said := p.machine.Says(p.clock())
		reply(func() { n.step(machine.PeerAnswered{Status: said, Asked: asked}) })
	}, func() { n.step(machine.PeerRefused{Name: name, Asked: asked}) })
}

// seeData says what lies in the data directory.
func (n *node) seeData() {
	if n.up && n.busy() { // what lies there then is told, after all that was told before
		n.later(n.pause.busy-n.w.now, n.seeData)
		return
	}
	n.step(machine.DataSeen{Data: n.disk.data, SystemIdentifier: n.disk.system, Room: !n.disk.cramped})
}

// api is the Kubernetes API with its one object.
type api struct {
	memory  ha.HardState
	version int
	away    [maxNodes]bool
}

// witnessID is the identity of the object that can be the witness.
const witnessID = "uid-1"

// apiDeadline is how long an answer of the API is waited for.
const apiDeadline = time.Second

// askWitness reads or changes the object.
func (n *node) askWitness(e machine.AskWitness) {
	asked, over := n.clock(), false
	answer := func(m ha.HardState, a ha.WitnessAnswer, failed bool) {
		if !over {
			over = true
			n.election.asked = n.election.asked || e.Operation.Preempt != nil && !failed
			n.step(machine.WitnessAnswered{ID: e.ID, Asked: asked, HardState: m, Answer: a, Failed: failed})
		}
	}
	if e.Operation.Preempt != nil {
		n.election.asked = false
		if n.w.breaks(PreemptsUnasked) {
			n.later(ms, func() { answer(ha.HardState{}, ha.WitnessAnswer{Granted: true}, false) })
			return
		}
	}
	n.later(apiDeadline, func() { answer(ha.HardState{}, ha.WitnessAnswer{}, true) })
	n.operate(e.Operation, answer)
}

// operate changes the object by what it is, unless somebody else was faster: then only who preempts tries again.
func (n *node) operate(o ha.WitnessOperation, answer func(ha.HardState, ha.WitnessAnswer, bool)) {
	var m ha.HardState
	var version int
	n.call(func() { m, version = n.w.api.memory, n.w.api.version }, func() {
		next, a := o.Apply(m)
		if next.Ballot == m.Ballot &&
			next.ReadLease == m.ReadLease && !next.Configuration.Newer(m.Configuration) || !a.Granted {
			answer(m, a, false)
			return
		}
		swapped := false
		n.call(func() {
			if swapped = n.w.api.version == version || n.w.breaks(NoCompare); swapped {
				n.w.api.memory = next
				n.w.api.version++
			}
		}, func() {
			switch {
			case swapped:
				answer(next, a, false)
			case o.Preempt != nil:
				n.operate(o, answer)
			default:
				answer(ha.HardState{}, a, true)
			}
		})
	})
}

// call runs f at the API, and done on the instance after it.
func (n *node) call(f, done func()) {
	w, epoch := n.w, n.epoch
	if w.api.away[n.index] {
		return
	}
	w.after(w.between(1*ms, 30*ms), func() {
		f()
		w.after(w.between(1*ms, 30*ms), func() {
			if !w.api.away[n.index] {
				n.resume(epoch, done)
			}
		})
	})
}
