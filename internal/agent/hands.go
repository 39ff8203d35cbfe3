package agent

import (
	"context"
	"errors"
	"time"

	"toban.dev/internal/ha"
	"toban.dev/internal/ha/machine"
	"toban.dev/internal/protocol"
)

// How long is waited for an answer of another instance and of the Kubernetes API.
const (
	voteDeadline      = time.Second
	witnessDeadline   = 5 * time.Second
	overtakeConflicts = 10 * time.Millisecond // until it is written again after another has
	// staleLimit is how long a standby may fail to stream from a primary before it is no place to read from.
	staleLimit = 10 * time.Second
)

// carryOut begins what the machine wants.
func (a *Agent) carryOut(effect machine.Effect) {
	switch e := effect.(type) {
	case machine.Store:
		go a.store(e)
	case machine.Fence:
		a.giveUpDemand()
		go a.fence(e)
	case machine.Command:
		a.commands.begin(e)
	case machine.Demand:
		a.demand(e)
	case machine.AskVote:
		go a.askVote(e)
	case machine.Propose:
		go a.propose(e.Proposal)
	case machine.AskWitness:
		go a.askWitness(e)
	case machine.Tell:
		a.peers.spread(a.life, a.Status())
	case machine.Publish:
		a.wantPublished(protocol.RolePrimary)
	}
}

// post hands an event to the machine.
func (a *Agent) post(e machine.Event) {
	if a.begun.Load() {
		a.elections.post(a.life, e)
	}
}

// store puts a memory on disk.
func (a *Agent) store(e machine.Store) {
	var err error
	if e.Inherits {
		err = a.inherit()
	}
	if err == nil {
		err = a.memory.put(e.Memory)
	}
	a.post(machine.Stored{ID: e.ID, Err: text(err)})
}

// inherit makes the volume ready for another lineage. What is here of a timeline that this instance has no WAL of is of one
// that was abandoned, and may bear the number of the leader's.
func (a *Agent) inherit() error {
	own := a.memory.Get().Lineage
	stale, err := a.server.HasTimelines(newest(own))
	if err != nil || !stale {
		return err
	}
	if r := a.current.Load(); r != nil {
		r.process.Stop(a.life, stopFast) // it is started again
	}
	return a.server.ForgetTimelines(newest(own))
}

// newest is the highest number of a timeline that a lineage has.
func newest(lineage []ha.Start) uint32 {
	highest := uint32(1)
	for _, s := range lineage {
		highest = max(highest, s.Timeline)
	}
	return highest
}

// text is the text of an error, "" for none.
func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// askVote asks one voter.
func (a *Agent) askVote(e machine.AskVote) {
	answer := machine.VoteAnswered{Round: e.Round, Voter: e.Request.Voter, Failed: true}
	member, err := a.member(e.Request.Voter.Instance())
	if err == nil {
		answer.Reply, err = a.peers.vote(a.life, member, e.Request)
		answer.Failed = err != nil
	}
	if err != nil {
		a.Log.Info("no vote", "voter", string(e.Request.Voter), "error", err.Error())
	}
	a.post(answer)
}

// propose offers the record of the quorum to one voter. Who does not answer is asked again.
func (a *Agent) propose(p machine.Proposal) {
	member, err := a.member(p.Voter.Instance())
	if err != nil {
		return
	}
	reply, err := a.peers.record(a.life, member, protocol.Proposal{Leader: p.Leader, Voter: p.Voter, Record: p.Record})
	if err == nil {
		a.post(machine.RecordAnswered{Voter: p.Voter, Record: p.Record, Reply: reply})
	}
}

// askWitness asks the Kubernetes API. What somebody else has changed meanwhile is changed again only by who overtakes.
func (a *Agent) askWitness(e machine.AskWitness) {
	ctx, cancel := context.WithTimeout(a.life, witnessDeadline)
	defer cancel()
	for {
		asked := time.Now()
		m, answer, err := a.Cluster.Operate(ctx, e.Operation)
		again := errors.Is(err, errOvertaken) && e.Operation.Overtake != nil
		if again && sleep(ctx, overtakeConflicts) {
			continue
		}
		a.post(machine.WitnessAnswered{ID: e.ID, Asked: a.elections.at(asked), Memory: m, Answer: answer, Failed: err != nil})
		return
	}
}

// member says how to reach an instance.
func (a *Agent) member(name string) (protocol.Member, error) {
	for _, m := range a.constituents() {
		if m.Name == name {
			return m, nil
		}
	}
	return protocol.Member{}, errors.New("the instance " + name + " is not among the members")
}

// described puts what the machine knows into the status.
func (a *Agent) described(m *machine.Instance) {
	v, d, memory, peer := m.View(), m.Decision(), m.Memory(), m.Peer()
	a.stale.Store(max(v.Local.Stalled, v.Local.Unwritten) > staleLimit)
	refused := m.WishRefused()
	a.report(func(s *protocol.Status) {
		s.Term, s.Leader, s.Data = memory.Ballot.Term, memory.Ballot.Leader, protocol.Data(v.Local.Data)
		s.Refusal, s.Resigned = d.Refusal, peer.Resigned
		s.Voters, s.Acknowledgements = nil, memory.Record.Now.Acknowledgements
		for _, v := range memory.Record.Now.Voters {
			s.Voters = append(s.Voters, v.Instance())
		}
		s.Election = protocol.Election{
			Voter: memory.Voter, Leading: peer.Leading, Defeated: peer.Defeated, Lineage: memory.Lineage, Position: peer.Position,
			Record: memory.Record, LeaderLost: peer.LeaderLost, Eligible: peer.Eligible, Rebuilding: peer.Rebuilding, Successor: peer.Successor,
			Stalls: peer.Stalls,
			Limits: ha.OwnLimits(),
		}
		if refused != a.refused {
			s.SwitchoverError, a.refused = refused, refused
		}
		describeDecision(s, d, m.Trouble())
		describeVolume(s, v.Local)
	})
}

// describeDecision says what was decided, or why that can't be done.
func describeDecision(s *protocol.Status, d ha.Decision, trouble string) {
	switch runs := d.Action == ha.Lead || d.Action == ha.Follow; {
	case trouble != "":
		s.Ready, s.Reason, s.Message = false, "Failed", trouble
	case s.Reason == reasonNotAnswering && runs:
	case s.Reason == reasonNotStreaming && d.Reason == "Follower" && !s.Streaming:
	default:
		s.Reason, s.Message = d.Reason, d.Message
	}
}
