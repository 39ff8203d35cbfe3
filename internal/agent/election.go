package agent

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"toban.dev/internal/ha"
	"toban.dev/internal/protocol"
)

// How long a vote may take, a pre-vote, which waits for no disk, and the end of the WAL to become known before a vote.
const (
	voteDeadline    = time.Second
	preVoteDeadline = 300 * time.Millisecond
	endDeadline     = 800 * time.Millisecond
)

// campaign asks for the votes of the next term, if it would get them, and, having them, leads it. A
// primary that does so, alone having a vote, goes on meanwhile.
func (a *Agent) campaign(ctx context.Context) error {
	m := a.memory.Get()
	request := ha.VoteRequest{Term: a.highestTerm() + 1, Candidate: m.Voter, Resigned: a.resignedTerm()}
	leads := a.running != nil && a.running.role == ha.ServerPrimary
	if !leads {
		// Whoever has confirmed its leader meanwhile does not stand against it.
		if would, err := a.preVote(ctx, m, request); err != nil || !would || !a.observe(ctx).LeaderLost() {
			return err
		}
	}
	ended := a.observe(ctx).LeaderEnded()
	stands := false
	m, err := a.memory.Change(func(m *ha.Memory) bool {
		if stands = m.Ballot.Term < request.Term; stands { // another may have been promised meanwhile
			m.Ballot = ha.Ballot{Term: request.Term, Leader: a.Name}
		}
		return stands
	})
	if err != nil || !stands {
		return err
	}
	end := ha.LSN(math.MaxUint64)
	if !leads {
		if end, err = a.finalEnd(ctx, request.Term); err != nil {
			a.rest()
			return err
		}
	}
	request.Position = m.Position(end)
	a.Log.Info("asking for votes", "term", request.Term, "position", request.Position.String())
	if won, err := a.poll(ctx, m, request); err != nil || !won {
		a.rest()
		return err
	}
	if leads || ended {
		a.watch.overtakes = 0
	} else {
		a.watch.overtakes = request.Term
	}
	return a.won(ctx, request.Term, end, leads)
}

// preVote asks whether a campaign would be won. One in vain would bind those that promise the term.
func (a *Agent) preVote(ctx context.Context, m ha.Memory, request ha.VoteRequest) (would bool, err error) {
	local := a.observe(ctx).Local
	request.PreVote, request.Position = true, m.Position(max(local.End, local.Received))
	ctx, cancel := context.WithTimeout(ctx, preVoteDeadline)
	defer cancel()
	would, err = a.poll(ctx, m, request)
	if !would {
		a.watch.rests = time.Now().Add(leastRest + jitter())
	}
	return would, err
}

// confirmPatience is for how long a server that has come up may wait for a majority's word.
const confirmPatience = time.Second

// confirm lets clients into the server of a leader that has come back, when a majority says that it still is one. Until then others may
// have elected another, and who reads here would read what that one has overtaken. One that gets no such word leaves the lead to others.
func (a *Agent) confirm(ctx context.Context) error {
	r := a.running
	if r.confirmed.Load() {
		return nil
	}
	if _, err := r.session(ctx); err != nil {
		return nil //nolint:nilerr // it is still recovering
	}
	if may, err := a.overtake(ctx); err != nil {
		return err
	} else if !may {
		return a.fence(ctx)
	}
	if r.up.IsZero() {
		r.up = time.Now()
	}
	backed, refusals := a.backed(ctx)
	if backed {
		r.confirmed.Store(true)
		defer r.look()
		return r.rewrite()
	}
	if time.Since(r.up) < confirmPatience {
		a.look()
		return nil
	}
	for voter, refusal := range refusals {
		a.Log.Info("does not confirm the leader", "voter", string(voter), "reason", refusal.Reason, "message", refusal.Message)
	}
	return a.fence(ctx)
}

// backed asks whether a majority says that this instance is the leader, now.
func (a *Agent) backed(ctx context.Context) (backed bool, refusals map[ha.Voter]ha.VoteReply) {
	m, asked := a.memory.Get(), time.Now()
	tally := a.collect(ctx, m, ha.VoteRequest{Term: m.Ballot.Term, Candidate: m.Voter, Confirm: true})
	backed = tally.Won && time.Since(asked) < a.limits().Fence && a.memory.Get().Ballot == m.Ballot
	if backed {
		a.Log.Info("a majority confirms the leader", "term", m.Ballot.Term)
	}
	return backed, tally.Refusals
}

// highestTerm is the highest that the instance has heard of from anybody.
func (a *Agent) highestTerm() uint64 {
	highest := max(a.memory.Get().Ballot.Term, a.witness.last().ballot.Term)
	for _, name := range a.peers.names() {
		if status, _, ok := a.peers.last(name); ok {
			highest = max(highest, status.Term)
		}
	}
	return highest
}

// resignedTerm is the term of the ballot where its leader has said that it has
// given it up, else 0.
func (a *Agent) resignedTerm() uint64 {
	ballot := a.memory.Get().Ballot
	status, _, ok := a.peers.last(ballot.Leader)
	if ok && status.Resigned && status.Term == ballot.Term {
		return ballot.Term
	}
	return 0
}

// finalEnd ends what is received in earlier terms, and waits until the end of
// the WAL is known.
func (a *Agent) finalEnd(ctx context.Context, term uint64) (ha.LSN, error) {
	if a.running == nil {
		if a.watch.known {
			return a.watch.end, nil
		}
		return 0, fmt.Errorf("no server runs here that could say how far its WAL goes")
	}
	if err := a.cut(ctx, term); err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, endDeadline)
	defer cancel()
	end, err := a.running.awaitEnd(ctx)
	if err != nil {
		return 0, err
	}
	a.running.see(func(s *seen) { s.end, s.known = end, true })
	return end, nil
}

// ballotPaper is one voter's reply.
type ballotPaper struct {
	voter ha.Voter
	reply ha.VoteReply
	err   error
}

// poll asks for votes, and takes the newest record that it hears of.
func (a *Agent) poll(ctx context.Context, m ha.Memory, request ha.VoteRequest) (won bool, err error) {
	tally := a.collect(ctx, m, request)
	if tally.Newest.Newer(m.Record) {
		_, err = a.memory.Change(func(m *ha.Memory) bool {
			newer := tally.Newest.Newer(m.Record) // another may have been accepted meanwhile
			if newer {
				m.Record = tally.Newest
			}
			return newer
		})
	}
	for voter, refusal := range tally.Refusals {
		a.Log.Info("the vote is refused", "preVote", request.PreVote, "term", request.Term, "voter", string(voter),
			"reason", refusal.Reason, "message", refusal.Message)
	}
	return tally.Won, err
}

// collect asks all voters at once, and counts as soon as the result is clear. What
// others ask meanwhile is answered meanwhile, so that two candidates do not wait for each other.
func (a *Agent) collect(ctx context.Context, m ha.Memory, request ha.VoteRequest) ha.Tally {
	ctx, cancel := context.WithTimeout(ctx, voteDeadline)
	defer cancel()
	replies := map[ha.Voter]ha.VoteReply{m.Voter: {Granted: true, Ballot: m.Ballot, Position: request.Position, Record: m.Record}}
	papers := a.askAll(ctx, m, request)
	var witness *ha.VoteReply
	for left := cap(papers); left > 0; {
		select {
		case paper := <-papers:
			left--
			switch {
			case paper.err != nil:
				a.Log.Info("no vote", "voter", string(paper.voter), "error", paper.err.Error())
			case paper.voter == "":
				witness = &paper.reply
			default:
				replies[paper.voter] = paper.reply
			}
			if tally := ha.Count(m, request.Term, replies, witness); tally.Won {
				return tally
			}
		case task := <-a.tasks:
			task(ctx)
		}
	}
	return ha.Count(m, request.Term, replies, witness)
}

// askAll sends the requests; as many replies come as the channel has room for.
func (a *Agent) askAll(ctx context.Context, m ha.Memory, request ha.VoteRequest) <-chan ballotPaper {
	members := map[string]protocol.Member{}
	for _, member := range a.constituents() {
		members[member.Name] = member
	}
	var asks []func() ballotPaper
	for _, voter := range m.Record.Voters() {
		member, ok := members[voter.Instance()]
		if voter == m.Voter || !ok {
			continue
		}
		request := request
		request.Voter = voter
		asks = append(asks, func() ballotPaper {
			reply, err := a.peers.vote(ctx, member, request)
			return ballotPaper{voter, reply, err}
		})
	}
	if uid := witnessOf(m.Record); uid != "" {
		request.Voter = ha.Voter(uid)
		asks = append(asks, func() ballotPaper {
			reply, err := a.witness.vote(ctx, request)
			return ballotPaper{"", reply, err}
		})
	}
	papers := make(chan ballotPaper, len(asks))
	for _, ask := range asks {
		go func() { papers <- ask() }()
	}
	return papers
}

// witnessOf is the witness of a record, empty where there is none.
func witnessOf(r ha.Record) string {
	for _, q := range r.Quorums() {
		if q.Witness != "" {
			return q.Witness
		}
	}
	return ""
}

// After a campaign in vain the first by ordinal tries again at once, and each of
// the others only after those before it have had the time for one.
const (
	leastRest = 50 * time.Millisecond
	restStep  = 300 * time.Millisecond
)

func (a *Agent) rest() {
	rank := slices.IndexFunc(a.currentConfig().Members, func(m protocol.Member) bool { return m.Name == a.Name })
	a.watch.rests = time.Now().Add(leastRest + time.Duration(max(0, rank))*restStep + jitter())
}

func jitter() time.Duration { return rand.N(leastRest) } //nolint:gosec // no secret

// won makes the instance the leader of a term. Its lineage and the victory are on
// disk before the server is one.
func (a *Agent) won(ctx context.Context, term uint64, end ha.LSN, leads bool) error {
	if a.memory.Get().Ballot != (ha.Ballot{Term: term, Leader: a.Name}) {
		return nil // a later one was promised meanwhile
	}
	if !leads {
		lineage := append([]ha.Start{}, a.memory.Get().Lineage...)
		if err := a.memory.SetLineage(append(lineage, ha.Start{Term: term, LSN: end})); err != nil {
			return err
		}
	}
	still := false
	m, err := a.memory.Change(func(m *ha.Memory) bool {
		if still = m.Ballot == (ha.Ballot{Term: term, Leader: a.Name}); still {
			m.Won = term
			m.Record.Term, m.Record.Version = term, m.Record.Version+1
		}
		return still
	})
	if err != nil || !still {
		return err
	}
	a.Log.Info("elected", "term", term, "quorum", m.Record.Now.String(), "end", end.String())
	a.watch.failed = ""
	a.announceVictory(m.Ballot)
	if leads {
		a.look()
		return nil
	}
	if a.running == nil {
		return a.lead(ctx)
	}
	return a.begin(ctx)
}

// announceVictory tells the others who leads before the promotion, which may take
// a second: a rival who does not know would ask for votes again, in vain, and the
// term that it promised itself would then cost the winner its lead.
func (a *Agent) announceVictory(ballot ha.Ballot) {
	a.report(func(s *protocol.Status) {
		s.Term, s.Leader = ballot.Term, ballot.Leader
		s.Election.Defeated, s.Election.LeaderLost = false, false
	})
	a.tell()
}

// vote answers a candidate. The promise is on disk before anything is cut off, and
// the vote is given after that.
func (a *Agent) vote(ctx context.Context, request ha.VoteRequest) (ha.VoteReply, error) {
	if request.Confirm {
		return a.confirms(ctx, request)
	}
	voting := a.voting(ctx)
	reply := ha.Consider(voting, request)
	if !reply.Granted || request.PreVote {
		return reply, nil
	}
	m, err := a.memory.Change(func(m *ha.Memory) bool { *m = ha.Promise(*m, request); return true })
	if err != nil {
		return ha.VoteReply{}, err
	}
	a.Log.Info("promised", "term", request.Term, "candidate", string(request.Candidate))
	end, err := a.finalEnd(ctx, request.Term)
	if err != nil {
		return ha.VoteReply{}, err
	}
	voting.Memory, voting.End, voting.Known = m, end, true
	reply = ha.Grant(voting, request)
	a.Log.Info("voted", "term", request.Term, "candidate", string(request.Candidate), "granted", reply.Granted, "message", reply.Message)
	a.look()
	return reply, nil
}

// confirms answers a leader that has come back, and measures anew whether it is lost.
func (a *Agent) confirms(ctx context.Context, request ha.VoteRequest) (ha.VoteReply, error) {
	m, reply := ha.Confirm(a.voting(ctx), request)
	if !reply.Granted {
		return reply, nil
	}
	_, err := a.memory.Change(func(now *ha.Memory) bool {
		changed := now.Ballot != m.Ballot && now.Ballot.Term <= m.Ballot.Term
		if changed {
			now.Ballot = m.Ballot
		}
		return changed
	})
	a.peers.met(m.Ballot.Leader)
	a.watch.idle = time.Time{}
	a.look()
	return reply, err
}

func (a *Agent) voting(ctx context.Context) ha.Voting {
	view := a.observe(ctx)
	return ha.Voting{
		Memory: view.Local.Memory, HasData: view.Local.Data == ha.DataPresent && (a.running != nil || view.Local.Known),
		LeaderLost: view.LeaderLost(), Primary: view.Local.Server == ha.ServerPrimary, End: view.Local.End, Known: view.Local.Known,
	}
}

// accept takes the record of the quorum from its leader.
func (a *Agent) accept(proposal protocol.Proposal) (ha.AcceptReply, error) {
	var reply ha.AcceptReply
	_, err := a.memory.Change(func(m *ha.Memory) bool {
		before := *m
		if proposal.Voter != m.Voter {
			return false
		}
		*m, reply = ha.Accept(*m, proposal.Leader, proposal.Record)
		return reply.Accepted && (m.Ballot != before.Ballot || m.Record.Newer(before.Record))
	})
	if err == nil && a.running != nil {
		a.running.look() // the rule that it would lead by may be another one
	}
	a.look()
	return reply, err
}
