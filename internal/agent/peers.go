package agent

import (
	"context"
	"sync"
	"time"

	"toban.dev/internal/ha"
	"toban.dev/internal/protocol"
)

// How often peers are asked (seldom once all is settled), how long an answer may
// take, and how long it counts.
const (
	pollBusy     = 100 * time.Millisecond
	pollSettled  = time.Second
	pollDeadline = time.Second
	answerCounts = 3 * time.Second
)

// peers asks the other instances how they are, each in its own time, so that a
// slow one delays nobody.
type peers struct {
	self   string
	client *protocol.Client
	// changed is called when an answer differs from the last in what decides.
	changed func()

	mutex   sync.Mutex
	members []protocol.Member
	settled bool
	heard   map[string]answer
}

type answer struct {
	status  protocol.Status
	address string // by which it was reached: an address or the host name
	at      time.Time
}

func newPeers(self string, client *protocol.Client, changed func()) *peers {
	return &peers{self: self, client: client, changed: changed, heard: map[string]answer{}}
}

// tell says whom to ask, and whether the instance has found its role.
func (p *peers) tell(members []protocol.Member, settled bool) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.members, p.settled = members, settled
}

// tellMembers says whom to ask.
func (p *peers) tellMembers(members []protocol.Member) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.members = members
}

// run asks until ctx ends.
func (p *peers) run(ctx context.Context) error {
	defer p.client.Close()
	asking := map[string]context.CancelFunc{}
	defer func() {
		for _, stop := range asking {
			stop()
		}
	}()
	for {
		members, interval := p.plan()
		present := map[string]bool{}
		for _, m := range members {
			present[m.Name] = true
			if m.Name != p.self && asking[m.Name] == nil {
				one, stop := context.WithCancel(ctx)
				asking[m.Name] = stop
				go p.askLoop(one, m.Name)
			}
		}
		for name, stop := range asking {
			if !present[name] {
				stop()
				delete(asking, name)
			}
		}
		if !sleep(ctx, interval) {
			return nil
		}
	}
}

func (p *peers) plan() ([]protocol.Member, time.Duration) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.settled {
		return p.members, pollSettled
	}
	return p.members, pollBusy
}

func (p *peers) askLoop(ctx context.Context, name string) {
	for {
		members, interval := p.plan()
		for _, m := range members {
			if m.Name == name {
				p.ask(ctx, m)
			}
		}
		if !sleep(ctx, interval) {
			return
		}
	}
}

// ask asks one peer by the address that is known, else by name. An answer under
// another's name is nobody's: addresses are given to new Pods.
func (p *peers) ask(ctx context.Context, m protocol.Member) {
	for _, host := range []string{m.Address, m.Host} {
		if host == "" {
			continue
		}
		one, cancel := context.WithTimeout(ctx, pollDeadline)
		status, err := p.client.Status(one, host)
		cancel()
		if err == nil && status.Name == m.Name {
			p.hear(m.Name, answer{status: status, address: host, at: time.Now()})
			return
		}
	}
}

func (p *peers) hear(name string, a answer) {
	p.mutex.Lock()
	before, known := p.heard[name]
	p.heard[name] = a
	p.mutex.Unlock()
	if !known || asPeer(before.status) != asPeer(a.status) {
		p.changed()
	}
}

// answers are the peers that have answered lately.
func (p *peers) answers(members []protocol.Member) map[string]ha.Peer {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	found := map[string]ha.Peer{}
	for _, m := range members {
		if a, ok := p.heard[m.Name]; ok && m.Name != p.self && time.Since(a.at) < answerCounts {
			found[m.Name] = asPeer(a.status)
		}
	}
	return found
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

func asPeer(s protocol.Status) ha.Peer {
	peer := ha.Peer{
		Data:             ha.Data(s.Data),
		SystemIdentifier: s.SystemIdentifier,
		Ballot:           ha.Ballot{Term: s.Term, Leader: s.Leader},
		Leading:          s.Role == protocol.RolePrimary && s.Ready,
	}
	if lsn, err := ha.ParseLSN(s.Oldest); err == nil {
		peer.Oldest = lsn
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
