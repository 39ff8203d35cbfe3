package running

import (
	"toban.dev/internal/ha"
	"toban.dev/internal/postgres"
)

// role is the part of a server's settings that follows from its role.
type role struct {
	standing *Standing
	// rule is by which commits wait, upstream how a leader is followed, closed whether no client is to be let in.
	rule      func() ha.Rule
	hardState func() ha.HardState
	upstream  func(leader ha.Ballot) (postgres.Upstream, error)
	closed    func() bool
	// link says whether the slots of another side are to come along to a standby.
	link func() bool
	// sparing says how a server goes on whose volume gets full.
	sparing func() *postgres.Sparing
}

// add adds what follows from role, upstream and quorum to settings.
func (r *role) add(settings postgres.Settings) (postgres.Settings, error) {
	following, primary := r.standing.following(), r.standing.IsPrimary()
	settings.Synchronous = r.rule().String()
	if m := r.hardState(); !primary {
		settings.Synchronous = ha.CommitRule(m.Configuration, m.Voter).String() // as if it were elected now
	}
	settings.Closed = r.closed() || !r.standing.IsOpen()
	settings.Sparing = r.sparing()
	settings.Standby, settings.Upstream, settings.Least = !primary, nil, r.standing.lowerBounds()
	settings.Link = false
	if primary {
		return settings, nil // a promoted one keeps its lower bounds: to drop them takes a restart
	}
	if following.Leader == "" {
		return settings, nil
	}
	upstream, err := r.upstream(following)
	if err != nil {
		return settings, err
	}
	settings.Upstream, settings.Link = &upstream, r.link()
	return settings, nil
}
