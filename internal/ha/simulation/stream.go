package simulation

import (
	"time"

	"toban.dev/internal/ha"
)

// upstreamConn is a standby's end of a stream.
type upstreamConn struct {
	id, term uint64
	leader   int
	last     time.Duration
	live     bool
}

// downstreamConn is the primary's end of a stream.
type downstreamConn struct {
	id, term    uint64
	voter       ha.Voter
	sent, acked int
	last        time.Duration
}

// streamLimit is after how long a silent stream is broken.
const streamLimit = time.Second

// streaming says whether a standby receives WAL now.
func (n *node) streaming() bool {
	c := n.conn()
	return c != nil && c.live && n.clock()-c.last < streamLimit
}

// conn is a standby's end of its stream, nil for none.
func (n *node) conn() *upstreamConn {
	if n.server == nil {
		return nil
	}
	return n.server.conn
}

// follow has the standby follow another leader, or nobody.
func (n *node) follow(of ha.Ballot) {
	if n.role() != ha.ServerStandby {
		return
	}
	n.stopReceiving()
	if of.Leader != "" {
		n.hangUp()
		n.server.conns = [maxNodes]*downstreamConn{}
		n.server.following, n.server.upstream = of.Term, indexOf(of.Leader)
		n.reconnect()
	}
}

// stopReceiving ends the stream; what has been received is replayed after a while.
func (n *node) stopReceiving() {
	s := n.server
	if s.conn != nil || s.following != 0 {
		s.replaysIn(n.w.now, n.w.between(5*ms, 250*ms))
	}
	s.conn, s.following = nil, 0
}

// reconnect opens the stream when there is none.
func (n *node) reconnect() {
	s := n.server
	if n.role() != ha.ServerStandby || s.following == 0 || s.conn == nil && s.unreplayed(n.w.now) > ha.ReplaySoon {
		return // it asks for more when it has replayed what it has
	}
	if s.conn != nil && n.clock()-s.conn.last > streamLimit {
		s.conn = nil
	}
	if s.conn != nil {
		return
	}
	n.w.ids++
	c := &upstreamConn{id: n.w.ids, term: s.following, leader: s.upstream, last: n.clock()}
	s.conn = c
	from, voter, index := len(n.disk.wal), n.disk.mem.Voter, n.index
	closed := func() { n.disconnect(c.id) }
	n.ask(c.leader, func(p *node, reply func(func())) {
		if !p.accepts(c.term, from) {
			reply(closed)
			return
		}
		p.server.conns[index] = &downstreamConn{id: c.id, term: c.term, voter: voter, sent: from, last: p.clock()}
		p.push()
	}, closed)
}

// accepts says whether the instance can send WAL from somewhere on to one that follows the leader of a term: as its
// primary, or while it is being promoted to that.
func (n *node) accepts(term uint64, from int) bool {
	l := n.lead()
	sends := l != nil && l.term == term || l == nil && elected(n, term)
	return !n.refuses() && sends && from <= len(n.disk.wal) && from >= n.disk.oldest
}

// elected says that the instance has won a term, and its server is a standby still.
func elected(n *node, term uint64) bool {
	return n.role() == ha.ServerStandby && n.leads() && n.disk.mem.Won == term
}

// keepOnly ends the streams to those who follow the leader of another term. PostgreSQL sends them on; what they have
// counts for nobody there, and they take it for WAL of the term before: it is taken back later.
func (s *server) keepOnly(term uint64) {
	for i, c := range s.conns {
		if c != nil && c.term != term {
			s.conns[i] = nil
		}
	}
}

// refuses says that the server takes no replication, though its agent answers.
func (n *node) refuses() bool { return n.w.now < n.deafUntil }

// disconnect ends a stream; what has been received is replayed after a while.
func (n *node) disconnect(id uint64) {
	if c := n.conn(); c != nil && c.id == id {
		n.server.conn = nil
		n.server.replaysIn(n.w.now, n.w.between(5*ms, 250*ms))
	}
}

// hangUp tells the standbys of a primary that stops, as the kernel does.
func (n *node) hangUp() {
	if n.server == nil {
		return
	}
	for i, c := range n.server.conns {
		if c != nil {
			id, p := c.id, n.w.nodes[i]
			n.w.sendInOrder(n.index, i, func() { p.disconnect(id) })
		}
	}
}

// push sends every standby what it lacks, or a sign of life.
func (n *node) push() {
	s := n.server
	for i, c := range s.conns {
		if c == nil {
			continue
		}
		if n.clock()-c.last > 2*time.Second {
			s.conns[i] = nil
			continue
		}
		id, from, before, p := c.id, c.sent, sumAt(n.disk.wal, c.sent), n.w.nodes[i]
		entries := n.disk.wal[from:len(n.disk.wal):len(n.disk.wal)]
		c.sent = len(n.disk.wal)
		n.w.sendInOrder(n.index, i, func() { p.receive(id, from, before, entries) })
	}
}

// receive makes WAL durable on a standby and says so. A volume that stalls takes nothing.
func (n *node) receive(id uint64, from int, before uint64, entries []entry) {
	c := n.conn()
	if c == nil || c.id != id || n.role() != ha.ServerStandby {
		return
	}
	if n.disk.stalledUntil > n.w.now {
		n.w.after(n.disk.stalledUntil-n.w.now, func() { n.receive(id, from, before, entries) })
		return
	}
	if from != len(n.disk.wal) {
		n.disconnect(id)
		return
	}
	if sumAt(n.disk.wal, from) != before {
		n.w.fail("a follower's WAL is the beginning of its leader's", "%s at %d, following %s in term %d",
			n.name, from, nameOf(c.leader), c.term)
		return
	}
	n.disk.wal = append(n.disk.wal, entries...)
	if len(entries) > 0 {
		n.checkTermHistory()
	}
	began := !c.live
	c.last, c.live = n.clock(), true
	end, leader, index := len(n.disk.wal), n.w.nodes[c.leader], n.index
	n.w.sendInOrder(n.index, c.leader, func() { leader.acknowledged(index, id, end) })
	if began {
		n.seeServer()
	}
}

// acknowledged notes how far a standby is.
func (n *node) acknowledged(index int, id uint64, end int) {
	if n.server == nil || n.server.conns[index] == nil || n.server.conns[index].id != id {
		return
	}
	c := n.server.conns[index]
	c.acked, c.last = max(c.acked, end), n.clock()
	n.commit()
}

// commit tells the clients of the commits that meet the rule.
func (n *node) commit() {
	l := n.lead()
	if l == nil {
		return
	}
	l.proven = max(l.proven, n.committed())
	for i := l.acked; i < l.proven; i++ {
		n.w.check.acknowledge(n, i)
		l.acked = i + 1
	}
}

// committed is how far the WAL meets the rule. What a volume that stalls does not take is not committed.
func (n *node) committed() int {
	l, rule := n.lead(), n.server.rule
	if n.disk.stalledUntil > n.w.now {
		return l.acked
	}
	if rule.Count == 0 {
		return len(n.disk.wal)
	}
	var ends [maxNodes]int
	count := 0
	for _, c := range n.server.conns {
		if c != nil && (hasVoter(rule.From, c.voter) || n.w.breaks(StrangersCount)) {
			ends[count] = c.acked
			count++
		}
	}
	if count < rule.Count {
		return 0
	}
	sortDown(ends[:count])
	return ends[rule.Count-1]
}

func hasVoter(all []ha.Voter, v ha.Voter) bool {
	for _, o := range all {
		if o == v {
			return true
		}
	}
	return false
}

func sortDown(a []int) {
	for i := range a {
		for j := i; j > 0 && a[j] > a[j-1]; j-- {
			a[j], a[j-1] = a[j-1], a[j]
		}
	}
}

// keepAlive is done at every tick: PostgreSQL does it without the agent.
func (n *node) keepAlive() {
	if n.server != nil {
		n.push()
	}
	if c := n.conn(); c != nil && n.clock()-c.last > streamLimit {
		n.disconnect(c.id)
	}
	n.reconnectStandby()
}

func (n *node) reconnectStandby() {
	if n.server != nil {
		n.reconnect()
	}
}
