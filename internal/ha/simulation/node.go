package simulation

import (
	"fmt"
	"math/rand/v2"
	"time"

	"toban.dev/internal/ha"
	"toban.dev/internal/ha/machine"
	"toban.dev/internal/wal"
)

const ms = time.Millisecond

// entry is a piece of WAL. Equal sums at the same place mean equal WAL up to there.
type entry struct{ term, sum uint64 }

// node is an instance: what is on its volume, its server, and the machine that the agent runs.
type node struct {
	w     *World
	index int
	name  string

	disk     disk
	election election

	// The process.
	up           bool
	epoch        int
	pause        pause
	deafUntil    time.Duration // its server takes no replication
	rewoundUntil time.Duration // its server, which was rewound, is not consistent: it has no session for anybody
	offset       time.Duration
	rate         float64
	config       machine.Config
	machine      *machine.Instance
	replies      map[uint64]func(machine.Effect)

	server *server
	// task is the command that is being carried out, demanded the rule that is being put in force; 0 for none.
	task, demanded uint64
	rebuild        *rebuild

	lastContact time.Duration
	lastTick    time.Duration
	excused     time.Duration // until when a late stop is not held against it
	leased      bool          // it had the read lease before the last step
	leaseGone   time.Duration // when the server is gone that was ended because it has the read lease no more
}

// clock is the instance's own.
func (n *node) clock() time.Duration {
	return time.Duration(float64(n.w.now)*n.rate) + n.offset
}

func (n *node) log(format string, args ...any) { n.w.log(n.name, format, args...) }

// create makes the instance with an empty volume.
func (n *node) create() {
	n.w.ids++
	n.disk.mem = ha.HardState{Voter: ha.NewVoter(n.name, fmt.Sprintf("%08x", n.w.ids))}
	n.disk.data, n.disk.system, n.disk.wal, n.disk.oldest, n.disk.exists = ha.DataEmpty, "", nil, 0, true
	n.disk.maxTerms = [2]uint64{}
	n.disk.cramped = n.w.scarce && n.w.volumes.Float64() < 0.7
}

// start starts the agent.
func (n *node) start() {
	n.epoch++
	n.up, n.pause = true, pause{n: n}
	n.lastContact = n.w.now
	n.endServer()
	if n.w.breaks(TermForgotten) {
		n.disk.mem.Ballot = ha.Ballot{}
	}
	seed := n.w.rng.Uint64()
	n.replies = map[uint64]func(machine.Effect){}
	n.machine = machine.New(machine.Options{
		Name: n.name, Boot: fmt.Sprint(n.epoch), HardState: n.disk.mem, Config: n.config,
		Rules: n.rules(), Limits: ha.OwnLimits(),
		Random: rand.New(rand.NewPCG(seed, 3)), Now: n.clock(), // #nosec G404 -- a simulation must be repeatable
	})
	n.log("starts: voter %s, ballot %v, won %d, record %d.%d, data %s of %d", n.disk.mem.Voter, n.disk.mem.Ballot,
		n.disk.mem.Won,
		n.disk.mem.Configuration.Term, n.disk.mem.Configuration.Version, n.disk.data, len(n.disk.wal))
	n.later(n.w.between(1*ms, 200*ms), func() {
		n.seeData()
		n.seeVolume()
		n.tick()
		n.poll()
	})
}

// busy says that the agent answers nobody, though its server does.
func (n *node) busy() bool { return n.w.now < n.pause.busy }

// crash ends the agent with its server.
func (n *node) crash() {
	n.log("CRASH")
	n.up = false
	n.epoch++
	n.endServer()
	n.rebuild, n.machine = nil, nil
}

// step has the machine take in an event, and begins what it wants. One that hangs takes it in later.
func (n *node) step(e machine.Event) {
	switch {
	case !n.up:
	case n.pause.until > n.w.now || n.busy() || len(n.pause.held) > 0:
		n.pause.hold(e)
	default:
		n.leased = n.role() == ha.ServerPrimary && n.machine.View().Local.HasReadLease
		for _, effect := range n.machine.Step(n.clock(), e) {
			n.carryOut(effect)
		}
	}
}

// tick tells the machine that time has passed.
func (n *node) tick() {
	if !n.busy() {
		n.step(machine.Tick{})
		n.checkIsolation()
	}
	n.keepAlive()
	wake := n.machine.Wake(func(interval time.Duration) time.Duration { return interval })
	n.later(n.w.between(wake*4/5, wake*7/5), n.tick)
}

// store is what is on disk from now on.
func (n *node) store(m ha.HardState) {
	old := n.disk.mem
	switch {
	case m.Voter != old.Voter:
		n.disk.maxTerms = [2]uint64{}
		// By a clock that goes back, what was asked before seems to be asked later.
		if n.w.broken == Whole && n.w.now > n.w.excused {
			n.w.fail("nobody has forgotten what it promised", "%s was %s, and is %s", n.name, old.Voter, m.Voter)
		}
	case m.Ballot.Term < n.disk.maxTerms[0]:
		n.w.fail("terms never go back", "%s had the ballot %d, now %d", n.name, n.disk.maxTerms[0], m.Ballot.Term)
	case m.Won < n.disk.maxTerms[1]:
		n.w.fail("terms never go back", "%s had won %d, now %d", n.name, n.disk.maxTerms[1], m.Won)
	case old.Configuration.Newer(m.Configuration):
		n.w.fail("configurations never go back", "%s had the configuration %d.%d",
			n.name, old.Configuration.Term, old.Configuration.Version)
	}
	n.disk.maxTerms = [2]uint64{max(n.disk.maxTerms[0], m.Ballot.Term), max(n.disk.maxTerms[1], m.Won)}
	n.disk.mem = m
	if m.Won > old.Won {
		n.lastContact = n.w.now // a majority has just answered
		if l := n.lead(); l != nil {
			l.term = m.Won // it alone has a vote, and goes on
		}
		n.w.check.wonBy(n, m.Won)
	}
	if old.Configuration.Version != m.Configuration.Version {
		n.configurationStored(old.Configuration, m.Configuration)
	}
}

// end is how far the WAL goes.
func (d *disk) end() wal.LSN { return wal.LSN(len(d.wal)) }

// leads says whether the instance won the term of its ballot.
func (n *node) leads() bool {
	m := &n.disk.mem
	return m.Won > 0 && m.Won == m.Ballot.Term && m.Ballot.Leader == n.name && n.disk.data == ha.DataPresent
}

// write appends one entry of the instance's own to its WAL.
func (n *node) write() {
	n.w.ids++
	term := n.disk.mem.Position(n.disk.end() + 1).Term
	n.disk.wal = append(n.disk.wal, entry{term, mix(sumAt(n.disk.wal, len(n.disk.wal)), n.w.ids)})
}

// sumAt is the sum of the first count entries.
func sumAt(wal []entry, count int) uint64 {
	if count == 0 || count > len(wal) {
		return 0
	}
	return wal[count-1].sum
}

func mix(a, b uint64) uint64 {
	h := (a ^ (b * 0x9E3779B97F4A7C15)) * 0xBF58476D1CE4E5B9
	return h ^ h>>29
}

// indexOf is the number of an instance.
func indexOf(name string) int {
	if len(name) != 4 {
		return -1
	}
	return int(name[3] - '0')
}

var allNames = [maxNodes]string{"db-0", "db-1", "db-2", "db-3", "db-4"}

func nameOf(index int) string { return allNames[index] }
