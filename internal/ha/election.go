package ha

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
)

// LeaderLost says whether the leader of the instance's ballot is lost, by its own
// word, by that of the network, or by its silence.
func (v View) LeaderLost() bool {
	m, limit := v.Local.HardState, v.Local.silenceLimit(v.Async)
	leader, heard := v.Peers[m.Ballot.Leader]
	switch {
	case m.Ballot.Leader == "" && m.Ballot.Term == 0:
		return true
	case m.Ballot.Leader == v.Self:
		return !v.leads() || !v.takesWrites()
	case !slices.Contains(v.Members, m.Ballot.Leader) && !heard:
		return v.Local.Leaderless > limit
	case heard && leader.Ballot.Term == m.Ballot.Term &&
		(leader.Resigned || leader.Defeated || leader.Data == DataEmpty):
		return true
	case v.Local.Refused > RefusedLimit && !v.Local.Streaming:
		return true
	}
	return v.Local.Silence > limit || v.Local.Idle > v.idleLimit()
}

// silenceLimit is for how long the leader of the ballot may be silent.
func (l Local) silenceLimit(async bool) time.Duration {
	if async {
		return l.limits().AsyncSilence + l.Slack
	}
	return l.limits().Silence + l.Slack
}

// UntilLost is after how long it will have been silent for too long; not above 0 where it has.
func (l Local) UntilLost(async bool) time.Duration { return l.silenceLimit(async) + 1 - l.Silence }

// idleLimit is for how long the leader may answer without leading.
func (v View) idleLimit() time.Duration {
	limit, leader := IdleLimit+v.Local.Slack, v.Peers[v.Local.HardState.Ballot.Leader]
	if v.Local.Slack > 0 && leader.Underway && leader.Ballot.Term == v.Local.HardState.Ballot.Term {
		return max(limit, UnderwayLimit)
	}
	return limit
}

// takesWrites says that the server of one that was elected takes writes, or is about to: until then it gives its vote
// to nobody, for as long as its voters wait for it to lead. Who has heard of a later term won't lead, and votes.
func (v View) takesWrites() bool {
	soon := v.Local.Server == ServerStandby && v.Local.Leaderless <= IdleLimit+v.Local.OwnSlack
	outbid := v.promisedLater() && v.Electable()
	return v.Local.Server == ServerPrimary || soon && !outbid
}

// Defeated says that the instance stood for the term of its ballot, and was not elected. It asks for no term twice, so
// nobody ever leads that one. While it still asks, that is not known.
func (v View) Defeated() bool {
	m := v.Local.HardState
	return m.Ballot.Leader == v.Self && m.Won < m.Ballot.Term
}

// Check is a named reason for which something can't be.
type Check struct{ Reason, Message string }

// obstacle is the first check that keeps the instance from campaigning, nil when
// none does. It is what "why is there no failover?" is answered with.
func (v View) obstacle() *Check {
	for _, check := range []func(View) *Check{
		isReader, leaving, notAVoter, endUnknown, replaying, volumeFull, volumeSlow, majorityLost, betterCandidate,
		anotherStands, resting,
	} {
		if c := check(v); c != nil {
			return c
		}
	}
	return nil
}

// Eligible says whether the instance could lead, whatever the others are.
func (v View) Eligible() bool {
	able := !v.Reader && leaving(v) == nil && notAVoter(v) == nil && volumeFull(v) == nil && volumeSlow(v) == nil
	return able && v.Local.Data == DataPresent && v.Local.Server == ServerStandby && (v.Local.Known || v.Local.Answers)
}

// isReader: a reader never asks for votes, whatever a configuration says.
func isReader(v View) *Check {
	return failing(v.Reader, "Reader", "%s is a reader, and never leads", v.Self)
}

func leaving(v View) *Check {
	return failing(v.Wish.Leaving, "Leaving", "%s is being stopped", v.Self)
}

func notAVoter(v View) *Check {
	m := v.Local.HardState
	return failing(!m.Configuration.Has(m.Voter), RefusedNotAVoter,
		"%s was not among those whose acknowledgement counted (%s): it may lack acknowledged commits",
		v.Self, m.Configuration.Now)
}

func endUnknown(v View) *Check {
	if !v.Local.Known && v.Local.Server == ServerStandby && !v.Local.Answers {
		return &Check{RefusedEndUnknown, fmt.Sprintf("the server of %s does not answer how far its WAL goes", v.Self)}
	}
	return failing(!v.Local.Known && !v.Local.Streaming && v.Local.Following == 0, RefusedEndUnknown,
		"%s does not know yet how far its WAL goes", v.Self)
}

// RefusedReplaying is the refusal of an instance that has WAL to replay before it could lead.
const RefusedReplaying = "Replaying"

// replaying: who stands has replayed all that it has, or soon will. Its promotion would take as long as that: who waits
// for it would wait for nothing, where another could lead. Who still has an upstream has a little left at any moment,
// and goes on with it.
func replaying(v View) *Check {
	left := v.Local.Unreplayed
	soon := left <= ReplaySoon && v.Local.Following > 0 && v.Local.Still <= replayPause
	return failing(left > 0 && !soon, RefusedReplaying,
		"%s has %s of WAL to replay first", v.Self, megabytes(left))
}

// replayPause is for how long a standby that goes on may be seen to replay nothing: it is looked at each second.
const replayPause = 2 * time.Second

// Replaying says that the instance has WAL to replay before it could lead.
func (v View) Replaying() bool { return replaying(v) != nil }

// megabytes writes a number of bytes for people.
func megabytes(bytes uint64) string {
	const mb, gb = 1 << 20, 1 << 30
	switch {
	case bytes < mb:
		return fmt.Sprintf("%d bytes", bytes)
	case bytes < gb:
		return fmt.Sprintf("%d MB", bytes/mb)
	}
	return fmt.Sprintf("%.1f GB", float64(bytes)/gb)
}

func volumeFull(v View) *Check {
	return failing(v.Local.Full, "VolumeFull", "the volume of %s has no room for WAL", v.Self)
}

// The refusals for want of votes: RefusedNoMajority is that of an instance for which a majority can't vote,
// RefusedNotAVoter that of one which has no vote itself.
const (
	RefusedNoMajority = "NoMajority"
	RefusedNotAVoter  = "NotAVoter"
)

// majorityLost: a majority must have lost the leader. One that still hears it
// would not give its vote, nor would one with more WAL: asking in vain costs a term,
// and binds those that promise it.
func majorityLost(v View) *Check {
	m := v.Local.HardState
	votes := map[Voter]bool{m.Voter: true}
	var against []string
	for _, voter := range m.Configuration.Voters() {
		peer, ok := v.Peers[voter.Instance()]
		switch {
		case voter == m.Voter:
		case !ok:
			against = append(against, voter.Instance()+" does not answer")
		case peer.Voter != voter:
			against = append(against, voter.Instance()+" has lost its hard state")
		case peer.Data != DataPresent:
			against = append(against, voter.Instance()+" has no data")
		case peer.Stalls:
			against = append(against, "the volume of "+voter.Instance()+" stalls")
		case v.position().Before(peer.Position):
			against = append(against, fmt.Sprintf("%s has %s, this instance only %s",
				voter.Instance(), peer.Position, v.position()))
		case peer.LeaderLost || peer.Resigned || v.leaderResigned() || peer.Ballot.Leader == v.Self:
			votes[voter] = true
		default:
			against = append(against, voter.Instance()+" has not lost the leader")
		}
	}
	if m.Configuration.Elects(votes, v.Local.WitnessReachable) {
		return nil
	}
	return &Check{RefusedNoMajority, fmt.Sprintf("a new leader needs a majority of %s: %s",
		m.Configuration.Now, strings.Join(against, ", "))}
}

// WordPatience is how long is waited for the word of one that comes first, and that has not said anything since the
// leader has resigned. It says that it has lost the leader, and how far it is, as soon as it hears of it. What it has
// said before is older than what an instance knows of itself: each would take itself for the better one.
const WordPatience = 100 * time.Millisecond

// betterCandidate: the one that a leader wished for when it resigned goes first,
// else the one with the most WAL, among equals the first by ordinal that has not much
// to replay. How far the others are is what was last heard; the votes will tell.
func betterCandidate(v View) *Check {
	if v.Local.Lost > CampaignPatience+v.Local.OwnSlack {
		return nil // it had its time
	}
	if wished := v.wished(); wished != "" {
		return failing(wished != v.Self, "BetterCandidate",
			"%s is to take over: the former leader has named it", wished)
	}
	mine := v.position()
	for _, name := range v.Members {
		peer, ok := v.Peers[name]
		if !ok || !peer.Eligible || !peer.LeaderLost && !v.leaderResigned() {
			continue
		}
		first := slices.Index(v.Members, name) < slices.Index(v.Members, v.Self) && !peer.Replaying
		if why := peer.goesBefore(mine, first, v.Local.Lost); why != "" {
			return &Check{"BetterCandidate", name + " " + why}
		}
	}
	return nil
}

// goesBefore says why another stands before an instance with a position, "" where it does not. First says that it comes
// first by ordinal, lost is since when the leader is lost.
func (p Peer) goesBefore(mine Position, first bool, lost time.Duration) string {
	equal := !mine.Before(p.Position) && !p.Position.Before(mine)
	switch {
	case first && !p.LeaderLost && p.Streaming && lost < WordPatience:
		return "comes first, and has not said yet how far it is"
	case mine.Before(p.Position) || equal && first:
		return fmt.Sprintf("has %s, this instance %s", p.Position, mine)
	}
	return ""
}

// wished is whom a leader that has resigned in order wants to be led by: it has
// stopped, so whoever streamed from it has all its WAL. It is "" where nobody is
// wished for, or that one could not lead.
func (v View) wished() string {
	leader := v.Peers[v.Local.HardState.Ballot.Leader]
	wished := leader.Successor
	if !v.leaderResigned() || wished != v.Self && (!v.Peers[wished].Eligible || v.Peers[wished].Replaying) {
		return ""
	}
	return wished
}

// anotherStands: one that asks for votes in a later term already is not outbid. It may win, and whoever has promised a
// term after that could not follow it: it would have to make way at once.
func anotherStands(v View) *Check {
	if v.Local.Lost > CampaignPatience+v.Local.OwnSlack {
		return nil // it had its time
	}
	for _, name := range slices.Sorted(maps.Keys(v.Peers)) {
		promise := v.Peers[name].Ballot
		candidate, heard := v.Peers[promise.Leader]
		ended := candidate.Ballot.Term > promise.Term ||
			candidate.Ballot.Term == promise.Term && (candidate.Defeated || candidate.Resigned)
		if promise.Term > v.Local.HardState.Ballot.Term && heard && !ended {
			return &Check{"AnotherStands", fmt.Sprintf("%s asks for votes in term %d", promise.Leader, promise.Term)}
		}
	}
	return nil
}

// MayStand says whether one that would be elected may still stand: its leader is lost, and no other stands meanwhile.
func (v View) MayStand() bool { return v.LeaderLost() && anotherStands(v) == nil }

func resting(v View) *Check {
	return failing(v.Local.Resting, "Resting", "asked for votes in vain a moment ago")
}

func failing(fails bool, reason, format string, args ...any) *Check {
	if !fails {
		return nil
	}
	return &Check{reason, fmt.Sprintf(format, args...)}
}

// position is how far the instance's WAL goes, as far as is seen without stopping anything.
func (v View) position() Position { return v.Local.Position() }

// Electable says whether a majority answers that could vote for this instance,
// whatever terms it has promised.
func (v View) Electable() bool {
	m := v.Local.HardState
	votes := map[Voter]bool{m.Voter: true}
	for _, voter := range m.Configuration.Voters() {
		peer, ok := v.Peers[voter.Instance()]
		votes[voter] = votes[voter] || ok && peer.canVote(voter)
	}
	return m.Configuration.Elects(votes, v.Local.WitnessReachable)
}

// canVote says that it is this voter, and could keep a promise and compare its WAL.
func (p Peer) canVote(voter Voter) bool {
	return p.Voter == voter && p.Data == DataPresent && !p.Stalls
}

// promisedLater says whether an instance has promised a later term in which nobody
// leads. It need not be a voter: whoever is to follow must be able to.
func (v View) promisedLater() bool {
	for _, peer := range v.Peers {
		if peer.Ballot.Term > v.Local.HardState.Ballot.Term && !peer.Leading {
			return true
		}
	}
	return false
}

// streaming are the other voters that stream from this leader, by their own word.
func (v View) streaming() (voters []Voter) {
	m := v.Local.HardState
	for _, voter := range m.Configuration.Voters() {
		peer := v.Peers[voter.Instance()]
		if voter != m.Voter && peer.Voter == voter && peer.Streaming && peer.Ballot.Term == m.Ballot.Term {
			voters = append(voters, voter)
		}
	}
	return voters
}

// ready says whether another voter could lead at once: it has nothing to do first, and of the others so many have no
// more WAL than it that they would elect it without this one.
func (v View) ready() bool {
	m := v.Local.HardState
	return slices.ContainsFunc(m.Configuration.Voters(), func(candidate Voter) bool {
		c := v.Peers[candidate.Instance()]
		able := candidate != m.Voter && c.Voter == candidate && c.Eligible && !c.Replaying && !c.Rebuilding
		votes := v.votesOfOthers(func(p Peer) bool { return !c.Position.Before(p.Position) })
		return able && m.Configuration.Elects(votes, v.Local.WitnessReachable)
	})
}

// votesOfOthers are the votes in the next term that other voters could give, of those which would.
func (v View) votesOfOthers(would func(Peer) bool) map[Voter]bool {
	m, votes := v.Local.HardState, map[Voter]bool{}
	for _, voter := range m.Configuration.Voters() {
		peer, ok := v.Peers[voter.Instance()]
		if ok && voter != m.Voter && peer.canVote(voter) && peer.Ballot.Term <= m.Ballot.Term && would(peer) {
			votes[voter] = true
		}
	}
	return votes
}

// followed says whether another that may lead by the configuration streams from this
// leader: one that can be waited for.
func (v View) followed() bool {
	return slices.ContainsFunc(v.streaming(), v.Local.HardState.Configuration.Has)
}

// leaderResigned says that the leader has given up by its own word, so that nobody
// else has to have lost it.
func (v View) leaderResigned() bool {
	m := v.Local.HardState
	leader, ok := v.Peers[m.Ballot.Leader]
	return ok && leader.Resigned && leader.Ballot.Term == m.Ballot.Term
}

// Unconfirmed is how long ago a majority was last known to know of no later
// term. The ages are those of the voters' last answers to that effect; witness
// is that of the witness. The voter itself needs none.
func Unconfirmed(m HardState, age func(Voter) (time.Duration, bool), witness time.Duration) time.Duration {
	if m.Configuration.Version == 0 {
		return math.MaxInt64
	}
	oldest := time.Duration(0)
	for _, q := range m.Configuration.Quorums() {
		oldest = max(oldest, q.majority(m.Voter, age, witness))
	}
	return oldest
}

// majority is the age of the word that makes a majority of a quorum.
func (q Quorum) majority(self Voter, age func(Voter) (time.Duration, bool), witness time.Duration) time.Duration {
	known := make([]time.Duration, 0, 8)
	for _, v := range q.Voters {
		if v == self {
			known = append(known, 0)
		} else if said, ok := age(v); ok {
			known = append(known, said)
		}
	}
	if q.Witness != "" {
		known = append(known, witness)
	}
	if len(known) < q.Votes() {
		return math.MaxInt64
	}
	slices.Sort(known)
	return known[q.Votes()-1]
}

// othersElect says whether the other voters could elect without this one.
func (v View) othersElect() bool { return v.canElect(false) }

// canElect says whether the voters could elect another instance, with the vote of this one or without. It gives none
// while its volume stalls: a vote must be on disk.
func (v View) canElect(withOwn bool) bool {
	m, votes := v.Local.HardState, v.votesOfOthers(func(Peer) bool { return true })
	votes[m.Voter] = withOwn && !v.Local.Stalls()
	return v.successor("", false) && m.Configuration.Elects(votes, v.Local.WitnessReachable)
}

// preferred is the most preferred instance that can take over in order, "" where none is preferred or can. It is only a
// word to those that elect: who has not all WAL is not elected, and who does not stand in time is not waited for.
func (v View) preferred() string {
	able := func(name string) bool { return v.successor(name, true) }
	if i := slices.IndexFunc(v.Preferred, able); i >= 0 {
		return v.Preferred[i]
	}
	return ""
}

// successor says whether there is one that can lead: wished, or any. Who is to
// take over in order must be streaming, or it would lack the last of the WAL, and
// must not have much to replay, or nobody would lead for as long as that takes.
func (v View) successor(wished string, inOrder bool) bool {
	for _, voter := range v.Local.HardState.Configuration.Voters() {
		name := voter.Instance()
		peer, ok := v.Peers[name]
		streams := peer.Streaming && peer.Ballot.Term == v.Local.HardState.Ballot.Term && !peer.Replaying
		if ok && name != v.Self && (wished == "" || wished == name) && peer.Voter == voter &&
			peer.Eligible && (streams || !inOrder) {
			return true
		}
	}
	return false
}
