package simulation

import (
	"toban.dev/internal/ha"
)

// election is what is known of an instance's last election.
type election struct {
	asked    bool // it could ask at the API who has the read lease
	onWord   bool // it was elected on its leader's word, which may be an old one
	cameBack bool // it leads again in a term
}

// leadership is what a primary knows while it is one.
type leadership struct {
	term    uint64
	acked   int
	closing bool
	strong  bool // the quorum in force promises durability
	// began is how far the WAL went when the server began to lead: all of that is seen by readers. proven is how far
	// it has met the rule since.
	began, proven int
}

// takeLead begins to lead a term.
func (n *node) takeLead(term uint64) {
	has := len(n.disk.wal)
	l := &leadership{term: term, acked: has, strong: strong(n.disk.mem.Configuration.Now), began: has}
	n.server.lead = l
	n.server.keepOnly(term)
	n.log("LEADS term %d at %d, rule %s", term, len(n.disk.wal), n.server.rule)
	n.w.check.leads(n)
	n.w.nemesis.begun(n)
	n.write()
	n.commit()
}

// load is the clients' writes.
func (n *node) load(l *leadership) {
	if n.lead() != l || l.closing {
		return
	}
	n.write()
	n.commit()
	n.push()
	n.later(n.w.between(100*ms, 400*ms), func() { n.load(l) })
}

// caughtUp are the voters that stream and have caught up.
func (n *node) caughtUp() []ha.Voter {
	var all []ha.Voter
	for _, c := range n.server.conns {
		if c != nil && n.clock()-c.last < streamLimit && c.acked+3 >= len(n.disk.wal) {
			all = append(all, c.voter)
		}
	}
	return all
}

// configurationStored notes that another configuration is on a leader's disk. The one that follows a
// change alone is in force then.
func (n *node) configurationStored(before, now ha.Configuration) {
	n.w.check.changes++
	if now.Term != n.disk.mem.Won || !n.leads() {
		return
	}
	n.log("has the configuration %d.%d: %v next %v", now.Term, now.Version, now.Now, now.Next)
	if before.Next != nil && now.Next == nil {
		n.w.check.inForce(n, now)
	}
	l := n.lead()
	if l == nil {
		return // its server is still coming up
	}
	l.strong = strong(now.Now)
	n.commit()
}

// serves says whether the instance is the primary of a term.
func (n *node) serves(term uint64) bool {
	l := n.lead()
	return l != nil && l.term == term && n.leads() && n.disk.mem.Won == term
}
