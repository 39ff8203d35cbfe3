package machine

import (
	"maps"
	"slices"
	"time"

	"toban.dev/internal/ha"
)

// How often a record is offered to one that has not accepted it, and how long a change that failed is left alone.
const (
	offerInterval = 250 * time.Millisecond
	changeRest    = 250 * time.Millisecond
)

// quorum is a leader's work on the quorum: it says whose acknowledgement counts, and sees to it that it is known.
type quorum struct {
	term uint64
	// accepted is the newest record that each voter, and "" for the witness, has accepted; offered when it was offered last.
	accepted map[ha.Voter]ha.Record
	offered  map[ha.Voter]time.Duration
	look     map[uint64]ha.Record
	// gone is since when a member has not streamed.
	gone map[string]time.Duration
	// tighter is what commits wait for while a change is being prepared, nil while none is.
	tighter *ha.Rule
	rests   time.Duration
}

// rule is what a primary demands before it acknowledges: what is on record, or what a change that is being prepared
// demands besides.
func (i *Instance) rule() ha.Rule {
	if i.quorum.tighter != nil {
		return *i.quorum.tighter
	}
	return i.rules.CommitRule(i.memory.Record, i.memory.Voter)
}

// keepQuorum does the next step of a leader: what is on record is told to all; a change that has begun is finished; a
// change that is due begins.
func (i *Instance) keepQuorum() {
	m := i.memory
	if i.server.role != ha.ServerPrimary || !i.Leads() || i.server.stopping || i.fence != nil || i.command != nil && i.command.Kind != Checkpoint {
		return
	}
	if i.quorum.term != m.Won {
		i.quorum = quorum{term: m.Won, accepted: map[ha.Voter]ha.Record{}, offered: map[ha.Voter]time.Duration{},
			look: map[uint64]ha.Record{}, gone: map[string]time.Duration{}, rests: i.now}
	}
	i.quorum.accepted[m.Voter] = m.Record
	i.offerRecord()
	electorate := i.electorate()
	switch {
	case i.quorum.tighter != nil || i.server.demanded != 0 && !i.server.proving: // it is being prepared
	case m.Record.Next != nil:
		if m.Record.Elects(i.having()) {
			i.finishChange()
		}
	case i.now >= i.quorum.rests:
		if next, reason := ha.PlanQuorum(electorate); next != nil {
			i.beginChange(*next, reason)
		}
	}
}

// beginChange demands what both quorums demand, makes sure that all that was acknowledged before is where both would look
// for it, and only then puts the change on record.
func (i *Instance) beginChange(next ha.Quorum, reason string) {
	m := i.memory
	i.note("changes the quorum", "from", m.Record.Now.String(), "to", next.String(), "acknowledgements", next.Acknowledgements, "reason", reason)
	joint := ha.Record{Term: m.Won, Version: m.Record.Version + 1, Now: m.Record.Now, Next: &next}
	before, rule := i.rule(), i.rules.CommitRule(joint, m.Voter)
	i.quorum.tighter = &rule
	// Where commits have not waited at all, they first wait for nobody, until that is seen to work.
	i.demand(rule, before.Count == 0 && rule.Count > 0, next.Acknowledgements > 1, func(failed string) {
		if failed != "" {
			i.putOffChange(failed)
			return
		}
		i.putOnRecord(joint)
	})
}

// putOffChange goes back to what is on record, and leaves the change alone for a while.
func (i *Instance) putOffChange(why string) {
	i.note("the quorum is not changed yet", "error", why)
	i.quorum.tighter, i.quorum.rests = nil, i.now+changeRest
	i.demand(i.rule(), false, false, nil)
}

// putOnRecord makes a record of this term durable here. Its rule holds already, or is less than the one that does.
func (i *Instance) putOnRecord(r ha.Record) {
	if !i.Leads() || i.memory.Won != r.Term {
		return
	}
	m := i.memory
	m.Record = r
	i.store(m, func() {
		i.quorum.tighter = nil
		if r.Next == nil {
			i.note("the quorum has changed", "voters", r.Now.String(), "acknowledgements", r.Now.Acknowledgements)
		}
		i.demand(i.rule(), false, false, nil)
	})
	i.storing.failed = i.putOffChange
}

// finishChange: both quorums know of the change, so the next one is in force.
func (i *Instance) finishChange() {
	r := i.memory.Record
	i.putOnRecord(ha.Record{Term: i.memory.Won, Version: r.Version + 1, Now: *r.Next})
}

// offerRecord offers the record to those who have not accepted it. The witness, "", is told even where it has no vote:
// people look there.
func (i *Instance) offerRecord() {
	for _, name := range i.Peers() {
		h := i.news.peer(name)
		if h == nil || !i.offers(h.said.Peer.Voter) {
			continue
		}
		i.emit(Propose{Proposal{Leader: i.name, Voter: h.said.Peer.Voter, Record: i.memory.Record}})
	}
	if i.config.API && i.offers("") {
		record := i.memory.Record
		witness := ha.Voter("")
		if record.Witnesses(i.config.Witness) {
			witness = ha.Voter(i.config.Witness)
		}
		id := i.operate(ha.WitnessOperation{Record: &record, Leader: i.name, Voter: witness})
		i.quorum.look[id] = record
	}
}

// offers says whether a voter is to be offered the record now, and notes that it is.
func (i *Instance) offers(v ha.Voter) bool {
	q := &i.quorum
	if !i.memory.Record.Newer(q.accepted[v]) {
		return false
	}
	if at, ok := q.offered[v]; ok && i.now-at < offerInterval {
		return false
	}
	q.offered[v] = i.now
	return true
}

// recordAnswered notes who has accepted the record.
func (i *Instance) recordAnswered(e RecordAnswered) {
	if e.Reply.Accepted && !i.news.forgotten[e.Voter] && i.quorum.term == e.Record.Term && e.Record.Newer(i.quorum.accepted[e.Voter]) {
		i.quorum.accepted[e.Voter] = e.Record
		delete(i.quorum.offered, e.Voter)
	}
}

// recordAtWitness notes that the witness has accepted it.
func (i *Instance) recordAtWitness(e WitnessAnswered) {
	record, ok := i.quorum.look[e.ID]
	delete(i.quorum.look, e.ID)
	if ok && !e.Failed && e.Answer.Granted && record.Newer(i.quorum.accepted[""]) {
		i.quorum.accepted[""] = record
		delete(i.quorum.offered, "")
	}
}

// having are the voters that have the newest record, and whether the witness has.
func (i *Instance) having() (map[ha.Voter]bool, bool) {
	has := map[ha.Voter]bool{}
	for voter, record := range i.quorum.accepted {
		has[voter] = voter != "" && !i.memory.Record.Newer(record)
	}
	record, ok := i.quorum.accepted[""]
	return has, ok && !i.memory.Record.Newer(record)
}

// electorate is what the next quorum is decided of.
func (i *Instance) electorate() ha.Electorate {
	e := ha.Electorate{
		Self: i.memory.Voter, Now: i.memory.Record.Now, Async: i.config.Async, Members: i.config.Members,
		Witness: i.config.Witness, WitnessReachable: i.config.API, Standbys: map[string]ha.Standby{},
	}
	gone, peers := i.quorum.gone, i.Peers()
	for _, name := range peers {
		h := i.news.peer(name)
		if h == nil {
			continue
		}
		said := h.said.Peer
		streams := slices.Contains(i.server.seen.Standbys, said.Voter)
		s := ha.Standby{Voter: said.Voter, Streaming: streams, Stalls: said.Stalls}
		since, known := gone[name]
		switch {
		case s.Streaming:
			delete(gone, name)
		case !known:
			gone[name] = i.now
		default:
			s.Gone = i.now - since
		}
		e.Standbys[name] = s
	}
	maps.DeleteFunc(gone, func(name string, _ time.Duration) bool { return !slices.Contains(peers, name) })
	return e
}
