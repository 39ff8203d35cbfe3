package agent

import (
	"slices"
	"testing"

	"toban.dev/internal/ha"
	"toban.dev/internal/naming"
	"toban.dev/internal/postgres"
	"toban.dev/internal/protocol"
)

// reached are the addresses by which instances were reached.
type reached map[string]string

func (r reached) Address(m protocol.Member) string { return r[m.Name] }
func (r reached) LastAddress(name string) string   { return r[name] }

// Last is an answer of those that were reached; db-2's agent is of release 0.1.0.
func (r reached) Last(name string) (protocol.Status, bool) {
	_, is := r[name]
	s := protocol.Status{Protocol: protocol.Version}
	if name == "db-2" {
		s.Protocol = 0
	}
	return s, is
}

// three are the members db-0 and db-1, and db-2, which is none any more but has a vote.
func three(routes reached) *members {
	return &members{
		self: "db-0", routes: routes,
		config: func() protocol.Config {
			return protocol.Config{Cluster: "db", Namespace: "shop", Members: []protocol.Member{
				{Name: "db-0", Host: "h0"}, {Name: "db-1", Host: "h1"},
			}}
		},
		hardState: func() ha.HardState {
			return ha.HardState{Voter: "db-0.a", Configuration: ha.Configuration{
				Now: ha.Quorum{Voters: []ha.Voter{"db-0.a", "db-1.b", "db-2.c"}},
			}}
		},
	}
}

func TestWhoHasAVoteCountsAfterItIsNoMember(t *testing.T) {
	m := three(reached{"db-2": "10.0.0.2"})
	var names []string
	for _, member := range m.all() {
		names = append(names, member.Name)
	}
	if !slices.Equal(names, []string{"db-0", "db-1", "db-2"}) {
		t.Errorf("the instances are %v", names)
	}
	removed, err := m.find("db-2")
	if err != nil || removed.Address != "10.0.0.2" || removed.Host == "" {
		t.Errorf("it is reached by %+v, %v", removed, err)
	}
	if _, err := m.find("db-3"); err == nil {
		t.Error("one that nobody knows is found")
	}
	if slots := m.slots(); len(slots) != 2 || slices.Contains(slots, naming.Slot("db-0")) {
		t.Errorf("the slots are %v", slots)
	}
}

func TestHowALeaderIsFollowed(t *testing.T) {
	m := three(reached{"db-1": "10.0.0.1"})
	got, err := m.upstream(ha.Ballot{Term: 7, Leader: "db-1"})
	want := postgres.Upstream{
		Host: "h1", Address: "10.0.0.1", Port: 5432, Name: "db-0.a@7", Slot: naming.Slot("db-0"), Term: 7, Only: true,
	}
	if err != nil || got != want {
		t.Errorf("it is followed by %+v, %v; want %+v", got, err, want)
	}
	for leader, name := range map[string]string{"db-2": "db-0.a", "db-1": "db-0.a@7"} {
		for routes, want := range map[*members]string{
			three(reached{"db-1": "", "db-2": ""}): name, three(nil): "db-0.a@7",
		} {
			if got, err := routes.upstream(ha.Ballot{Term: 7, Leader: leader}); err != nil || got.Name != want {
				t.Errorf("at %s it is named %q, %v; want %q", leader, got.Name, err, want)
			}
		}
	}
	if _, err := m.upstream(ha.Ballot{Term: 7, Leader: "db-9"}); err == nil {
		t.Error("one that nobody knows is followed")
	}
}

// A primary keeps a slot for each reader. A reader is known to it by the name of its Pod, which no rule for commits
// has.
func TestReadersHaveSlotsAndNoVotersName(t *testing.T) {
	m := three(reached{"db-1": "10.0.0.1"})
	config := m.config()
	config.Readers = 2
	m.config = func() protocol.Config { return config }
	for _, reader := range []string{"db-readers-0", "db-readers-1"} {
		if !slices.Contains(m.slots(), naming.Slot(reader)) {
			t.Errorf("there is no slot for %s: %v", reader, m.slots())
		}
	}
	m.self = "db-readers-1"
	got, err := m.upstream(ha.Ballot{Term: 7, Leader: "db-1"})
	if err != nil || got.Name != "db-readers-1" || got.Slot != naming.Slot("db-readers-1") {
		t.Errorf("it follows by %+v, %v", got, err)
	}
}

func TestWhatOfAConfigIsForAReader(t *testing.T) {
	given := protocol.Config{Cluster: "db", Witness: "uid", Archive: &protocol.Archive{Path: "x"},
		Members: []protocol.Member{{Name: "db-0"}}}
	for self, reader := range map[string]bool{"db-0": false, "db-readers-0": true} {
		c := configs{self: self}
		c.set(given)
		if got := c.get(); (got.Archive == nil) != reader || (got.Witness == "") != reader {
			t.Errorf("%s has %+v", self, got)
		}
		if got := machineConfig(c.get(), self, true); got.Reader != reader || got.API == reader ||
			slices.Contains(got.Members, "db-readers-0") {
			t.Errorf("the elections of %s have %+v", self, got)
		}
	}
}
