package agent

import (
	"context"
	"errors"
	"slices"
	"sync"
	"syscall"
	"time"

	"toban.dev/internal/ha"
	"toban.dev/internal/ha/machine"
	"toban.dev/internal/protocol"
)

// How often peers are asked, how long an answer may take, and how long it
// counts. Questions overlap: one that is lost on the way delays no other. The
// deadlines are long, because a question given up takes its connection with it:
// on a network that loses packets, making new ones would be all that is done.
const (
	heartbeat      = 250 * time.Millisecond
	answerDeadline = 5 * time.Second
	nextWay        = 1500 * time.Millisecond
)

// peers asks the other instances how they are, each in its own time, so that a
// slow one delays nobody.
type peers struct {
	self   string
	client *protocol.Client
	// post takes what they say, began is since when time is counted for that.
	post  func(machine.Event)
	began time.Time

	// members are those to ask.
	members func() []protocol.Member

	mutex sync.Mutex
	heard map[string]answer
}

type answer struct {
	status  protocol.Status
	address string // by which it was reached: an address or the host name
	asked   time.Time
	at      time.Time
}

func newPeers(self string, client *protocol.Client, post func(machine.Event)) *peers {
	return &peers{self: self, client: client, post: post, heard: map[string]answer{}}
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
	if refused(err) {
		p.post(machine.PeerRefused{Name: m.Name, Asked: asked.Sub(p.began)})
	}
}

// refused says that nobody listens there.
func refused(err error) bool {
	return errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.EHOSTUNREACH) || errors.Is(err, syscall.ENETUNREACH)
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

// hear takes what a peer has answered.
func (p *peers) hear(a answer) {
	p.mutex.Lock()
	before, known := p.heard[a.status.Name]
	if known && before.status.Boot == a.status.Boot && before.status.Number > a.status.Number {
		a.status = before.status // it was overtaken on the way; that it came still counts
	}
	p.heard[a.status.Name] = a
	p.mutex.Unlock()
	p.post(machine.PeerAnswered{Said: said(a.status), Asked: a.asked.Sub(p.began)})
}

// told takes what a peer says of itself without having been asked.
func (p *peers) told(status protocol.Status) {
	p.mutex.Lock()
	before, known := p.heard[status.Name]
	if known && (before.status.Boot != status.Boot || before.status.Number <= status.Number) {
		before.status = status
		p.heard[status.Name] = before
	}
	p.mutex.Unlock()
	p.post(machine.PeerTold{Said: said(status)})
}

// said is what the machine hears of a status.
func said(s protocol.Status) machine.Said {
	return machine.Said{Name: s.Name, Boot: s.Boot, Number: s.Number, Peer: asPeer(s), Record: s.Election.Record, Limits: s.Election.Limits}
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

// last is what a peer has said last, if it has said anything.
func (p *peers) last(name string) (protocol.Status, bool) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	a, ok := p.heard[name]
	return a.status, ok
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
		Stalls:           e.Stalls,
	}
	if lsn, err := ha.ParseLSN(s.Oldest); err == nil {
		peer.Oldest = lsn
	}
	if lsn, err := ha.ParseLSN(s.LSN); err == nil && e.Leading {
		peer.Written = lsn
	}
	return peer
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
