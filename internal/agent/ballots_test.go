package agent

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"toban.dev/internal/ha"
	"toban.dev/internal/ha/machine"
	"toban.dev/internal/protocol"
)

// asked is another instance that answers, or does not.
type asked struct{ err error }

func (a asked) Vote(_ context.Context, m protocol.Member, request ha.VoteRequest) (ha.VoteReply, error) {
	return ha.VoteReply{Granted: a.err == nil && m.Name == request.Voter.Instance()}, a.err
}

func (a asked) Record(_ context.Context, m protocol.Member, proposal protocol.Proposal) (ha.AcceptReply, error) {
	return ha.AcceptReply{Accepted: a.err == nil && m.Name == proposal.Voter.Instance() && proposal.Leader == "db-0"}, a.err
}

func TestVotesAndRecordsGoToTheirVoter(t *testing.T) {
	for name, c := range map[string]struct {
		voter    ha.Voter
		err      error
		answered bool
	}{
		"it answers":               {"db-1.b", nil, true},
		"it does not":              {"db-1.b", errors.New("connection refused"), false},
		"nobody knows where it is": {"db-9.x", nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			b := &ballots{find: three(nil).find, peers: asked{c.err}, log: slog.New(slog.DiscardHandler)}
			vote := b.ask(t.Context(), machine.AskVote{Round: 3, Request: ha.VoteRequest{Voter: c.voter}})
			if vote.Round != 3 || vote.Voter != c.voter || vote.Failed == c.answered || vote.Reply.Granted != c.answered {
				t.Errorf("the vote is %+v", vote)
			}
			record, answered := b.propose(t.Context(), machine.Proposal{Leader: "db-0", Voter: c.voter, Record: ha.Record{Version: 2}})
			if answered != c.answered || answered && (record.Voter != c.voter || record.Record.Version != 2 || !record.Reply.Accepted) {
				t.Errorf("the record is %+v, %t", record, answered)
			}
		})
	}
}
