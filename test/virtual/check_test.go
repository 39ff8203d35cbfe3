package virtual

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"toban.dev/internal/ha"
	"toban.dev/internal/protocol"
)

// checker is what somebody remembers who sees everything. The world's mutex guards it.
type checker struct {
	w       *world
	winners map[uint64]*win
	// commits are those that clients were told of, or have read, in their order.
	commits []*seen
	known   map[uint64]bool
	lastAck time.Time
	// reads is how often somebody read at a primary, acks how many commits were acknowledged.
	reads, acks int
}

// win is a term with its winner, and the WAL that it began with.
type win struct {
	term uint64
	name string
	wal  []record
}

// seen is a commit, and how it was seen. When it is kept it must not be lost: leaders of its term
// and of later ones have it.
type seen struct {
	index int
	id    uint64
	term  uint64
	how   string
	kept  bool
}

// The limits of docs/ha.md and docs/durability.md: for how long a primary may let anybody read that reaches neither a
// majority nor the API, and for how long two may acknowledge in async.
const (
	fenceLimit = 2 * time.Second
	asyncLimit = 3 * time.Second
)

// strong says whether a quorum promises durability.
func strong(q ha.Quorum) bool { return q.Acknowledgements > len(q.Voters)/2 }

func (c *checker) must(err error) {
	if err != nil {
		panic(fmt.Sprintf("seed %d: %v", c.w.seed, err))
	}
}

// leads checks a primary that begins: nobody else has won its term, and it has all that was
// acknowledged or read before.
func (c *checker) leads(p *process) {
	name, d := p.s.name, p.s.disk
	c.w.log(name, "LEADS term %d at %d on %v, came back: %v", p.term, len(d.wal), d.history, p.cameBack)
	if r := p.s.hardState.Configuration; !strong(r.Now) {
		c.inForce(p.s.host, r) // it may have got on disk though the agent was told that it had not
	}
	if before := c.winners[p.term]; before == nil {
		c.winners[p.term] = &win{p.term, name, d.wal[:len(d.wal):len(d.wal)]}
	} else if before.name != name {
		c.w.fail("a term is won once", "term %d by %s and %s", p.term, before.name, name)
	}
	c.complete(p)
}

// complete checks that a leader has all that was acknowledged or read.
func (c *checker) complete(p *process) {
	d := p.s.disk
	for _, k := range c.commits {
		if k.kept && k.term <= p.term && !d.has(k.index, k.id) {
			c.w.fail("nothing that was "+k.how+" is lost", "%s leads term %d with %d, but lacks %d of term %d",
				p.s.name, p.term, len(d.wal), k.index, k.term)
			return
		}
	}
}

// inForce notes that a quorum is in force, and with it what is promised of the commits that were seen so far.
func (c *checker) inForce(h *host, r ha.Configuration) {
	for _, k := range c.commits {
		has := h.disk.has(k.index, k.id)
		if strong(r.Now) && !k.kept && has {
			k.term = r.Term
		}
		k.kept = strong(r.Now) && (k.kept || has)
	}
}

// keep notes a commit that was seen. While the quorum promises durability it must not be lost, and
// all later winners have it.
func (c *checker) keep(p *process, index int, how string) {
	id := p.s.disk.wal[index].id
	if c.known == nil {
		c.known = map[uint64]bool{}
	}
	if c.known[id] {
		return
	}
	c.known[id] = true
	k := &seen{index, id, p.term, how, strong(p.s.hardState.Configuration.Now)}
	c.commits = append(c.commits, k)
	if !k.kept {
		return
	}
	for _, w := range c.winners {
		if w.term > p.term && (index >= len(w.wal) || w.wal[index].id != id) {
			c.w.fail("nothing that was "+how+" is lost", "%d of term %d at %s, but %s won %d without it",
				index, p.term, p.s.name, w.name, w.term)
		}
	}
}

// acknowledged notes that a client was told of a commit.
func (c *checker) acknowledged(p *process, index int, id uint64) {
	if !p.s.disk.has(index, id) || p.recovery {
		c.w.fail("only a primary acknowledges", "%s, %d", p.s.name, index)
		return
	}
	c.acks++
	c.lastAck = time.Now()
	c.keep(p, index, "acknowledged")
	if p.firstAck.IsZero() {
		p.firstAck = time.Now()
	}
	if !strong(p.s.hardState.Configuration.Now) && time.Since(p.firstAck) < asyncLimit {
		return
	}
	for _, h := range c.w.hosts() {
		if o := h.server.process; o != nil && o != p && o.open() && o.term < p.term {
			c.overtaken(o, p)
		}
	}
}

// overtaken is what must not be: somebody may still read at one primary what another has overtaken; in async also after
// a while. Excepted is one that has the read lease while who preempts it can't rely on the API.
func (c *checker) overtaken(o, by *process) {
	if c.w.api.holds(o.term) && c.w.api.hasTrouble(by.s.name) {
		return
	}
	c.w.fail("no stale reads", "%s still serves in term %d, %s acknowledges in %d",
		o.s.name, o.term, by.s.name, by.term)
}

// read is what a client does at a primary. What it sees at one that has just been elected, before the first
// acknowledged commit there, is not promised.
func (c *checker) read(p *process) {
	visible := p.acked
	if p.cameBack {
		visible = max(visible, p.began)
	}
	c.reads++
	if visible == 0 || visible > len(p.s.disk.wal) {
		return
	}
	if p.cameBack && p.acked == 0 && strong(p.s.hardState.Configuration.Now) {
		c.proven(p)
	}
	c.keep(p, visible-1, "read")
}

// proven checks that what a leader that comes back shows is where the quorum looks for it.
func (c *checker) proven(p *process) {
	record := p.s.agent.Status().Election.Configuration.Now
	disks, last := 0, p.began-1
	for _, i := range c.w.instances {
		d := i.disk
		if i.host != nil {
			d = i.host.disk
		}
		if d.data && d.has(last, p.s.disk.wal[last].id) {
			disks++
		}
	}
	if disks < record.Acknowledgements {
		c.w.fail("a leader that comes back shows what is proven",
			"%s opens in term %d with %d, which is on %d disks of %d",
			p.s.name, p.term, p.began, disks, record.Acknowledgements)
	}
}

// discards checks that what an instance gives up for a copy is on as many other disks as is promised.
func (c *checker) discards(h *host) {
	record := c.newestRecord()
	need := record.Now.Acknowledgements
	if m := h.agent.Status().Election; !record.Has(m.Voter) || h.disk.incomplete {
		return // nobody counts on it; or a rewind was cut short, and it can't be used any more
	}
	for _, k := range c.commits {
		if !k.kept || !h.disk.has(k.index, k.id) {
			continue
		}
		have := 0
		for _, i := range c.w.instances {
			d := i.disk
			if i.host != nil {
				d = i.host.disk
			}
			if i != h.instance && d.data && !d.incomplete && d.has(k.index, k.id) {
				have++
			}
		}
		if have < need {
			c.w.fail("data that others need is not given up",
				"%s gives up %d, which is on %d other disks", h.name, k.index, have)
			return
		}
	}
}

// newestRecord is the newest configuration of the quorum that anybody knows.
func (c *checker) newestRecord() ha.Configuration {
	var newest ha.Configuration
	for _, i := range c.w.instances {
		if r := i.hardState.Configuration; i.exists && r.Newer(newest) {
			newest = r
		}
	}
	return newest
}

// remembers checks that nothing in a hard state goes back. Another voter of the instance has won nothing.
func (c *checker) remembers(h *host, content []byte) {
	var is ha.HardState
	c.must(json.Unmarshal(content, &is))
	was := h.hardState
	h.hardState, h.remembered = is, time.Now()
	if r := is.Configuration; was.Configuration.Next != nil && r.Next == nil && r.Term == is.Won &&
		is.Ballot.Leader == h.name {
		c.inForce(h, r)
	}
	if p := h.server.process; p != nil && p.ready && !p.recovery && is.Won > was.Won {
		p.term = is.Won // it alone has a vote, and its server goes on
		c.winners[p.term] = &win{p.term, h.name, p.s.disk.wal[:len(p.s.disk.wal):len(p.s.disk.wal)]}
	}
	forgets := is.Voter == was.Voter && is.Won < was.Won
	if is.Ballot.Term < was.Ballot.Term || forgets || was.Configuration.Newer(is.Configuration) {
		c.w.fail("nothing in a hard state goes back", "%s: %s, before %+v", h.name, content, was)
	}
}

// isolation checks that no primary goes on that reaches neither a majority of the instances nor the API.
func (c *checker) isolation(i *instance) {
	h := i.host
	if h == nil || h.agent == nil || c.reaches(i) {
		i.lastContact = time.Now()
		return
	}
	p := h.server.process
	without := time.Since(i.lastContact)
	if p != nil && p.open() && without > fenceLimit+c.w.slackLeft() {
		c.w.fail("an isolated primary stops", "%s is open in term %d, without contact for %s", i.name, p.term, without)
	}
}

// reaches says that an instance reaches a majority of those that it has on record, or the API.
func (c *checker) reaches(i *instance) bool {
	if c.w.net.hear(i.name, "api") {
		return true
	}
	quorum, count := i.hardState.Configuration.Now, 0
	for _, o := range c.w.instances {
		there := o == i || o.host != nil && c.w.net.hear(i.name, o.name)
		if there && slices.ContainsFunc(quorum.Voters, func(v ha.Voter) bool { return v.Instance() == o.name }) {
			count++
		}
	}
	all := len(quorum.Voters)
	if quorum.Witness != "" {
		all++
	}
	return count > all/2
}

// work is the clients: they write and read at whoever lets them.
func (w *world) work() {
	for pause(w.ctx, 100*time.Millisecond) == nil {
		w.mutex.Lock()
		for _, h := range w.hosts() {
			p := h.server.process
			if p == nil || !p.open() || time.Now().Before(p.hangs) {
				continue
			}
			w.check.read(p)
			w.clients.Go(func() {
				ctx, cancel := context.WithTimeout(w.ctx, 5*time.Second)
				defer cancel()
				_ = p.commit(ctx) // what is not acknowledged may be there or not
			})
		}
		w.mutex.Unlock()
	}
}

// watch looks at the cluster all the time.
func (w *world) watch() {
	for pause(w.ctx, 50*time.Millisecond) == nil {
		w.mutex.Lock()
		for _, i := range w.instances {
			w.check.isolation(i)
		}
		w.mutex.Unlock()
	}
}

// primary is the server that has the highest term of those that let clients in, nil for none. It
// is called with the mutex.
func (w *world) primary() *process {
	var best *process
	for _, h := range w.hosts() {
		if p := h.server.process; p != nil && p.open() && (best == nil || p.term > best.term) {
			best = p
		}
	}
	return best
}

// whole says whether the cluster is as it should be: one primary, which all others stream from, and
// writes are acknowledged.
func (w *world) whole() bool {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	p := w.primary()
	if p == nil || time.Since(w.check.lastAck) > time.Second {
		return false
	}
	for _, i := range w.instances {
		if !i.exists && !w.isMember(i.name) {
			continue
		}
		if !w.isMember(i.name) || i.host == nil || i.host.server.process == nil {
			return false
		}
		o := i.host.server.process
		if o != p && (o.open() || !o.streams || o.conf.Upstream == nil || o.conf.Upstream.Term != p.term) {
			return false
		}
	}
	return w.settled(p.s.hardState.Configuration)
}

// settled says that the quorum on record is that of the config. It is called with the world's mutex.
func (w *world) settled(r ha.Configuration) bool {
	count, async := len(w.config.Members), w.config.Durability == protocol.DurabilityAsync
	return r.Next == nil && len(r.Now.Voters) == count && strong(r.Now) == (!async || count == 1)
}

// eventually waits until something is so, or an invariant does not hold.
func (w *world) eventually(what string, within time.Duration, is func() bool) {
	w.Helper()
	for begun := time.Now(); !is(); {
		if w.failed() {
			return
		}
		if time.Since(begun) > within {
			w.mutex.Lock()
			w.dump()
			w.fail("it comes to this in time", "%s, not within %s", what, within)
			w.mutex.Unlock()
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// dump logs how all are. It is called with the world's mutex.
func (w *world) dump() {
	for _, i := range w.instances {
		if i.host == nil || i.host.agent == nil {
			w.log(i.name, "is down, is a member: %v", w.isMember(i.name))
			continue
		}
		h := i.host
		s := h.agent.Status()
		w.log(i.name, "is %s %s/%s in term %d of %s, WAL %d, voters %v: %s",
			s.Data, s.Role, s.Reason, s.Term, s.Leader, len(h.disk.wal), s.Voters, s.Message)
		if p := h.server.process; p != nil {
			w.log(i.name, "its server: ended %v, open %v, recovery %v, streams %v, upstream %v, rule %q",
				p.isEnded(), p.open(), p.recovery, p.streams, p.conf.Upstream, p.conf.Synchronous)
		}
	}
}
