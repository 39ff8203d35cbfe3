package agent

import (
	"context"
	"log/slog"
	"time"

	"toban.dev/internal/ha"
	"toban.dev/internal/ha/machine"
	"toban.dev/internal/protocol"
)

// ballots brings votes and configurations to the other instances, and their answers.
type ballots struct {
	find  func(name string) (protocol.Member, error)
	peers voters
	post  func(machine.Event)
	log   *slog.Logger
}

// voters are the other instances.
type voters interface {
	Vote(
		ctx context.Context, m protocol.Member, request ha.VoteRequest, patience time.Duration,
	) (ha.VoteReply, error)
	ProposeConfiguration(
		ctx context.Context, m protocol.Member, proposal protocol.Proposal, patience time.Duration,
	) (ha.AcceptReply, error)
}

// ask asks one voter.
func (b *ballots) ask(ctx context.Context, e machine.AskVote) {
	answer := machine.VoteAnswered{Round: e.Round, Voter: e.Request.Voter, Failed: true}
	member, err := b.find(e.Request.Voter.Instance())
	if err == nil {
		answer.Reply, err = b.peers.Vote(ctx, member, e.Request, e.Patience)
		answer.Failed = err != nil
	}
	if err != nil {
		b.log.Info("no vote", "voter", string(e.Request.Voter), "error", err.Error())
	}
	b.post(answer)
}

// propose offers the configuration of the quorum to one voter. Who does not answer is asked again.
func (b *ballots) propose(ctx context.Context, e machine.Propose) {
	p := e.Proposal
	member, err := b.find(p.Voter.Instance())
	if err != nil {
		return
	}
	reply, err := b.peers.ProposeConfiguration(ctx, member,
		protocol.Proposal{Leader: p.Leader, Voter: p.Voter, Configuration: p.Configuration}, e.Patience)
	if err == nil {
		b.post(machine.ConfigurationAnswered{Voter: p.Voter, Configuration: p.Configuration, Reply: reply})
	}
}
