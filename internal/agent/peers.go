package agent

import (
	"context"
	"errors"
	"slices"
	"sync"
	"syscall"
	"time"

	"toban.dev/internal/ha"
	"toban.dev/internal/protocol"
)

// How often peers are asked, how long an answer may take, and how long it
// counts. Questions overlap: one that is lost on the way delays no other. The
// deadlines are long, because a question given up takes its connection with it:
// on a network that loses packets, making new ones would be all that is done.
const (
	heartbeat      = 250 * time.Millisecond
	answerDeadline = 5 * time.Second
	answerCounts   = 3 * time.Second
	recently       = 1500 * time.Millisecond
	nextWay        = 1500 * time.Millisecond
)

// peers asks the other instances how they are, each in its own time, so that a
// slow one delays nobody.
type peers struct {
	self   string
	client *protocol.Client
	// changed is called when an answer differs from the last in what decides.
	changed func()

	// members are those to ask.
	members func() []protocol.Member

	mutex   sync.Mutex
	heard   map[string]answer
	refused map[string]time.Time // since when nobody listens there
}

type answer struct {
	status  protocol.Status
	address string // by which it was reached: an address or the host name
	asked   time.Time
	at      time.Time
}

func newPeers(self string, client *protocol.Client, changed func()) *peers {
	return &peers{self: self, client: client, changed: changed, heard: map[string]answer{}, refused: map[string]time.Time{}}
}

// others are the members without this instance.
func (p *peers) others() []protocol.Member {
	var others []protocol.Member
	for _, m := range p.members() {
		if m.Name != p.self {
			others = append(others, m)
		}
	}
	return others
}

// names are the others' names.
func (p *peers) names() []string {
	var names []string
	for _, m := range p.others() {
		names = append(names, m.Name)
	}
	return names
}

// run asks until ctx ends.
func (p *peers) run(ctx context.Context) error {
	defer p.client.Close()
	for {
		for _, m := range p.others() {
			go p.ask(ctx, m)
		}
		if !sleep(ctx, heartbeat) {
			return nil
		}
	}
}

// ask asks one peer by the address that is known, else by name. An answer under
// another's name is nobody's: addresses are given to new Pods.
func (p *peers) ask(ctx context.Context, m protocol.Member) {
	asked := time.Now()
	_, err := reach(ctx, m, answerDeadline, func(ctx context.Context, host string) (protocol.Status, error) {
		status, err := p.client.Status(ctx, host)
		if err == nil && status.Name != m.Name {
			return status, syscall.ECONNREFUSED
		}
		if err == nil {
			p.hear(answer{status: status, address: host, asked: asked, at: time.Now()})
		}
		return status, err
	})
	p.note(m.Name, asked, err)
}

// reach tries the ways to an instance, the next when one has failed or has not
// answered for a while, and returns the first answer, or the last error.
func reach[Answer any](ctx context.Context, m protocol.Member, deadline time.Duration,
	try func(ctx context.Context, host string) (Answer, error),
) (Answer, error) {
	type result struct {
		answer Answer
		err    error
	}
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	ways := slices.DeleteFunc([]string{m.Address, m.Host}, func(host string) bool { return host == "" })
	last, results := result{err: syscall.EHOSTUNREACH}, make(chan result, len(ways))
	for running := 0; running > 0 || len(ways) > 0; {
		if len(ways) > 0 {
			host := ways[0]
			ways = ways[1:]
			running++
			go func() {
				answer, err := try(ctx, host)
				results <- result{answer, err}
			}()
		}
		var next <-chan time.Time
		if len(ways) > 0 {
			next = time.After(nextWay)
		}
		select {
		case last = <-results:
			running--
			if last.err == nil {
				return last.answer, nil
			}
		case <-next:
		}
	}
	return last.answer, last.err
}

// note remembers since when nobody has listened at a peer's address.
func (p *peers) note(name string, asked time.Time, err error) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	gone := errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.EHOSTUNREACH) || errors.Is(err, syscall.ENETUNREACH)
	switch since, ok := p.refused[name]; {
	case err == nil:
		delete(p.refused, name)
	case gone && !ok && p.heard[name].at.Before(asked):
		p.refused[name] = asked
	case gone && ok && p.heard[name].at.After(since):
		p.refused[name] = asked
	}
}

// hear takes a peer's status, unless a later one is known.
func (p *peers) hear(a answer) {
	p.mutex.Lock()
	before, known := p.heard[a.status.Name]
	if known && before.status.Boot == a.status.Boot && before.status.Number > a.status.Number {
		a.status = before.status // it was overtaken on the way; that it came still counts
	}
	if before.asked.After(a.asked) {
		a.asked = before.asked
	}
	p.heard[a.status.Name] = a
	p.mutex.Unlock()
	if !known || decisive(before.status) != decisive(a.status) {
		p.changed()
	}
}

// told takes what a peer says of itself without having been asked. It is no
// answer to a question: it may have been on its way for long, so it does not count where
// it matters when something was so.
func (p *peers) told(status protocol.Status) {
	if !slices.Contains(p.names(), status.Name) {
		return
	}
	p.mutex.Lock()
	before := p.heard[status.Name]
	p.mutex.Unlock()
	p.hear(answer{status: status, address: before.address, asked: before.asked, at: time.Now()})
}

// met notes that the leader has asked something itself, as one: it is not silent, nor does it refuse, nor has it resigned.
func (p *peers) met(name string) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if a, ok := p.heard[name]; ok {
		a.asked, a.status.Resigned = time.Now(), false
		p.heard[name] = a
	}
	delete(p.refused, name)
}

// spread tells all others how this instance is.
func (p *peers) spread(ctx context.Context, status protocol.Status) {
	for _, m := range p.others() {
		go func() {
			asked := time.Now()
			_, _ = reach(ctx, m, answerDeadline, func(ctx context.Context, host string) (protocol.Status, error) { // who does not hear it asks
				answered, err := p.client.News(ctx, host, status)
				if err == nil && answered.Name == m.Name {
					p.hear(answer{status: answered, address: host, asked: asked, at: time.Now()})
				}
				return answered, err
			})
		}()
	}
}

// vote asks one peer for its vote.
func (p *peers) vote(ctx context.Context, m protocol.Member, request ha.VoteRequest) (ha.VoteReply, error) {
	return reach(ctx, m, voteDeadline, func(ctx context.Context, host string) (ha.VoteReply, error) {
		return p.client.Vote(ctx, host, request)
	})
}

// record gives one peer the record of the quorum.
func (p *peers) record(ctx context.Context, m protocol.Member, proposal protocol.Proposal) (ha.AcceptReply, error) {
	return reach(ctx, m, voteDeadline, func(ctx context.Context, host string) (ha.AcceptReply, error) {
		return p.client.Record(ctx, host, proposal)
	})
}

// answers are the peers that have answered lately.
func (p *peers) answers() map[string]ha.Peer {
	others := p.others()
	p.mutex.Lock()
	defer p.mutex.Unlock()
	found := map[string]ha.Peer{}
	for _, m := range others {
		if a, ok := p.heard[m.Name]; ok && time.Since(a.at) < answerCounts {
			found[m.Name] = asPeer(a.status)
		}
	}
	return found
}

// asked is when the question was asked that a peer answered last.
func (p *peers) asked(name string) time.Time {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.heard[name].asked
}

// last is what a peer has said last, and when that was asked for.
func (p *peers) last(name string) (protocol.Status, time.Time, bool) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	a, ok := p.heard[name]
	return a.status, a.asked, ok
}

// anyEligible says whether some peer has said a moment ago that it could lead.
func (p *peers) anyEligible() bool {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	for _, a := range p.heard {
		if a.status.Election.Eligible && time.Since(a.at) < recently {
			return true
		}
	}
	return false
}

// refusing is how long nobody has listened at a peer's address.
func (p *peers) refusing(name string) time.Duration {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if since, ok := p.refused[name]; ok {
		return time.Since(since)
	}
	return 0
}

// address is how a peer was last reached, if by an address.
func (p *peers) address(m protocol.Member) string {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if a, ok := p.heard[m.Name]; ok && a.address != m.Host {
		return a.address
	}
	return ""
}

// lastAddress is by which address or name a peer was reached last, if it was.
func (p *peers) lastAddress(name string) string {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.heard[name].address
}

func asPeer(s protocol.Status) ha.Peer {
	e := s.Election
	peer := ha.Peer{
		Voter:            e.Voter,
		Data:             ha.Data(s.Data),
		SystemIdentifier: s.SystemIdentifier,
		Ballot:           ha.Ballot{Term: s.Term, Leader: s.Leader},
		Leading:          e.Leading,
		Resigned:         s.Resigned,
		Defeated:         e.Defeated,
		Successor:        e.Successor,
		Lineage:          e.Lineage,
		Position:         e.Position,
		Streaming:        s.Streaming,
		LeaderLost:       e.LeaderLost,
		Eligible:         e.Eligible,
		Rebuilding:       e.Rebuilding,
	}
	if lsn, err := ha.ParseLSN(s.Oldest); err == nil {
		peer.Oldest = lsn
	}
	if lsn, err := ha.ParseLSN(s.LSN); err == nil && e.Leading {
		peer.Written = lsn
	}
	return peer
}

// decisives are what of a status makes others decide anew.
type decisives struct {
	data, identifier, leader, oldest string
	term                             uint64
	starts                           int
	flags                            [8]bool
}

func decisive(s protocol.Status) decisives {
	e := s.Election
	return decisives{
		string(s.Data), s.SystemIdentifier, s.Leader, s.Oldest, s.Term, len(e.Lineage),
		[8]bool{s.Ready, e.Leading, s.Resigned, e.Defeated, e.LeaderLost, e.Eligible, e.Rebuilding, s.Streaming},
	}
}

// sleep waits; it is false when ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
