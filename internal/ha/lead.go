package ha

import (
	"cmp"
	"slices"
	"time"
)

// The rules of an instance that has won the highest term it knows.

// failed: a primary whose server has ended or hangs, or whose volume stalls, leaves the lead to others, if there are
// any. A volume that takes no writes is named also where the server noticed it first.
func failed(v View) *Decision {
	why := cmp.Or(v.Local.Failed, v.Local.Stalling())
	if slow := v.Local.slow(); v.Local.Failed != "" && slow != "" {
		why += "; " + slow
	}
	if !v.leads() || why == "" || !v.othersElect() {
		return nil
	}
	return decide(Fence, "ServerFailed", "%s: another instance takes over", why)
}

// isolated: a primary that has lost the majority and does not have the read lease stops at once.
func isolated(v View) *Decision {
	if !v.leads() || v.Local.Server != ServerPrimary || v.Local.MayServe() {
		return nil
	}
	return decide(Fence, "Isolated",
		"neither a majority of the instances nor the Kubernetes API can be reached: another instance may lead by now")
}

// asked: a primary that is asked to resign does so as soon as somebody can take over. Unless it is told to stop, it
// stays and votes: so with one of three instances away, another can still take over. Where it may be anybody, it names
// the one that the config prefers.
func asked(v View) *Decision {
	if !v.Wish.Resign || !v.leads() || v.Local.Server != ServerPrimary ||
		!v.successor(v.Wish.To, true) || !v.canElect(!v.Wish.Leaving) {
		return nil
	}
	return decide(Resign, "SwitchoverAsked", "hands over to another instance, as asked").
		of(cmp.Or(v.Wish.To, v.preferred()))
}

// unacknowledged: a leader whose commits nobody has been able to acknowledge for long makes way, if the others are
// well: that it hears them does not help its clients. Its port may be blocked, its walsenders used up or a certificate
// refused, which the next leader need not suffer from. Where that one does, all that is lost is an election now and
// then. Who says that it streams is catching up: it is waited for, and who has done so for a while counts anew.
func unacknowledged(v View) *Decision {
	q, limit := v.Local.HardState.Configuration.Now, AcknowledgeLimit+v.Local.OwnSlack
	waits := v.Local.Unacknowledged > limit && !v.Reached()
	if !v.leads() || v.Local.Server != ServerPrimary || !waits || v.Local.Yielded || !v.othersElect() || !v.ready() {
		return nil
	}
	return decide(Resign, ReasonUnacknowledged,
		"for %s too few of %s have streamed from %s to acknowledge a commit, though they answer: another takes over",
		v.Local.Unacknowledged.Round(time.Second), q, v.Self)
}

// Reached says that as many stream from this leader, by their own word, as a commit needs: they may have to catch up.
func (v View) Reached() bool {
	return 1+len(v.streaming()) >= v.Local.HardState.Configuration.Now.Acknowledgements
}

// ReasonUnacknowledged is that of a leader which makes way because nobody acknowledges its commits.
const ReasonUnacknowledged = "Unacknowledged"

// renewed: a leader that alone has a vote takes the later term itself.
func renewed(v View) *Decision {
	m := v.Local.HardState
	if !v.leads() || v.Local.Server != ServerPrimary || v.Local.Resting || !v.promisedLater() ||
		!m.Configuration.Elects(map[Voter]bool{m.Voter: true}, false) {
		return nil
	}
	return decide(Campaign, "TermRenewed", "alone has a vote, and takes a later term that the others can follow")
}

// outdated: a leader makes way for a later term when somebody has promised one
// in vain, who can't follow an earlier one any more. It stops first: were it
// elected itself, what it had written in its earlier term and nobody had
// acknowledged yet would pass for older than what a failed leader in between has
// written. It waits for a successor that streams, unless none that may lead by
// the configuration streams: then waiting would be in vain.
func outdated(v View) *Decision {
	if !v.leads() || v.Local.Server != ServerPrimary || !v.promisedLater() || !v.Electable() ||
		v.followed() && !v.successor("", true) {
		return nil
	}
	return decide(Resign, "TermOutdated",
		"an instance has promised a later term: resigns for a leader that it can follow")
}

// lead: the winner of the highest term leads, while it runs or a majority knows of no later one.
func lead(v View) *Decision {
	if !v.leads() || v.Local.Resigned || v.Local.Server != ServerPrimary && !v.comesBack() {
		return nil
	}
	return decide(Lead, "Leader", "primary of term %d", v.Local.HardState.Ballot.Term)
}

// comesBack says that a leader whose server does not run may start it: only on
// word that the fence would not stop it for again (what a peer said before counts for
// longer elsewhere), and not while the others may be electing: it could be read
// from after the new one's first commit.
func (v View) comesBack() bool {
	electing := v.missed() && v.othersElect()
	return !v.Wish.Leaving && v.Local.Unconfirmed <= v.Local.limits().Fence &&
		!electing && (!v.promisedLater() || !v.Electable())
}

// missed says whether a voter has lost this leader, and has not heard yet that it is back.
func (v View) missed() bool {
	m := v.Local.HardState
	return slices.ContainsFunc(m.Configuration.Voters(), func(voter Voter) bool {
		peer := v.Peers[voter.Instance()]
		return voter != m.Voter && peer.Voter == voter && peer.LeaderLost && peer.Ballot.Term == m.Ballot.Term
	})
}

// late: a leader that comes back when somebody has already promised a later term gives up at once. Others may still
// hear it, and so neither vote nor stand; and it can't lead any more whom that one is to be led by.
func late(v View) *Decision {
	if !v.leads() || v.Local.Server != ServerStopped || v.Local.Resigned ||
		v.Local.Leaderless >= IdleLimit+v.Local.Slack {
		return nil
	}
	if !v.promisedLater() || !v.Electable() || !v.successor("", false) {
		return nil
	}
	return decide(Fence, "TermOutdated", "an instance has promised a later term meanwhile: resigns")
}

// unconfirmed: a leader that comes back must first hear that nobody else leads.
func unconfirmed(v View) *Decision {
	if !v.leads() || !v.Local.Resigned && v.Local.Leaderless >= IdleLimit+v.Local.Slack {
		return nil
	}
	return decide(Wait, "LeaderUnconfirmed",
		"was the primary of term %d, and asks a majority of %s whether it still is",
		v.Local.HardState.Ballot.Term, v.Local.HardState.Configuration.Now)
}
