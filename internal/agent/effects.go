package agent

import (
	"time"

	"toban.dev/internal/agent/witness"
	"toban.dev/internal/ha/machine"
	"toban.dev/internal/pause"
	"toban.dev/internal/protocol"
)

// carryOut begins what the machine wants.
func (a *Agent) carryOut(effect machine.Effect) {
	switch e := effect.(type) {
	case machine.Store:
		go a.store(e)
	case machine.Fence:
		a.demands.giveUp()
		go a.commands.fence(e)
	case machine.Command:
		a.queue.begin(e)
	case machine.Demand:
		a.demands.begin(a.life, e)
	case machine.AskVote:
		go a.ballots.ask(a.life, e)
	case machine.Propose:
		go a.ballots.propose(a.life, e)
	case machine.AskWitness:
		go func() { a.post(witness.Ask(a.life, a.options.Cluster, e, a.elections.at)) }()
	case machine.ObserveServer:
		a.observeStandby(e.Replay)
	case machine.Broadcast:
		a.peers.Broadcast(a.life, a.Status())
	case machine.Publish:
		a.publisher.Want(protocol.RolePrimary)
	}
}

// post hands an event to the machine.
func (a *Agent) post(e machine.Event) {
	if a.begun.Load() {
		a.elections.post(a.life, e)
	}
}

// storePause is how long a hard state that could not be written is not tried again: what led to it comes again at once.
const storePause = 100 * time.Millisecond

// store puts a hard state on disk.
func (a *Agent) store(e machine.Store) {
	var err error
	if e.Inherits {
		err = a.commands.inherit()
	}
	if err == nil {
		err = a.states.Put(e.HardState, e.TermHistory)
	}
	if err != nil {
		pause.For(a.life, storePause)
	}
	a.post(machine.Stored{ID: e.ID, Err: text(err)})
}

// text is the text of an error, "" for none.
func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// described puts what the machine knows into the status.
func (a *Agent) described(m *machine.Instance) { a.describer.describe(m) }
