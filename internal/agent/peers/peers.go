// Package peers is what an instance hears of the others, and says to them: it asks each how it is, all the time, tells
// all what makes them decide anew, and asks for votes.
package peers

import (
	"context"
	"sync"
	"syscall"
	"time"

	"toban.dev/internal/ha"
	"toban.dev/internal/ha/machine"
	"toban.dev/internal/pause"
	"toban.dev/internal/protocol"
)

// How often peers are asked, how long an answer may take, and how long it
// counts. Questions overlap: one that is lost on the way delays no other. The
// deadlines are long, because a question given up takes its connection with it:
// on a network that loses packets, making new ones would be all that is done.
const (
	heartbeat      = ha.HeartbeatInterval
	answerDeadline = 5 * time.Second
	voteDeadline   = time.Second
	nextWay        = 1500 * time.Millisecond
	// Where openQuestions are not answered yet, one is asked anew only every seldom: the deadline of an answer bounds
	// how many there are.
	openQuestions = 8
	seldom        = time.Second
	openTells     = 8
	// restBeats is how seldom one is asked of which nothing depends at the moment: each so many heartbeats.
	restBeats = 4
)

// Client is by what other instances are asked: a protocol.Client.
type Client interface {
	Status(ctx context.Context, host string) (protocol.Status, error)
	News(ctx context.Context, host string, status protocol.Status) (protocol.Status, error)
	Vote(ctx context.Context, host string, request ha.VoteRequest) (ha.VoteReply, error)
	ProposeConfiguration(ctx context.Context, host string, proposal protocol.Proposal) (ha.AcceptReply, error)
	Close()
}

// Peers asks the other instances how they are, each in its own time, so that a
// slow one delays nobody.
type Peers struct {
	// Rests says of an instance that nothing depends at the moment on when it is heard of; nil for of none.
	Rests func(name string) bool
	// Slack is how much longer than usual an answer may take because this machine is busy; nil for no longer.
	Slack func() time.Duration

	self   string
	client Client
	// post takes what they say, began is since when time is counted for that.
	post  func(machine.Event)
	began time.Time

	// members are those to ask.
	members func() []protocol.Member

	mutex sync.Mutex
	heard map[string]answer
	// asks are the questions to each peer.
	asks map[string]asks
	// silent is, of a peer that was last reached by its name, the address that had not answered.
	silent map[string]string
}

type answer struct {
	status  protocol.Status
	address string // by which it was reached: an address or the host name
	direct  string // the address by which this process was reached, "" where it was reached by name only
	asked   time.Time
	at      time.Time
}

// New makes one that asks members, and posts what they say to the machine.
func New(self string, client Client, members func() []protocol.Member, post func(machine.Event)) *Peers {
	return &Peers{
		self: self, client: client, members: members, post: post,
		heard: map[string]answer{}, asks: map[string]asks{}, silent: map[string]string{},
	}
}

// CountFrom says since when the machine counts the time. It is called before anybody is asked.
func (p *Peers) CountFrom(began time.Time) { p.began = began }

// others are the members without this instance.
func (p *Peers) others() []protocol.Member {
	var others []protocol.Member
	for _, m := range p.members() {
		if m.Name != p.self {
			others = append(others, m)
		}
	}
	return others
}

// Names are the others' names.
func (p *Peers) Names() []string {
	var names []string
	for _, m := range p.others() {
		names = append(names, m.Name)
	}
	return names
}

// Run asks until ctx ends.
func (p *Peers) Run(ctx context.Context) error {
	defer p.client.Close()
	for beats := 0; ; beats++ {
		for _, m := range p.others() {
			if p.mayAsk(m.Name, beats) {
				go p.ask(ctx, m)
			}
		}
		if !pause.Every(ctx, heartbeat) {
			return nil
		}
	}
}

// asks are the questions to a peer: how many are open, and when one was asked last; and how often it is being told how
// this instance is.
type asks struct {
	open, tells int
	last        time.Time
}

// mayTell says whether a peer is to be told something now, and notes that it is. One that does not take what it has
// been told hears the latest when it asks, or is asked.
func (p *Peers) mayTell(name string) bool {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	a := p.asks[name]
	if a.tells >= openTells {
		return false
	}
	a.tells++
	p.asks[name] = a
	return true
}

// told notes that a peer has been told something, or that this was given up.
func (p *Peers) told(name string) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	a := p.asks[name]
	a.tells--
	p.asks[name] = a
}

// mayAsk says whether a peer is to be asked at a beat, and notes that it is. Of one of which nothing depends at the
// moment it is enough to hear sometimes: what is new it says itself.
func (p *Peers) mayAsk(name string, beat int) bool {
	if beat%restBeats != 0 && p.Rests != nil && p.Rests(name) {
		return false
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	a, now := p.asks[name], time.Now()
	if a.open >= openQuestions && now.Sub(a.last) < seldom {
		return false
	}
	a.open, a.last = a.open+1, now
	p.asks[name] = a
	return true
}

// asked notes that a question has been answered or given up.
func (p *Peers) asked(name string) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	a := p.asks[name]
	a.open--
	p.asks[name] = a
}

// ask asks one peer by the address that is known, else by name. An answer under
// another's name is nobody's: addresses are given to new Pods.
func (p *Peers) ask(ctx context.Context, m protocol.Member) {
	defer p.asked(m.Name)
	begun := time.Now()
	_, err := reach(ctx, p.ways(m), p.deadline(m), func(ctx context.Context, host string) (protocol.Status, error) {
		asked := time.Now() // by this way: the other may have been waited for
		status, err := p.client.Status(ctx, host)
		if err == nil && status.Name != m.Name {
			return status, syscall.ECONNREFUSED
		}
		if err == nil {
			p.reached(m, host)
			p.handleAnswer(answer{
				status: status, address: host, direct: direct(m, host), asked: asked, at: time.Now(),
			})
		}
		return status, err
	})
	if refused(err) {
		p.post(machine.PeerRefused{Name: m.Name, Asked: begun.Sub(p.began)})
	}
}

// deadline is how long an answer may take: longer where this machine is busy, or the one that is asked.
func (p *Peers) deadline(m protocol.Member) time.Duration {
	said, _ := p.Last(m.Name)
	slack := said.Election.Limits.Slack
	if p.Slack != nil {
		slack = max(slack, p.Slack())
	}
	return answerDeadline + min(slack, machine.MaxSlack)
}

// ways are those to an instance. An address that has not answered when the name did is not waited for.
func (p *Peers) ways(m protocol.Member) ways {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	w := ways{hosts: []string{m.Address, m.Host}, next: nextWay}
	if m.Address != "" && p.silent[m.Name] == m.Address {
		w.next = 0
	}
	return w
}

// reached notes by which way an instance has answered.
func (p *Peers) reached(m protocol.Member, host string) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	delete(p.silent, m.Name)
	if m.Address != "" && host != m.Address {
		p.silent[m.Name] = m.Address
	}
}

// handleAnswer takes what a peer has answered.
func (p *Peers) handleAnswer(a answer) {
	p.mutex.Lock()
	before, known := p.heard[a.status.Name]
	same := known && before.status.Boot == a.status.Boot
	if same && a.direct == "" {
		a.direct = before.direct // a process keeps its address
	}
	if same && before.status.Number > a.status.Number {
		a.status = before.status // it was overtaken on the way; that it came still counts
	}
	p.heard[a.status.Name] = a
	p.mutex.Unlock()
	p.post(machine.PeerAnswered{Status: said(a.status), Asked: a.asked.Sub(p.began)})
}

// OnStatus takes what a peer says of itself without having been asked.
func (p *Peers) OnStatus(status protocol.Status) {
	p.mutex.Lock()
	before, known := p.heard[status.Name]
	if known && before.status.Boot != status.Boot {
		before.direct = ""
	}
	if known && (before.status.Boot != status.Boot || before.status.Number <= status.Number) {
		before.status = status
		p.heard[status.Name] = before
	}
	p.mutex.Unlock()
	p.post(machine.PeerAnnounced{Status: said(status)})
}

// Broadcast tells all others how this instance is.
func (p *Peers) Broadcast(ctx context.Context, status protocol.Status) {
	for _, m := range p.others() {
		if p.mayTell(m.Name) {
			go p.tell(ctx, m, status)
		}
	}
}

// tell tells one peer how this instance is. Who does not hear it asks.
func (p *Peers) tell(ctx context.Context, m protocol.Member, status protocol.Status) {
	defer p.told(m.Name)
	_, _ = reach(ctx, p.ways(m), p.deadline(m), func(ctx context.Context, host string) (protocol.Status, error) {
		asked := time.Now()
		answered, err := p.client.News(ctx, host, status)
		if err == nil && answered.Name == m.Name {
			p.reached(m, host)
			p.handleAnswer(answer{
				status: answered, address: host, direct: direct(m, host), asked: asked, at: time.Now(),
			})
		}
		return answered, err
	})
}

// Vote asks one peer for its vote, which nobody waits for any longer than patience.
func (p *Peers) Vote(
	ctx context.Context, m protocol.Member, request ha.VoteRequest, patience time.Duration,
) (ha.VoteReply, error) {
	ask := func(ctx context.Context, host string) (ha.VoteReply, error) { return p.client.Vote(ctx, host, request) }
	return reach(ctx, p.ways(m), max(patience, voteDeadline), ask)
}

// ProposeConfiguration proposes to one peer the configuration of the quorum. Nobody waits for its answer for any longer
// than patience.
func (p *Peers) ProposeConfiguration(
	ctx context.Context, m protocol.Member, proposal protocol.Proposal, patience time.Duration,
) (ha.AcceptReply, error) {
	ask := func(ctx context.Context, host string) (ha.AcceptReply, error) {
		return p.client.ProposeConfiguration(ctx, host, proposal)
	}
	return reach(ctx, p.ways(m), max(patience, voteDeadline), ask)
}

// Last is what a peer has said last, if it has said anything.
func (p *Peers) Last(name string) (protocol.Status, bool) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	a, ok := p.heard[name]
	return a.status, ok
}

// Silence is for how long a peer has answered nothing; for ever where it never has.
func (p *Peers) Silence(name string) time.Duration {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return time.Since(p.heard[name].at)
}

// Address is the address by which a peer's present process was reached, "" where it was reached by name only. That the
// operator does not know it any more, because the Pod is being deleted, is no reason for a standby to leave a
// connection that works.
func (p *Peers) Address(m protocol.Member) string {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.heard[m.Name].direct
}

// direct is the way to an instance if it is an address, and not its name.
func direct(m protocol.Member, host string) string {
	if host == m.Host {
		return ""
	}
	return host
}

// LastAddress is by which address or name a peer was reached last, if it was.
func (p *Peers) LastAddress(name string) string {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.heard[name].address
}
