package machine

import (
	"math"
	"slices"
	"time"

	"toban.dev/internal/ha"
)

// How long is believed what others have said.
const (
	// answerCounts is after how long one that has not answered is absent.
	answerCounts = 3 * time.Second
	// recently is how long somebody who could lead is counted on by one that leaves.
	recently = 1500 * time.Millisecond
	// witnessCounts is how long a look at the witness counts.
	witnessCounts = 1500 * time.Millisecond
)

// never stands for a time that has not come.
const never = time.Duration(math.MinInt64)

// news is what others have said.
type news struct {
	heard map[string]*heard
	// present are those who have answered lately.
	present map[string]ha.Peer
	// forgotten are the voters that have forgotten what they promised.
	forgotten map[ha.Voter]bool
}

// heard is what one instance has said last.
type heard struct {
	said PeerStatus
	// asked is when the question was asked that it answered last, at when the answer came.
	asked, at time.Duration
	// counts is the time from which its answers count for this instance as its leader: asked, or earlier where it had
	// not heard this instance for longer than a heartbeat. Its vote counts from voted, in the term votedTerm.
	counts, voted time.Duration
	votedTerm     uint64
	// slack is what it has promised with the answer that counts: for how much longer than the fence that keeps this
	// instance going. A leader counts on nothing that a follower has not promised itself.
	slack time.Duration
	// refused is since when nobody listens at its address, or never; again when that was seen last.
	refused, again time.Duration
	// progress is how far it has ever been, as a voter.
	progress progress
}

func newNews() news { return news{map[string]*heard{}, map[string]ha.Peer{}, map[ha.Voter]bool{}} }

// Peers are the instances whose word counts: the other members, and those that are none any more but still have a vote.
// They acknowledge, vote, and may even lead.
func (i *Instance) Peers() []string { return i.peers }

// findPeers finds the peers anew, because the members or the voters may be others.
func (i *Instance) findPeers() {
	var names []string
	add := func(name string) {
		if name != i.name && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, name := range i.config.Members {
		add(name)
	}
	for _, v := range i.hardState.Configuration.Voters() {
		add(v.Instance())
	}
	i.peers = names
	i.fitLimits()
}

// peer is what is known of an instance, nil for nothing.
func (n *news) peer(name string) *heard {
	if h := n.heard[name]; h != nil && h.at != never {
		return h
	}
	return nil
}

// entry is where what is heard of an instance is kept.
func (n *news) entry(name string) *heard {
	h := n.heard[name]
	if h == nil {
		h = &heard{asked: never, at: never, counts: never, voted: never, refused: never}
		n.heard[name] = h
	}
	return h
}

// handleNews takes in what others say of themselves, or that nobody is there to say it.
func (i *Instance) handleNews(e Event) {
	switch e := e.(type) {
	case PeerAnswered:
		i.watchProgress(e.Status, e.Asked)
		i.handleStatus(e.Status, e.Asked)
		i.news.entry(e.Status.Name).refused = never
	case PeerAnnounced:
		i.watchProgress(e.Status, never)
		i.handleStatus(e.Status, never)
	case PeerRefused:
		h := i.news.entry(e.Name)
		switch {
		case h.refused == never && h.at < e.Asked, h.refused != never && h.at > h.refused:
			h.refused = e.Asked
		}
		h.again = e.Asked
	}
}

// handleStatus keeps what an instance says, unless a later word of its process is known: then it
// only counts that it came.
func (i *Instance) handleStatus(s PeerStatus, asked time.Duration) {
	if !slices.Contains(i.Peers(), s.Name) {
		return
	}
	h := i.news.entry(s.Name)
	h.hear(asked, i.silenceOf(s), s.Limits.Slack)
	i.moved = h.at == never ||
		decisive(h.said.Peer) != decisive(s.Peer) || s.Configuration.Newer(i.hardState.Configuration)
	if h.at != never && h.said.Boot == s.Boot && h.said.Number > s.Number {
		s = h.said
	}
	fits := h.at != never && h.said.Limits == s.Limits
	h.said, h.at = s, i.now
	i.news.present[s.Name] = s.Peer
	if !fits {
		i.fitLimits()
	}
}

// silenceOf is for how long an instance has not heard this one, where this one is its leader.
func (i *Instance) silenceOf(s PeerStatus) time.Duration {
	if s.Peer.Ballot.Leader != i.name {
		return 0
	}
	return s.Silence
}

// hear notes an answer, and how long its sender had not heard this instance, its leader. It may give that up soon, so
// its answer keeps the leader going for as much less.
func (h *heard) hear(asked, silence, slack time.Duration) {
	if asked == never {
		return
	}
	h.asked = max(h.asked, asked)
	if counts := asked - max(0, silence-ha.HeartbeatInterval); counts >= h.counts {
		h.counts, h.slack = counts, slack
	}
}

// refuses says that nobody listened at its address when it was asked last.
func (h *heard) refuses() bool { return h.refused != never && h.at <= h.again }

// refusedFor is for how long nobody has listened at its address, 0 where somebody does, or has spoken since by itself.
// One refusal alone says that of a moment: until the next question, which may be on its way, it is no longer than
// ha.RefusedLimit.
func (h *heard) refusedFor(now time.Duration) time.Duration {
	switch {
	case !h.refuses():
		return 0
	case h.again-h.refused < ha.HeartbeatInterval*3/4:
		return min(now-h.refused, ha.RefusedLimit)
	}
	return now - h.refused
}

// meet notes that an instance has asked something itself, as the leader: it is not silent, nor does it
// refuse, nor has it resigned.
func (i *Instance) meet(name string) {
	h := i.news.entry(name)
	h.refused = never
	if h.at != never {
		h.asked, h.said.Peer.Resigned = i.now, false
		if p, ok := i.news.present[name]; ok {
			p.Resigned = false
			i.news.present[name] = p
		}
	}
}

// forgetOld drops what was said too long ago.
func (i *Instance) forgetOld() {
	for name := range i.news.present {
		if i.now-i.news.heard[name].at >= answerCounts {
			delete(i.news.present, name)
		}
	}
}

// limits are the times that this instance goes by: they fit with those of all others, as each has said them last.
func (i *Instance) limits() ha.Limits { return i.fitted }

// fitLimits fits them anew.
func (i *Instance) fitLimits() {
	i.fitted = i.own
	for _, name := range i.peers {
		said := ha.Limits{}
		if h := i.news.peer(name); h != nil {
			said = h.said.Limits
		}
		i.fitted = i.fitted.With(said)
	}
}

// highestTerm is the highest that this instance has heard of from anybody.
func (i *Instance) highestTerm() uint64 {
	highest := max(i.hardState.Ballot.Term, i.witness.seen.Ballot.Term)
	for _, h := range i.news.heard {
		highest = max(highest, h.said.Peer.Ballot.Term)
	}
	return highest
}

// resignedTerm is the term of the ballot where its leader has said that it has given it up, else 0.
func (i *Instance) resignedTerm() uint64 {
	b := i.hardState.Ballot
	if h := i.news.peer(b.Leader); h != nil && h.said.Peer.Resigned && h.said.Peer.Ballot.Term == b.Term {
		return b.Term
	}
	return 0
}

// newestHardState is the hard state with the newest configuration in it that anybody has said: who has missed a change
// can't be elected, and may not know whom to ask.
func (i *Instance) newestHardState() ha.HardState {
	m := i.hardState
	for _, name := range i.Peers() {
		if h := i.news.peer(name); h != nil {
			m = ha.LearnConfiguration(m, h.said.Peer.Ballot, h.said.Configuration)
		}
	}
	return ha.LearnConfiguration(m, i.witness.seen.Ballot, i.witness.seen.Configuration)
}

// measureQuorum measures when a majority last knew of no later term, by what the others and the witness have said.
func (i *Instance) measureQuorum(local *ha.Local) {
	m, seen := i.hardState, i.witness.seen
	age := time.Duration(math.MaxInt64)
	if i.witness.at != never {
		age = i.now - i.witness.at
	}
	if local.WitnessReachable = age < witnessCounts; local.WitnessReachable {
		local.WitnessBallot = seen.Ballot
	}
	local.Alone = ha.Unconfirmed(m, i.ageOfAnswer, math.MaxInt64)
	local.HasReadLease = i.Leads() && seen.ReadLease == m.Won &&
		seen.Ballot.Term <= m.Won && age <= i.limits().ReadLease
	if seen.Ballot.Term > m.Ballot.Term {
		age = math.MaxInt64 // it knows of a later term
	}
	local.Unconfirmed = ha.Unconfirmed(m, i.ageOfAnswer, age)
}

// servesUntil is until when a leader may be a primary if it hears of nobody any more. See ha.Local.MayServe.
func (i *Instance) servesUntil() time.Duration {
	local, l := i.View().Local, i.limits()
	left := max(l.Fence-local.Alone, l.ReadLease-local.Unconfirmed)
	if local.HasReadLease {
		left = max(left, l.ReadLease-(i.now-i.witness.at))
	}
	return i.now + left
}

// promiseLasts is for how long after an answer the slack that came with it still counts for a vote, which brings none
// of its own: its sender may have lowered it since, and then keeps it until whoever counts on that answer has stopped.
const promiseLasts = ha.AsyncSilenceLimit - ha.FenceLimit

// ageOfAnswer is how long ago a voter said last that this instance leads. One that has lost the leader, or never knew
// this one, may be giving its vote to another.
func (i *Instance) ageOfAnswer(voter ha.Voter) (time.Duration, bool) {
	h := i.news.peer(voter.Instance())
	if h == nil || h.asked == never || h.said.Peer.Voter != voter || i.news.forgotten[voter] {
		return 0, false
	}
	own, said, counts := i.hardState.Ballot, h.said.Peer, never
	slack := h.slack
	if h.refusedFor(i.now) > ha.RefusedLimit {
		slack = 0 // who is refused by this one elects another at once, whatever it has promised
	}
	if h.votedTerm == own.Term {
		counts = min(h.voted+slack, max(h.voted, h.counts+slack+promiseLasts))
	}
	if said.Ballot == own && h.counts != never {
		counts = max(counts, h.counts+slack)
	}
	left := said.Ballot.Term > own.Term || said.Ballot == own && said.LeaderLost
	return i.now - counts, counts != never && !left
}
