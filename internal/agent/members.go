package agent

import (
	"errors"
	"slices"

	"toban.dev/internal/ha"
	"toban.dev/internal/naming"
	"toban.dev/internal/postgres"
	"toban.dev/internal/protocol"
)

// members says which instances there are, and how each is reached.
type members struct {
	self   string
	config func() protocol.Config
	// hardState has the configuration of who has a vote.
	hardState func() ha.HardState
	routes    routes
}

// routes say by what the other instances were reached last, and what they said.
type routes interface {
	// Address is it if it was an address, LastAddress also where it was a name.
	Address(m protocol.Member) string
	LastAddress(name string) string
	// Last is what another has said last, if it has said anything.
	Last(name string) (protocol.Status, bool)
}

// all are the members, and those that are none any more but still have
// a vote: until the configuration says otherwise they acknowledge, vote, and may even lead.
func (m *members) all() []protocol.Member {
	config := m.config()
	all := slices.Clone(config.Members)
	for _, voter := range m.hardState().Configuration.Voters() {
		name := voter.Instance()
		if slices.ContainsFunc(all, func(m protocol.Member) bool { return m.Name == name }) {
			continue
		}
		ordinal, _ := naming.Ordinal(name)
		all = append(all, protocol.Member{
			Name: name, Host: naming.InstanceHost(config.Cluster, config.Namespace, ordinal),
			Address: m.routes.LastAddress(name),
		})
	}
	return all
}

// find says how to reach an instance.
func (m *members) find(name string) (protocol.Member, error) {
	for _, member := range m.all() {
		if member.Name == name {
			return member, nil
		}
	}
	return protocol.Member{}, errors.New("the instance " + name + " is not among the members")
}

// slots are those of the other members and of the readers.
func (m *members) slots() []string {
	slots, config := []string{}, m.config()
	for i := range config.Readers {
		slots = append(slots, naming.Slot(naming.Reader(config.Cluster, i)))
	}
	for _, member := range m.all() {
		if member.Name != m.self {
			slots = append(slots, naming.Slot(member.Name))
		}
	}
	return slots
}

// upstream says how this instance's server receives from that of a leader.
func (m *members) upstream(leader ha.Ballot) (postgres.Upstream, error) {
	member, err := m.find(leader.Leader)
	if err != nil {
		return postgres.Upstream{}, err
	}
	return postgres.Upstream{
		Host: member.Host, Address: m.routes.Address(member), Port: naming.PortPostgreSQL,
		Name: m.followerName(leader), Slot: naming.Slot(m.self), Term: leader.Term,
		ByName: m.config().Given != "", Only: len(m.config().Members) == 2,
	}, nil
}

// followerName is the name by which a leader counts what this instance's server acknowledges.
// A reader has the name of its Pod, which is no voter's: no rule ever names it.
func (m *members) followerName(leader ha.Ballot) string {
	if naming.IsReader(m.config().Cluster, m.self) {
		return m.self
	}
	voter := m.hardState().Voter
	if said, heard := m.routes.Last(leader.Leader); heard && said.Protocol == 0 {
		return string(voter) // release 0.1.0 knows no other
	}
	return ha.FollowerName(voter, leader.Term)
}
