package ha

import (
	"strings"
	"testing"
	"time"

	"toban.dev/internal/wal"
)

// cramped is a standby of db-0 that can't stream and has no room for a copy beside its data.
func cramped() Local {
	l := stalled(time.Minute)
	l.NoRoom = true
	return l
}

func TestDataIsGivenUpOnlyWhereOthersHaveIt(t *testing.T) {
	t.Parallel()
	at := func(end wal.LSN, p Peer) Peer { p.Position.LSN = end; return p }
	with := func(p Peer, change func(*Peer)) Peer { change(&p); return p }
	stuck := func(p Peer) Peer { p.Streaming = false; return p }
	emptied := Peer{Voter: "db-2.c", Data: DataEmpty, Ballot: Ballot{1, "db-0"}}
	of := func(q Quorum) func(*View) {
		return local(func(l *Local) { l.HardState.Configuration.Now = q })
	}
	two := Quorum{Voters: []Voter{"db-0.a", "db-1.b"}, Witness: "lease", Acknowledgements: 2}
	leads := hears("db-0", leader("db-0", 1))
	for name, c := range map[string]struct {
		view   View
		needed string // in the message, "" where the data may go
	}{
		"another streams and has as much": {
			three("db-1", cramped(), leads, hears("db-2", follower("db-2", 1, "db-0"))), "",
		},
		"another has as much, though it can't stream": {
			three("db-1", cramped(), leads, hears("db-2", stuck(follower("db-2", 1, "db-0")))), "",
		},
		"another streams, and is not there yet": {
			three("db-1", cramped(), leads, hears("db-2", at(99, follower("db-2", 1, "db-0")))),
			"must have it up to 0/64",
		},
		"another has given up its own": {three("db-1", cramped(), leads, hears("db-2", emptied)), "db-2 has no data"},
		"another is being rebuilt": {three("db-1", cramped(), leads, hears("db-2",
			with(follower("db-2", 1, "db-0"), func(p *Peer) { p.Rebuilding = true }))), "db-2 is being rebuilt"},
		"another may still have to be rewound": {
			three("db-1", cramped(), leads, hears("db-2", with(follower("db-2", 1, "db-0"),
				func(p *Peer) { p.TermHistory = []TermStart{{1, 0, 1}, {2, 70, 2}} }))),
			"db-2 does not follow db-0 yet",
		},
		"another is no member any more": {
			three("db-1", cramped(), leads, hears("db-2", follower("db-2", 1, "db-0")),
				func(v *View) { v.Members = []string{"db-0", "db-1"} }), "db-2 is to be removed",
		},
		"the leader is no member any more": {
			three("db-1", cramped(), leads, hears("db-2", follower("db-2", 1, "db-0")),
				func(v *View) { v.Members = []string{"db-1", "db-2"} }), "",
		},
		"another does not answer": {three("db-1", cramped(), leads), "db-2 does not answer"},
		"another has lost its memory and was copied": {three("db-1", cramped(), leads,
			hears("db-2", with(follower("db-2", 1, "db-0"), func(p *Peer) { p.Voter = "db-2.x" }))), ""},
		"nobody leads": {three("db-1", cramped(), hears("db-2", follower("db-2", 1, "db-0"))), "not known who leads"},
		"of two, the leader has not gone on alone yet": {
			three("db-1", cramped(), leads, of(two)), "on 1 of the 2 disks",
		},
		"of two, the leader has gone on alone": {three("db-1", cramped(), leads, of(alone.Now)), ""},
		"the leader alone acknowledges, of two": {
			three("db-1", cramped(), leads, of(Quorum{Voters: two.Voters, Acknowledgements: 1})), "",
		},
		"the leader alone acknowledges, of three, and the other has no data": {
			three("db-1", cramped(), leads, hears("db-2", emptied),
				of(Quorum{Voters: ofThree.Now.Voters, Acknowledgements: 1})), "db-2 has no data"},
		"no record is known": {three("db-1", cramped(), leads,
			local(func(l *Local) { l.HardState.Configuration = Configuration{} })), "not known"},
		"data that can't be read is not known to be of no use": {
			three("db-1", cramped(), leads, local(func(l *Local) { l.Data = DataUnknown })), "db-2 does not answer"},
		"what a rewind left is of no use": {
			three("db-1", cramped(), local(func(l *Local) { l.Data = DataIncomplete })), "",
		},
		"it is not known how far its WAL goes, nor the leader's": {
			three("db-1", cramped(), leads, hears("db-2", follower("db-2", 1, "db-0")),
				local(func(l *Local) { l.Received = 0 })), "db-2 has WAL up to"},
		"it is not known how far its WAL goes, and the other has all of the leader's": {
			three("db-1", cramped(), local(func(l *Local) { l.Received = 0 }), hears("db-0", with(leader("db-0", 1),
				func(p *Peer) { p.Written = 100 })), hears("db-2", follower("db-2", 1, "db-0"))), "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			needed := c.view.DataNeeded()
			if (needed == nil) != (c.needed == "") || needed != nil && !strings.Contains(needed.Message, c.needed) {
				t.Errorf("got %+v, expected %q", needed, c.needed)
			}
		})
	}
}

func TestDecideWhatToDoWithoutRoomForACopy(t *testing.T) {
	t.Parallel()
	leads := hears("db-0", leader("db-0", 1))
	emptied := Peer{Voter: "db-1.b", Data: DataEmpty, Ballot: Ballot{1, "db-0"}}
	second := func(l *Local) { l.HardState.Voter = "db-2.c" }
	check(t, map[string]decided{
		"a standby that can't stream keeps its data while others need it, and goes on trying": {
			three("db-1", cramped(), leads), Follow, "db-0", "DataNeeded",
		},
		"a standby that can't stream is copied anew when they don't": {
			three("db-1", cramped(), leads, hears("db-2", follower("db-2", 1, "db-0"))), Clone, "db-0", "Stuck"},
		"with room for both, nobody is asked": {three("db-1", stalled(time.Minute), leads), Clone, "db-0", "Stuck"},
		"a voter that has given up its data is being rebuilt, though its copy fails": {
			three("db-2", stalled(time.Minute), local(second), leads, hears("db-1", emptied)),
			Follow, "db-0", "Rebuilding"},
		"one that has no vote yet and no data is not waited for": {
			three("db-2", stalled(time.Minute), local(second), leads,
				hears("db-1", Peer{Voter: "db-1.new", Data: DataEmpty})), Clone, "db-0", "Stuck"},
	})
}
