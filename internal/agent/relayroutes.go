package agent

import (
	"net"
	"time"

	"toban.dev/internal/agent/publish"
	"toban.dev/internal/front/relay"
	"toban.dev/internal/naming"
	"toban.dev/internal/protocol"
)

// relaySilence is after how long without a word of an instance no client is sent there to be passed on.
const relaySilence = 1500 * time.Millisecond

// newRelay passes clients on to whom this instance knows to lead.
func (a *Agent) newRelay() *relay.Relay {
	dial := a.options.Dial
	if dial == nil {
		dial = (&net.Dialer{}).DialContext
	}
	return &relay.Relay{
		Listen: a.options.Listen, ListenAt: a.options.listener, Dial: dial, Log: a.options.Log,
		Wanted: func() bool {
			c := a.configs.get()
			return c.Relay && !naming.IsReader(c.Cluster, a.options.Name)
		},
		Told:    a.told,
		Silence: a.silenceOf,
		Changed: func(listens bool) { a.status.Change(func(s *protocol.Status) { s.Relays = listens }) },
	}
}

// silenceOf is for how long nothing has been heard of an instance, as a machine without time for its processes hears.
func (a *Agent) silenceOf(name string) time.Duration {
	if name == a.options.Name {
		return 0
	}
	return a.peers.Silence(name) - a.pressure.Slack()
}

// told is what the instances have told last: this one now, and the others as it has heard them.
func (a *Agent) told() []protocol.InstanceTells {
	out := []protocol.InstanceTells{a.tellsPoolers()}
	closed := a.configs.get().Closed
	for _, m := range a.members.all() {
		if said, known := a.peers.Last(m.Name); known && m.Name != a.options.Name {
			out = append(out, tells(said, a.peers.LastAddress(m.Name), closed))
		}
	}
	return out
}

// tells is what an instance tells by its status. With closed, nobody is let in anywhere.
func tells(s protocol.Status, address string, closed bool) protocol.InstanceTells {
	follows := s.Role == protocol.RoleStandby && s.Ready && !closed
	return protocol.InstanceTells{
		Name: s.Name, Address: address, Term: s.Term, HandOver: s.HandOver,
		Leads: s.Role == protocol.RolePrimary && s.Leader == s.Name && s.Ready && !closed,
		Reads: follows && !s.Late,
		Late:  follows && s.Late,
	}
}

// relays has the Service lead to those that pass clients on.
func (a *Agent) relays() *publish.Relays {
	return &publish.Relays{Cluster: a.options.Cluster, Wanted: a.passing, Log: a.options.Log}
}

// passing is who passes clients on, where this instance is to say so.
func (a *Agent) passing() map[string]publish.Passes {
	own := a.status.Get()
	if tells := a.tellsPoolers(); !a.configs.get().Relay || !tells.Leads {
		return nil
	}
	var others []heard
	for _, m := range a.members.all() {
		if m.Name != own.Name {
			said, _ := a.peers.Last(m.Name)
			others = append(others, heard{m.Name, said, a.peers.Silence(m.Name)})
		}
	}
	return passing(own, others)
}

// heard is another instance: what it has said last, and for how long it has said nothing.
type heard struct {
	name    string
	said    protocol.Status
	silence time.Duration
}

// passing is who passes clients on and is heard, as the leader sees it; nil where it hears so few others that it may be
// the one that is cut off. Of two instances, one may go on alone.
func passing(own protocol.Status, others []heard) map[string]publish.Passes {
	out, hears := map[string]publish.Passes{own.Name: {Boot: own.Boot, Leads: own.Relays}}, 1
	for _, other := range others {
		recent := other.silence < relaySilence
		if recent {
			hears++
		}
		out[other.name] = publish.Passes{Boot: other.said.Boot, Leads: recent && other.said.Relays}
	}
	if all := len(others) + 1; all > 2 && 2*hears <= all {
		return nil
	}
	return out
}
