package simulation

import (
	"time"

	"toban.dev/internal/ha"
)

// phase is how far a change of the quorum is.
type phase int

const (
	settled   phase = iota
	barrier         // waits until all of the WAL meets the rule of both
	joint           // the record of both is being accepted
	spreading       // the record of the next alone is being spread
)

// leadership is what a primary knows while it is one.
type leadership struct {
	term     uint64
	rule     ha.Rule
	acked    int
	conns    [maxNodes]*downstreamConn
	gone     [maxNodes]time.Duration
	closing  bool
	strong   bool // the quorum in force promises durability
	phase    phase
	barrier  int
	planned  time.Duration
	next     *ha.Quorum
	accepted map[ha.Voter]bool
	witness  bool
}

// takeLead begins to lead a term, or goes on in a later one.
func (n *node) takeLead(term uint64) {
	l := &leadership{term: term, acked: len(n.wal), strong: strong(n.mem.Record.Now)}
	if n.lead != nil {
		l.acked = n.lead.acked
		n.hangUp()
	}
	for i := range l.gone {
		l.gone[i] = n.clock()
	}
	n.lead = l
	l.rule = ha.CommitRule(n.mem.Record, n.mem.Voter)
	n.log("LEADS term %d at %d, rule %s", term, len(n.wal), l.rule)
	n.w.checkLeader(n)
	n.w.begun(n)
	n.write()
	n.commit()
	n.later(n.w.between(50*ms, 300*ms), func() { n.load(l) })
}

// load is the clients' writes.
func (n *node) load(l *leadership) {
	if n.lead != l || l.closing {
		return
	}
	n.write()
	n.commit()
	n.push()
	n.later(n.w.between(100*ms, 400*ms), func() { n.load(l) })
}

// manage is a leader's care for the quorum.
func (n *node) manage() {
	l := n.lead
	if !n.serves(l.term) || l.closing {
		return
	}
	n.trackStandbys()
	switch l.phase {
	case settled:
		n.plan()
	case barrier:
		switch {
		case l.next.Acknowledgements == 1 || n.committed() >= l.barrier || n.w.breaks(NoBarrier):
			r := n.mem.Record
			n.propose(ha.Record{Term: l.term, Version: r.Version + 1, Now: r.Now, Next: l.next}, joint)
		case n.clock()-l.planned > 3*time.Second:
			l.phase, l.rule = settled, ha.CommitRule(n.mem.Record, n.mem.Voter)
		}
	case joint, spreading:
		n.offer()
	}
}

// trackStandbys notes who streams and has caught up.
func (n *node) trackStandbys() {
	for i, c := range n.lead.conns {
		if c != nil && n.clock()-c.last < streamLimit && c.acked+3 >= len(n.wal) {
			n.lead.gone[i] = n.clock()
		}
	}
}

// plan begins a change of the quorum, if there is one to make.
func (n *node) plan() {
	l, r := n.lead, n.mem.Record
	if r.Next != nil {
		n.propose(ha.Record{Term: l.term, Version: r.Version + 1, Now: r.Now, Next: r.Next}, joint)
		return
	}
	next, reason := ha.PlanQuorum(n.electorate())
	if next == nil {
		return
	}
	n.log("plans %v/%d: %s", next.Voters, next.Acknowledgements, reason)
	l.rule = ha.CommitRule(ha.Record{Term: l.term, Version: r.Version + 1, Now: r.Now, Next: next}, n.mem.Voter)
	if n.w.breaks(RuleTooEarly) {
		l.rule = ha.CommitRule(ha.Record{Term: l.term, Version: 1, Now: *next}, n.mem.Voter)
	}
	if n.w.breaks(ShrinkUnrecorded) {
		n.settle(ha.Record{Term: l.term, Version: r.Version + 1, Now: *next})
		return
	}
	n.write()
	l.phase, l.barrier, l.next, l.planned = barrier, len(n.wal), next, n.clock()
	n.push()
}

func (n *node) electorate() ha.Electorate {
	l := n.lead
	e := ha.Electorate{Self: n.mem.Voter, Members: n.config.members, Async: n.config.async, Witness: witnessID,
		WitnessReachable: n.witness.ok && n.clock()-n.witness.at < witnessLimit, Now: n.mem.Record.Now, Standbys: map[string]ha.Standby{}}
	for i, c := range l.conns {
		if i == n.index {
			continue
		}
		s := ha.Standby{Gone: n.clock() - l.gone[i], Voter: n.heard[i].voter}
		if c != nil {
			s.Voter, s.Streaming = c.voter, n.clock() == l.gone[i]
		}
		e.Standbys[nameOf(i)] = s
	}
	return e
}

// propose makes a record durable here and sends it to all it is about.
func (n *node) propose(r ha.Record, p phase) {
	l := n.lead
	m := n.mem
	m.Record = r
	n.store(m)
	n.w.check.changes++
	if !n.w.breaks(RuleTooEarly) || p == spreading {
		l.rule = ha.CommitRule(r, n.mem.Voter)
	}
	l.strong = strong(r.Now)
	l.phase, l.accepted, l.witness = p, map[ha.Voter]bool{n.mem.Voter: true}, false
	n.log("proposes record %d.%d: %v next %v, rule %s", r.Term, r.Version, r.Now, r.Next, l.rule)
	n.commit()
	n.offer()
}

// offer sends the record to those that have not accepted it.
func (n *node) offer() {
	l, r := n.lead, n.mem.Record
	for _, v := range r.Voters() {
		if !l.accepted[v] {
			n.offerTo(l, r, v)
		}
	}
	if r.Witnesses(witnessID) && !l.witness {
		n.offerWitness(l, r)
	}
	n.proceed(l, r)
}

func (n *node) offerTo(l *leadership, r ha.Record, v ha.Voter) {
	n.ask(indexOf(v.Instance()), func(p *node, reply func(func())) {
		if p.mem.Voter != v || p.busy() {
			return
		}
		m, answer := ha.Accept(p.mem, n.name, r)
		if answer.Accepted {
			p.store(m)
		}
		reply(func() {
			n.highest = max(n.highest, answer.Ballot.Term)
			l.accepted[v] = l.accepted[v] || answer.Accepted && same(r, n.mem.Record)
			n.proceed(l, r)
		})
	}, nil)
}

func same(a, b ha.Record) bool { return a.Term == b.Term && a.Version == b.Version }

// proceed goes on to the next alone once both have accepted both.
func (n *node) proceed(l *leadership, r ha.Record) {
	if n.lead != l || !n.serves(l.term) || !same(r, n.mem.Record) || !r.Elects(l.accepted, l.witness) {
		return
	}
	switch l.phase {
	case joint:
		n.settle(ha.Record{Term: l.term, Version: r.Version + 1, Now: *r.Next})
	case spreading:
		l.phase = settled
	}
}

// settle puts the next quorum in force.
func (n *node) settle(r ha.Record) {
	n.w.inForce(n, r)
	n.propose(r, spreading)
}
