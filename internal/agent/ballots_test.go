package agent

import (
	"context"
	"errors"
	"log/slog"
	"reflect"
	"testing"
	"time"

	"toban.dev/internal/ha"
	"toban.dev/internal/ha/machine"
	"toban.dev/internal/protocol"
)

// asked is another instance that answers, or does not.
type asked struct{ err error }

func (a asked) Vote(
	_ context.Context, m protocol.Member, request ha.VoteRequest, _ time.Duration,
) (ha.VoteReply, error) {
	return ha.VoteReply{Granted: a.err == nil && m.Name == request.Voter.Instance()}, a.err
}

func (a asked) ProposeConfiguration(
	_ context.Context, m protocol.Member, proposal protocol.Proposal, _ time.Duration,
) (ha.AcceptReply, error) {
	return ha.AcceptReply{Accepted: a.err == nil && m.Name == proposal.Voter.Instance() &&
		proposal.Leader == "db-0"}, a.err
}

func TestVotesAndConfigurationsGoToTheirVoter(t *testing.T) {
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
			var heard []machine.Event
			b := &ballots{
				find: three(nil).find, peers: asked{c.err}, log: slog.New(slog.DiscardHandler),
				post: func(e machine.Event) { heard = append(heard, e) },
			}
			b.ask(t.Context(), machine.AskVote{Round: 3, Request: ha.VoteRequest{Voter: c.voter}})
			b.propose(t.Context(), machine.Propose{Proposal: machine.Proposal{
				Leader: "db-0", Voter: c.voter, Configuration: ha.Configuration{Version: 2},
			}})
			want := []machine.Event{machine.VoteAnswered{Round: 3, Voter: c.voter, Failed: true}}
			if c.answered {
				want = []machine.Event{
					machine.VoteAnswered{Round: 3, Voter: c.voter, Reply: ha.VoteReply{Granted: true}},
					machine.ConfigurationAnswered{
						Voter: c.voter, Configuration: ha.Configuration{Version: 2},
						Reply: ha.AcceptReply{Accepted: true},
					},
				}
			}
			if !reflect.DeepEqual(heard, want) {
				t.Errorf("the machine hears %+v, want %+v", heard, want)
			}
		})
	}
}
