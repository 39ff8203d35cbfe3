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
	id          uint64
	voter       ha.Voter
	sent, acked int
	last        time.Duration
}

// streaming says whether a standby receives WAL now.
func (n *node) streaming() bool {
	return n.server == ha.ServerStandby && n.conn != nil && n.conn.live && n.clock()-n.conn.last < streamLimit
}

// follow makes the instance a standby of the leader of its ballot: lineage first, then WAL.
func (n *node) follow(d ha.Decision, leader ha.Peer) {
	if n.server == ha.ServerPrimary {
		n.stopServer()
	}
	n.startStandby()
	if n.following != d.Ballot.Term {
		if !leader.Leading || leader.Ballot.Term != d.Ballot.Term {
			return
		}
		n.stopReceiving()
		if !n.w.breaks(LineageNotStored) {
			m := n.mem
			m.Lineage = leader.Lineage
			n.store(m)
		}
		n.following, n.upstream = d.Ballot.Term, indexOf(d.Target)
	}
	n.reconnect()
}

// reconnect opens the stream when there is none.
func (n *node) reconnect() {
	if n.conn != nil && n.clock()-n.conn.last > streamLimit {
		n.conn = nil
	}
	if n.conn != nil || n.following == 0 || n.server != ha.ServerStandby {
		return
	}
	n.w.ids++
	c := &upstreamConn{id: n.w.ids, term: n.following, leader: n.upstream, last: n.clock()}
	n.conn = c
	from, voter, index := len(n.wal), n.mem.Voter, n.index
	closed := func() { n.disconnect(c.id) }
	n.ask(c.leader, func(p *node, reply func(func())) {
		if !p.accepts(c.term, from) {
			reply(closed)
			return
		}
		p.lead.conns[index] = &downstreamConn{id: c.id, voter: voter, sent: from, last: p.clock()}
		p.push()
	}, closed)
}

// accepts says whether the instance can send WAL of a term from somewhere on.
func (n *node) accepts(term uint64, from int) bool {
	return !n.refuses() && n.server == ha.ServerPrimary && n.lead != nil && n.lead.term == term && from <= len(n.wal) && from >= n.oldest
}

// refuses says that the server takes no replication, though its agent answers.
func (n *node) refuses() bool { return n.w.now < n.deafUntil }

// disconnect ends a stream; what has been received is replayed after a while.
func (n *node) disconnect(id uint64) {
	if n.conn != nil && n.conn.id == id {
		n.conn = nil
		n.knownAt = n.w.now + n.w.between(5*ms, 250*ms)
	}
}

// hangUp tells the standbys of a primary that stops, as the kernel does.
func (n *node) hangUp() {
	if n.lead == nil {
		return
	}
	for i, c := range n.lead.conns {
		if c != nil {
			id, p := c.id, n.w.nodes[i]
			n.w.sendInOrder(n.index, i, func() { p.disconnect(id) })
		}
	}
}

// push sends every standby what it lacks, or a sign of life.
func (n *node) push() {
	for i, c := range n.lead.conns {
		if c == nil {
			continue
		}
		if n.clock()-c.last > 2*time.Second {
			n.lead.conns[i] = nil
			continue
		}
		id, from, before, p := c.id, c.sent, sumAt(n.wal, c.sent), n.w.nodes[i]
		entries := n.wal[from:len(n.wal):len(n.wal)]
		c.sent = len(n.wal)
		n.w.sendInOrder(n.index, i, func() { p.receive(id, from, before, entries) })
	}
}

// receive makes WAL durable on a standby and says so.
func (n *node) receive(id uint64, from int, before uint64, entries []entry) {
	if n.conn == nil || n.conn.id != id || n.server != ha.ServerStandby {
		return
	}
	if from != len(n.wal) {
		n.disconnect(id)
		return
	}
	if sumAt(n.wal, from) != before {
		n.w.fail("a follower's WAL is the beginning of its leader's", "%s at %d, following %s in term %d", n.name, from, nameOf(n.conn.leader), n.conn.term)
		return
	}
	n.wal = append(n.wal, entries...)
	if len(entries) > 0 {
		n.checkLineage()
	}
	n.conn.last, n.conn.live = n.clock(), true
	end, leader, index := len(n.wal), n.w.nodes[n.conn.leader], n.index
	n.w.sendInOrder(n.index, n.conn.leader, func() { leader.acknowledged(index, id, end) })
}

// acknowledged notes how far a standby is.
func (n *node) acknowledged(index int, id uint64, end int) {
	if n.lead == nil || n.lead.conns[index] == nil || n.lead.conns[index].id != id {
		return
	}
	c := n.lead.conns[index]
	c.acked, c.last = max(c.acked, end), n.clock()
	n.commit()
}

// commit tells the clients of the commits that meet the rule.
func (n *node) commit() {
	l := n.lead
	for i := l.acked; i < n.committed(); i++ {
		n.w.acknowledge(n, i)
		l.acked = i + 1
	}
}

// committed is how far the WAL meets the rule.
func (n *node) committed() int {
	l := n.lead
	if l.rule.Count == 0 {
		return len(n.wal)
	}
	var ends [maxNodes]int
	count := 0
	for _, c := range l.conns {
		if c != nil && (hasVoter(l.rule.From, c.voter) || n.w.breaks(StrangersCount)) {
			ends[count] = c.acked
			count++
		}
	}
	if count < l.rule.Count {
		return 0
	}
	sortDown(ends[:count])
	return ends[l.rule.Count-1]
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

// keepAlive is done at every tick.
func (n *node) keepAlive() {
	if n.server == ha.ServerPrimary && n.lead != nil {
		n.push()
	}
	if n.conn != nil && n.clock()-n.conn.last > streamLimit {
		n.disconnect(n.conn.id)
	}
}
