package machine

import (
	"maps"
	"slices"
	"time"

	"toban.dev/internal/ha"
)

// How often a configuration is offered to one that has not accepted it, and how long a change
// that failed is left alone.
const (
	offerInterval = 250 * time.Millisecond
	changeRest    = 250 * time.Millisecond
)

// quorum is a leader's work on the quorum: it says whose acknowledgement counts, and sees to it that it is known.
type quorum struct {
	term uint64
	// accepted is the newest configuration that each voter, and "" for the witness, has accepted; offered
	// when it was offered last.
	accepted map[ha.Voter]ha.Configuration
	offered  map[ha.Voter]time.Duration
	look     map[uint64]ha.Configuration
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
	return i.ruleOf(i.hardState.Configuration)
}

// ruleOf is what this instance demands as a primary under a configuration: of those that follow it in its own term.
func (i *Instance) ruleOf(c ha.Configuration) ha.Rule {
	rule := i.rules.CommitRule(c, i.hardState.Voter)
	rule.Term = i.hardState.Won
	return rule
}

// maintainQuorum does the next step of a leader: what is on record is told to all; a change that has begun is finished;
// a change that is due begins.
func (i *Instance) maintainQuorum() {
	m := i.hardState
	if i.server.role != ha.ServerPrimary || !i.Leads() || i.server.stopping || i.fence != nil ||
		i.command != nil && i.command.Kind != Checkpoint {
		return
	}
	if i.quorum.term != m.Won {
		i.quorum = quorum{term: m.Won, accepted: map[ha.Voter]ha.Configuration{}, offered: map[ha.Voter]time.Duration{},
			look: map[uint64]ha.Configuration{}, gone: map[string]time.Duration{}, rests: i.now}
	}
	i.quorum.accepted[m.Voter] = m.Configuration
	i.proposeConfiguration()
	electorate := i.electorate()
	switch {
	case i.quorum.tighter != nil || i.server.demanded != 0 && !i.server.proving: // it is being prepared
	case m.Configuration.Next != nil:
		if m.Configuration.Elects(i.having()) {
			i.finishChange()
		}
	case i.now >= i.quorum.rests:
		if next, reason := i.rules.PlanQuorum(electorate); next != nil {
			i.beginChange(*next, reason)
		}
	}
}

// beginChange demands what both quorums demand, makes sure that all that was acknowledged before is where both would
// look for it, and only then puts the change on record. That may take a while, after which the leader must still hear
// a majority of the next quorum.
func (i *Instance) beginChange(next ha.Quorum, reason string) {
	m := i.hardState
	i.log("changes the quorum", "from", m.Configuration.Now.String(), "to", next.String(), "acknowledgements",
		next.Acknowledgements, "reason", reason)
	joint := ha.Configuration{Term: m.Won, Version: m.Configuration.Version + 1, Now: m.Configuration.Now, Next: &next}
	before, rule := i.rule(), i.ruleOf(joint)
	i.quorum.tighter = &rule
	// Where commits have not waited at all, they first wait for nobody, until that is seen to work.
	i.demand(rule, before.Count == 0 && rule.Count > 0, next.Acknowledgements > 1, func(failed string) {
		if failed != "" {
			i.putOffChange(failed)
			return
		}
		if !i.rules.KeepsMajority(i.electorate(), next) {
			i.putOffChange("too few voters of the next quorum have answered lately")
			return
		}
		i.adoptConfiguration(joint)
	})
}

// putOffChange goes back to what is on record, and leaves the change alone for a while.
func (i *Instance) putOffChange(why string) {
	i.log("the quorum is not changed yet", "error", why)
	i.quorum.tighter, i.quorum.rests = nil, i.now+changeRest
	i.demand(i.rule(), false, false, nil)
}

// adoptConfiguration makes a configuration of this term durable here. Its rule holds already, or is
// less than the one that does.
func (i *Instance) adoptConfiguration(r ha.Configuration) {
	if !i.Leads() || i.hardState.Won != r.Term {
		return
	}
	m := i.hardState
	m.Configuration = r
	i.store(m, func() {
		i.quorum.tighter = nil
		if r.Next == nil {
			i.log("the quorum has changed", "voters", r.Now.String(), "acknowledgements", r.Now.Acknowledgements)
		}
		i.demand(i.rule(), false, false, nil)
	})
	i.storing.failed = i.putOffChange
}

// finishChange: both quorums know of the change, so the next one is in force.
func (i *Instance) finishChange() {
	r := i.hardState.Configuration
	i.adoptConfiguration(ha.Configuration{Term: i.hardState.Won, Version: r.Version + 1, Now: *r.Next})
}

// proposeConfiguration offers the configuration to those who have not accepted it. The witness, "", is told even where
// it has no vote: people look there.
func (i *Instance) proposeConfiguration() {
	for _, name := range i.Peers() {
		h := i.news.peer(name)
		if h == nil {
			continue
		}
		patience := i.slack.proposalPatience(h.said.Limits.Slack)
		if !i.proposesTo(h.said.Peer.Voter, patience/4) {
			continue
		}
		i.emit(Propose{
			Proposal{Leader: i.name, Voter: h.said.Peer.Voter, Configuration: i.hardState.Configuration},
			patience,
		})
	}
	if i.config.API && i.proposesTo("", offerInterval) {
		record := i.hardState.Configuration
		witness := ha.Voter("")
		if record.Witnesses(i.config.Witness) {
			witness = ha.Voter(i.config.Witness)
		}
		id := i.operate(ha.WitnessOperation{Configuration: &record, Leader: i.name, Voter: witness})
		i.quorum.look[id] = record
	}
}

// proposesTo says whether a voter is to be offered the configuration now, again after a time, and notes that it is.
func (i *Instance) proposesTo(v ha.Voter, again time.Duration) bool {
	q := &i.quorum
	if !i.hardState.Configuration.Newer(q.accepted[v]) {
		return false
	}
	if at, ok := q.offered[v]; ok && i.now-at < again {
		return false
	}
	q.offered[v] = i.now
	return true
}

// configurationAnswered notes who has accepted the configuration.
func (i *Instance) configurationAnswered(e ConfigurationAnswered) {
	if e.Reply.Accepted && !i.news.forgotten[e.Voter] && i.quorum.term == e.Configuration.Term &&
		e.Configuration.Newer(i.quorum.accepted[e.Voter]) {
		i.quorum.accepted[e.Voter] = e.Configuration
		delete(i.quorum.offered, e.Voter)
	}
}

// configurationAtWitness notes that the witness has accepted it.
func (i *Instance) configurationAtWitness(e WitnessAnswered) {
	record, ok := i.quorum.look[e.ID]
	delete(i.quorum.look, e.ID)
	if ok && !e.Failed && e.Answer.Granted && record.Newer(i.quorum.accepted[""]) {
		i.quorum.accepted[""] = record
		delete(i.quorum.offered, "")
	}
}

// having are the voters that have the newest configuration, and whether the witness has.
func (i *Instance) having() (map[ha.Voter]bool, bool) {
	has := map[ha.Voter]bool{}
	for voter, record := range i.quorum.accepted {
		has[voter] = voter != "" && !i.hardState.Configuration.Newer(record)
	}
	record, ok := i.quorum.accepted[""]
	return has, ok && !i.hardState.Configuration.Newer(record)
}

// electorate is what the next quorum is decided of.
func (i *Instance) electorate() ha.Electorate {
	e := ha.Electorate{
		Self: i.hardState.Voter, Now: i.hardState.Configuration.Now, Async: i.config.Async, Members: i.config.Members,
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
		s.Age, s.Answers = i.ageOfAnswer(said.Voter)
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
