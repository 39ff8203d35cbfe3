package agent

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"toban.dev/internal/ha"
	"toban.dev/internal/protocol"
)

// How often the leader looks at the quorum, and how long a change may wait for
// the standbys to have all WAL.
const (
	quorumInterval  = 250 * time.Millisecond
	barrierDeadline = 5 * time.Second
	tellPatience    = 500 * time.Millisecond
)

// keeper is the leader's work on the quorum: it says whose acknowledgement
// counts, and sees to it that it is known. Only its own actor uses it.
type keeper struct {
	// told is the newest record that each voter, and "" for the witness, has accepted.
	told map[ha.Voter]ha.Record
	// gone is since when an instance has not streamed.
	gone map[string]time.Time
	term uint64
}

// quorumLoop keeps the quorum while this instance leads.
func (a *Agent) quorumLoop(ctx context.Context) error {
	for {
		m := a.memory.Get()
		if r := a.leading.Load(); r != nil && m.Won == m.Ballot.Term {
			if err := a.keepQuorum(ctx, r); err != nil {
				a.Log.Info("the quorum is not changed yet", "error", err.Error())
			}
		}
		if !sleep(ctx, quorumInterval) {
			return nil
		}
	}
}

// keepQuorum does the next step: what is on record is told to all; a change
// that has begun is finished; a change that is due begins.
func (a *Agent) keepQuorum(ctx context.Context, r *running) error {
	k, m := &a.keeper, a.memory.Get()
	if k.term != m.Won || k.told == nil {
		*k = keeper{told: map[ha.Voter]ha.Record{}, gone: map[string]time.Time{}, term: m.Won}
	}
	if a.announceRecord(ctx, m); m.Record.Next != nil {
		if !m.Record.Elects(k.has(m), k.witnessHas(m)) {
			return nil
		}
		return a.finishChange(ctx, r, m)
	}
	next, reason := ha.PlanQuorum(a.electorate(r, m))
	if next == nil {
		return nil
	}
	return a.beginChange(ctx, r, m, *next, reason)
}

// beginChange demands what both quorums demand, makes sure that all that was
// acknowledged before is where both would look for it, and only then puts the change on record.
func (a *Agent) beginChange(ctx context.Context, r *running, m ha.Memory, next ha.Quorum, reason string) error {
	a.Log.Info("changing the quorum", "from", m.Record.Now.String(), "to", next.String(), "acknowledgements", next.Acknowledgements, "reason", reason)
	joint := ha.Record{Term: m.Won, Version: m.Record.Version + 1, Now: m.Record.Now, Next: &next}
	defer a.tighter.Store(nil)
	if err := a.demand(ctx, r, a.rule(m), ha.CommitRule(joint, m.Voter), next.Acknowledgements > 1); err != nil {
		a.tighter.Store(nil)
		return errors.Join(err, r.applyRule(ctx))
	}
	if err := a.storeRecord(joint); err != nil {
		return err
	}
	a.tighter.Store(nil)
	return a.keepQuorum(ctx, r)
}

// demand makes commits wait by a rule, and returns when all that was
// acknowledged before is where the rule asks for it, if others are to have that too.
// Where commits have not waited at all, they first wait for nobody, until that is seen to work.
func (a *Agent) demand(ctx context.Context, r *running, before, rule ha.Rule, others bool) error {
	ctx, cancel := context.WithTimeout(ctx, barrierDeadline)
	defer cancel()
	if before.Count == 0 && rule.Count > 0 {
		a.tighter.Store(&ha.Rule{Count: 1, From: []ha.Voter{ha.Nobody}})
		if err := r.applyRule(ctx); err != nil {
			return err
		}
		if err := r.server.AwaitEnforced(ctx); err != nil {
			return err
		}
	}
	a.tighter.Store(&rule)
	if err := r.applyRule(ctx); err != nil || !others {
		return err
	}
	return r.server.Barrier(ctx, rule.String())
}

// finishChange: both quorums know of the change, so the next one is in force.
func (a *Agent) finishChange(ctx context.Context, r *running, m ha.Memory) error {
	final := ha.Record{Term: m.Won, Version: m.Record.Version + 1, Now: *m.Record.Next}
	if err := a.storeRecord(final); err != nil {
		return err
	}
	a.Log.Info("the quorum has changed", "voters", final.Now.String(), "acknowledgements", final.Now.Acknowledgements)
	a.announceRecord(ctx, a.memory.Get())
	a.look()
	return r.applyRule(ctx)
}

// storeRecord makes a record durable here, unless the term has passed.
func (a *Agent) storeRecord(record ha.Record) error {
	_, err := a.memory.Change(func(m *ha.Memory) bool {
		if m.Won != record.Term || m.Ballot.Term != record.Term {
			return false
		}
		m.Record = record
		return true
	})
	return err
}

// acceptance is one voter's answer to a record.
type acceptance struct {
	voter    ha.Voter
	accepted bool
}

// announceRecord tells the record to those who do not have it yet, all at once.
// It waits for them no longer than a quorum takes, or tellPatience: who is missing is told again.
func (a *Agent) announceRecord(ctx context.Context, m ha.Memory) {
	k := &a.keeper
	k.told[m.Voter] = m.Record
	asks := a.recordRequests(ctx, m)
	answers := make(chan acceptance, len(asks))
	for _, ask := range asks {
		go func() { answers <- ask() }()
	}
	patience := time.NewTimer(tellPatience)
	defer patience.Stop()
	for range asks {
		select {
		case got := <-answers:
			if got.accepted {
				k.told[got.voter] = m.Record
			}
		case <-patience.C:
			return
		}
	}
}

// recordRequests are the requests to those who do not have the record yet. The
// witness, "", is told even where it has no vote: people look there.
func (a *Agent) recordRequests(ctx context.Context, m ha.Memory) []func() acceptance {
	var asks []func() acceptance
	proposal := protocol.Proposal{Leader: a.Name, Record: m.Record}
	for _, member := range a.constituents() {
		status, _, ok := a.peers.last(member.Name)
		proposal := proposal
		proposal.Voter = status.Election.Voter
		if ok && member.Name != a.Name && m.Record.Newer(a.keeper.told[proposal.Voter]) {
			asks = append(asks, func() acceptance {
				reply, err := a.peers.record(ctx, member, proposal)
				return acceptance{proposal.Voter, err == nil && reply.Accepted}
			})
		}
	}
	if a.Cluster != nil && m.Record.Newer(a.keeper.told[""]) {
		proposal.Voter = ha.Voter(witnessOf(m.Record))
		asks = append(asks, func() acceptance {
			within, cancel := context.WithTimeout(ctx, witnessDeadline)
			defer cancel()
			reply, err := a.witness.record(within, proposal)
			return acceptance{"", err == nil && reply.Accepted}
		})
	}
	return asks
}

// has are the voters that have the newest record.
func (k *keeper) has(m ha.Memory) map[ha.Voter]bool {
	has := map[ha.Voter]bool{}
	for voter, record := range k.told {
		has[voter] = voter != "" && !m.Record.Newer(record)
	}
	return has
}

func (k *keeper) witnessHas(m ha.Memory) bool {
	record, ok := k.told[""]
	return ok && !m.Record.Newer(record)
}

// electorate is what the next quorum is decided of.
func (a *Agent) electorate(r *running, m ha.Memory) ha.Electorate {
	config := a.currentConfig()
	e := ha.Electorate{
		Self: m.Voter, Now: m.Record.Now, Async: config.Durability == durabilityAsync,
		Witness: config.Witness, WitnessReachable: a.Cluster != nil, Standbys: map[string]ha.Standby{},
	}
	streaming := r.lastSeen().standbys
	for _, member := range config.Members {
		e.Members = append(e.Members, member.Name)
		status, _, ok := a.peers.last(member.Name)
		voter := status.Election.Voter
		if member.Name == a.Name || !ok {
			continue
		}
		standby := ha.Standby{Voter: voter, Streaming: slices.Contains(streaming, voter)}
		if standby.Streaming {
			delete(a.keeper.gone, member.Name)
		} else if a.keeper.gone[member.Name].IsZero() {
			a.keeper.gone[member.Name] = time.Now()
		}
		standby.Gone = ago(a.keeper.gone[member.Name])
		e.Standbys[member.Name] = standby
	}
	maps.DeleteFunc(a.keeper.gone, func(name string, _ time.Time) bool { return !slices.Contains(e.Members, name) })
	return e
}

// rule is what a primary demands before it acknowledges: what is on record, or
// what a change that is being prepared demands besides.
func (a *Agent) rule(m ha.Memory) ha.Rule {
	if tighter := a.tighter.Load(); tighter != nil {
		return *tighter
	}
	return ha.CommitRule(m.Record, m.Voter)
}
