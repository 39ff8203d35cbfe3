package simulation

import (
	"fmt"
	"time"

	"toban.dev/internal/ha"
)

const ms = time.Millisecond

// entry is a piece of WAL. Equal sums at the same place mean equal WAL up to there.
type entry struct{ term, sum uint64 }

// node is an instance: what is on its volume, and what its processes know.
type node struct {
	w     *World
	index int
	name  string

	// On the volume.
	mem      ha.Memory
	data     ha.Data
	system   string
	wal      []entry
	oldest   int
	exists   bool
	cramped  bool          // there is no room for a copy beside the data
	lostAt   time.Duration // when data or volume was lost by a fault, or a rewind began
	maxTerms [2]uint64     // highest ballot and Won since the volume is there

	// The process.
	up          bool
	epoch       int
	pausedUntil time.Duration // agent and server
	busyUntil   time.Duration // the agent alone
	deafUntil   time.Duration // its server takes no replication
	offset      time.Duration
	rate        float64
	config      config
	wish        ha.Wish

	// The server.
	server    ha.Server
	starting  bool
	elected   uint64 // the term just won, until its server is open
	overtakes uint64 // the term before which a leader may hold on, for all that is known
	unasked   bool   // it leads without having been able to ask
	onWord    bool   // it was elected on its leader's word, which may be an old one
	cameBack  bool   // it leads again in a term
	failed    string
	following uint64
	upstream  int
	conn      *upstreamConn
	knownAt   time.Duration
	lead      *leadership

	// What the agent remembers while it runs.
	heard        [maxNodes]heard
	peers        map[string]ha.Peer // those of heard that are not too old
	told         ha.Peer            // what it says about itself
	toldRecord   ha.Record
	silentSince  time.Duration
	refusedSince time.Duration
	idleSince    time.Duration
	since        time.Duration // leaderless
	stalledSince time.Duration
	seenBallot   ha.Ballot
	restUntil    time.Duration
	resignedTerm uint64
	resignedAt   time.Duration
	rewindFailed bool
	noRoom       bool
	campaign     *campaign
	rebuild      *rebuild
	witness      witnessView
	highest      uint64
	lastContact  time.Duration
	lastTick     time.Duration
	excused      time.Duration // until when a late stop is not held against it
}

// heard is what another instance said last.
type heard struct {
	voter    ha.Voter
	term     uint64
	lost     bool // it has lost its leader
	at, sent time.Duration
	ok       bool
}

// config is what the operator has told the instance.
type config struct {
	members []string
	system  string
	async   bool
}

// clock is the instance's own.
func (n *node) clock() time.Duration {
	return time.Duration(float64(n.w.now)*n.rate) + n.offset
}

func (n *node) log(format string, args ...any) { n.w.log(n.name, format, args...) }

// create makes the instance with an empty volume.
func (n *node) create() {
	n.w.ids++
	n.mem = ha.Memory{Voter: ha.NewVoter(n.name, fmt.Sprintf("%08x", n.w.ids))}
	n.data, n.system, n.wal, n.oldest, n.exists = ha.DataEmpty, "", nil, 0, true
	n.maxTerms = [2]uint64{}
	n.cramped = n.w.scarce && n.w.volumes.Float64() < 0.7
}

// start starts the agent.
func (n *node) start() {
	n.epoch++
	n.up, n.pausedUntil, n.busyUntil = true, 0, 0
	now := n.clock()
	n.heard, n.silentSince, n.refusedSince, n.idleSince = [maxNodes]heard{}, now, -1, -1
	n.since, n.stalledSince, n.seenBallot, n.restUntil = now, -1, n.mem.Ballot, 0
	n.resignedTerm, n.rewindFailed, n.noRoom, n.campaign, n.rebuild = 0, false, false, nil, nil
	n.witness, n.highest, n.lastContact = witnessView{}, 0, n.w.now
	n.elected, n.overtakes, n.unasked = 0, n.mem.Won, false
	n.wish = ha.Wish{}
	if n.w.breaks(TermForgotten) {
		n.mem.Ballot = ha.Ballot{}
	}
	n.stopServer()
	n.failed = ""
	n.peers = make(map[string]ha.Peer, maxNodes)
	n.describe(n.view())
	n.log("starts: voter %s, ballot %v, won %d, record %d.%d, data %s of %d", n.mem.Voter, n.mem.Ballot, n.mem.Won,
		n.mem.Record.Term, n.mem.Record.Version, n.data, len(n.wal))
	n.later(n.w.between(1*ms, 200*ms), n.tick)
}

// busy says that the agent answers nobody, though its server does.
func (n *node) busy() bool { return n.w.now < n.busyUntil }

// crash ends the agent with its server.
func (n *node) crash() {
	n.log("CRASH")
	n.up = false
	n.epoch++
	n.stopServer()
	n.rebuild, n.campaign = nil, nil
}

// stopServer ends the server at once.
func (n *node) stopServer() {
	n.hangUp()
	n.server, n.starting, n.following, n.conn, n.lead = ha.ServerStopped, false, 0, nil, nil
}

// store makes a memory durable.
func (n *node) store(m ha.Memory) {
	old := n.mem
	switch {
	case m.Voter != old.Voter:
	case m.Ballot.Term < n.maxTerms[0]:
		n.w.fail("terms never go back", "%s had the ballot %d, now %d", n.name, n.maxTerms[0], m.Ballot.Term)
	case m.Won < n.maxTerms[1]:
		n.w.fail("terms never go back", "%s had won %d, now %d", n.name, n.maxTerms[1], m.Won)
	case old.Record.Newer(m.Record):
		n.w.fail("records never go back", "%s had the record %d.%d", n.name, old.Record.Term, old.Record.Version)
	}
	n.maxTerms = [2]uint64{max(n.maxTerms[0], m.Ballot.Term), max(n.maxTerms[1], m.Won)}
	n.mem = m
}

// end is how far the WAL goes.
func (n *node) end() ha.LSN { return ha.LSN(len(n.wal)) }

// known says whether the end of the WAL is known.
func (n *node) known() bool {
	return n.server == ha.ServerStandby && n.conn == nil && n.w.now >= n.knownAt
}

// leads says whether the instance won the term of its ballot.
func (n *node) leads() bool {
	return n.mem.Won > 0 && n.mem.Won == n.mem.Ballot.Term && n.mem.Ballot.Leader == n.name && n.data == ha.DataPresent
}

// resigned says whether it gave up the term of its ballot lately.
func (n *node) resigned() bool {
	return n.resignedTerm > 0 && n.resignedTerm == n.mem.Ballot.Term && n.clock()-n.resignedAt < ha.IdleLimit
}

// stopReceiving ends the stream; what has been received is replayed after a while.
func (n *node) stopReceiving() {
	if n.conn != nil || n.following != 0 {
		n.knownAt = n.w.now + n.w.between(5*ms, 250*ms)
	}
	n.conn, n.following = nil, 0
}

// startStandby runs the server as a standby without upstream.
func (n *node) startStandby() {
	if n.server == ha.ServerStandby {
		return
	}
	n.stopServer()
	n.server = ha.ServerStandby
	n.knownAt = n.w.now + n.w.between(50*ms, 400*ms)
	n.failed = ""
}

// write appends one entry of the instance's own to its WAL.
func (n *node) write() {
	n.w.ids++
	term := n.mem.Position(n.end() + 1).Term
	n.wal = append(n.wal, entry{term, mix(sumAt(n.wal, len(n.wal)), n.w.ids)})
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
