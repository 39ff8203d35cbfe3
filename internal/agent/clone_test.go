package agent

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"toban.dev/internal/ha"
	"toban.dev/internal/postgres"
	"toban.dev/internal/protocol"
)

// copier is an agent of three instances that copies the data of db-0, in term 5, since a moment; its own WAL ends at 100. The others' words are as old as given.
func copier(t *testing.T, data string, leader, other time.Duration) *copying {
	t.Helper()
	a := winner(t, &lease{})
	a.server = &postgres.Server{Volume: t.TempDir()}
	if err := os.Mkdir(a.server.Data(), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(a.server.Data(), data), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	members := []protocol.Member{{Name: "db-0"}, {Name: "db-1"}, {Name: "db-2"}}
	a.config.Members, a.status.SystemIdentifier = members, "7"
	a.peers = newPeers("db-1", nil, func() {})
	a.peers.members = func() []protocol.Member { return members }
	ballot, position := ha.Ballot{Term: 5, Leader: "db-0"}, ha.Position{LSN: 100}
	if _, err := a.memory.Change(func(m *ha.Memory) bool {
		m.Ballot, m.Won = ballot, 0
		m.Record.Now = ha.Quorum{Voters: []ha.Voter{"db-0.a", m.Voter, "db-2.c"}, Acknowledgements: 2}
		return true
	}); err != nil {
		t.Fatal(err)
	}
	says := func(name string, voter ha.Voter, ago time.Duration, leads bool) {
		at := time.Now().Add(-ago)
		a.peers.heard[name] = answer{asked: at, at: at, status: protocol.Status{Name: name, Term: 5, Leader: "db-0", SystemIdentifier: "7", Data: protocol.DataPresent,
			LSN: "0/70", Election: protocol.Election{Voter: voter, Leading: leads, Position: position}}}
	}
	says("db-0", "db-0.a", leader, true)
	says("db-2", "db-2.c", other, false)
	a.life = t.Context()
	return &copying{Agent: a, ballot: ballot, began: time.Now().Add(-time.Second), end: 100}
}

func TestDataIsGivenUpOnWhatOthersHaveSaidSinceTheCopyBegan(t *testing.T) {
	t.Parallel()
	const fresh, old = 100 * time.Millisecond, 1500 * time.Millisecond
	from := func(leader, other time.Duration, changes ...func(*copying)) func() *copying {
		return func() *copying {
			c := copier(t, "PG_VERSION", leader, other)
			for _, change := range changes {
				change(c)
			}
			return c
		}
	}
	for name, c := range map[string]struct {
		copying func() *copying
		refusal string
	}{
		"both have answered since":               {from(fresh, fresh), ""},
		"the other has answered before":          {from(fresh, old), "db-2 does not answer"},
		"the leader has answered before":         {from(old, fresh), "not known who leads"},
		"the leader is that of a later term now": {from(fresh, fresh, func(c *copying) { c.ballot.Term = 4 }), "the term is 5 by now"},
		"it has more WAL than the other":         {from(fresh, fresh, func(c *copying) { c.end = 101 }), "must have it up to 0/65"},
		"how far its WAL goes is not known, and the other has less than the leader": {
			from(fresh, fresh, func(c *copying) { c.end = 0 }), "must have it up to 0/70"},
		"what its data is can't be learned, and the other has answered before": {func() *copying { return copier(t, "strange", fresh, old) }, "db-2 does not answer"},
	} {
		t.Run(name, func(t *testing.T) {
			copying := c.copying()
			err := copying.mayDiscard(t.Context())
			if (err == nil) != (c.refusal == "") || err != nil && !strings.Contains(err.Error(), c.refusal) {
				t.Errorf("got %v, expected %q", err, c.refusal)
			}
			if empty := copying.Status().Data == protocol.DataEmpty; empty != (c.refusal == "") {
				t.Errorf("the others are told that there is no data: %v", empty)
			}
		})
	}
}
