package machine

import (
	"maps"
	"time"

	"toban.dev/internal/ha"
	"toban.dev/internal/wal"
)

// watch is since when something has been so.
type watch struct {
	ballot ha.Ballot
	// since is when the ballot became what it is, led when somebody was last seen to lead in it.
	since, led time.Duration
	// leads is since when somebody leads without a break, or never.
	leads time.Duration
	// lost is since when the leader of the ballot is known to be lost, elects since when a majority has been heard that
	// could elect another, or never.
	lost   time.Duration
	elects majorityHeard
	// idle is since when the leader has answered without leading, or never.
	idle time.Duration
	// stalled is for how long this standby has not streamed though its leader leads, unreached for how long so few have
	// streamed from this primary that no commit could be acknowledged, if they had caught up.
	stalled, unreached stall
	// unacknowledged is since when no commit of this primary could be acknowledged, yielded when it has made way for
	// that, or never.
	unacknowledged, yielded time.Duration
	// rests is until when no campaign begins, resigned when this instance gave up the term resignedTerm.
	rests, resigned time.Duration
	resignedTerm    uint64
	// preempts is the term before which a leader may have the read lease, for all that is known.
	preempts uint64
	// failed says why the primary's server does not serve, "" while it does.
	failed               string
	rewindFailed, noRoom bool
	// data is what lies in the data directory, end the end of its WAL once that is known for good.
	data  DataSeen
	end   wal.LSN
	known bool
	// unwritten is for how long the volume has not taken a write.
	unwritten time.Duration
	// unelected says that the server was seen to take writes as a standby, until its data is marked.
	unelected bool
	// looked is when the server was asked last how it is, since its leader is lost.
	looked time.Duration
	replaySeen
}

// replaySeen is how far a server has replayed its WAL, and when it was last seen to have replayed more, or to have
// nothing to replay.
type replaySeen struct {
	replayed wal.LSN
	moved    time.Duration
}

func newWatch(m ha.HardState, now time.Duration) watch {
	return watch{
		ballot: m.Ballot, since: now, led: now, leads: never, lost: never, elects: unheard, idle: never,
		stalled: streaming, unreached: streaming, unacknowledged: never, yielded: never, rests: never, resigned: never,
		preempts: m.Won,
	}
}

// majorityHeard is since when a majority has been heard without a long gap, and when it was heard last, or never.
type majorityHeard struct{ since, last time.Duration }

var unheard = majorityHeard{never, never}

// see notes that a majority is heard, or not, while it matters. One that is heard now and then counts as heard: the
// witness is asked from time to time only.
func (m *majorityHeard) see(now time.Duration, matters, heard bool) {
	if heard {
		m.last = now
	}
	m.since = since(m.since, now, matters && m.last != never && now-m.last < answerCounts)
}

// observe measures what only time and the present state tell. It asks nobody, and changes nothing else.
func (i *Instance) observe() {
	i.forgetOld()
	w, ballot := &i.watch, i.hardState.Ballot
	if ballot != w.ballot {
		w.ballot, w.since, w.led = ballot, i.now, i.now
		w.leads, w.lost, w.elects, w.idle, w.stalled = never, never, unheard, never, streaming
	}
	leader, present := i.news.present[ballot.Leader]
	led := present && leader.Leading && leader.Ballot.Term == ballot.Term
	own := ballot.Leader == i.name && i.server.role == ha.ServerPrimary && i.server.confirmed
	i.remember(led || own)
	switch {
	case led || own:
		w.led, w.idle = i.now, never
	case present && w.idle == never:
		w.idle = i.now
	}
	// A server that does not even start is no better than one that does not stream.
	able := i.server.role != ha.ServerPrimary && w.data.Data == ha.DataPresent && w.unwritten <= ha.StallLimit
	should := led && ballot.Leader != i.name && able
	w.stalled.see(i.now, should, i.server.seen.Streaming)
	w.acknowledge(i.now, i.server.waitsInVain(i.Leads(), i.rule()), i.View().Reached())
	i.observeWitness()
	i.loseLeader()
}

// catchUpLimit is how long a leader counts on standbys that catch up, though their streams break off again and again:
// over a network that loses packets they may come to an end, and another leader would have no better ones.
const catchUpLimit = time.Minute

// waitsInVain says that too few standbys stream from a leader's primary for a commit to be acknowledged.
func (s *server) waitsInVain(leads bool, rule ha.Rule) bool {
	return leads && s.role == ha.ServerPrimary && !rule.IsMetBy(s.seen.Standbys)
}

// acknowledge notes whether a leader's commits wait in vain, and whether enough standbys catch up.
func (w *watch) acknowledge(now time.Duration, waits, catchUp bool) {
	w.unacknowledged = since(w.unacknowledged, now, waits)
	w.unreached.see(now, waits, catchUp && now-w.unacknowledged <= catchUpLimit)
}

// since is since when something has been so, which is so now or not.
func since(before, now time.Duration, is bool) time.Duration {
	switch {
	case !is:
		return never
	case before == never:
		return now
	}
	return before
}

// quickLosses is how many leaders may be lost soon after they have begun to lead before the next election waits.
const quickLosses = 3

// remember notes that an instance leads, and forgets what was in vain when it has led for long.
func (i *Instance) remember(led bool) {
	w := &i.watch
	switch {
	case !led:
	case w.leads == never:
		w.leads, w.rests = i.now, never // what was in vain before has come to an end
	case i.now-w.leads >= steadyAfter:
		i.vain = vain{}
	}
}

// loseLeader notes since when the leader has been lost. One that is lost soon after it has begun to lead, and has not
// resigned, counts as in vain: where that goes on, the next election waits.
func (i *Instance) loseLeader() {
	w := &i.watch
	lost := i.View().LeaderLost()
	if lost && w.lost == never {
		soon := w.leads != never && i.now-w.leads < steadyAfter && i.resignedTerm() == 0
		if soon && i.vain.polls >= quickLosses {
			i.rest(0)
		} else if soon {
			i.vain.poll(i.now)
		}
		w.leads = never
	}
	w.lost = since(w.lost, i.now, lost)
	w.elects.see(i.now, lost, lost && i.View().Electable())
}

// stall is since when what should stream has not, and since when it has streamed again, or never.
type stall struct{ since, streams time.Duration }

var streaming = stall{never, never}

// streamsLimit is how long what has stalled must have streamed to count as what does: a receiver that begins and fails
// again and again streams for a moment each time.
const streamsLimit = 3 * time.Second

// see notes whether what should stream does.
func (s *stall) see(now time.Duration, should, streams bool) {
	switch {
	case !should:
		*s = streaming
	case !streams:
		*s = stall{since(s.since, now, true), never}
	case s.streams == never:
		s.streams = now
	case now-s.streams > streamsLimit:
		s.since = never
	}
}

// replay notes how far the server has replayed what it has.
func (w *watch) replay(now time.Duration, seen ServerSeen) {
	if at := seen.replayed(); seen.Unreplayed == 0 || at != w.replayed {
		w.replayed, w.moved = at, now
	}
}

// ago is how long ago something began, 0 where it has not.
func (i *Instance) ago(since time.Duration) time.Duration {
	if since == never {
		return 0
	}
	return i.now - since
}

// View is all that is decided of, at this moment.
func (i *Instance) View() ha.View {
	v := ha.View{
		Self: i.name, Members: i.config.Members, Preferred: i.config.Preferred, Reader: i.config.Reader,
		SystemIdentifier: i.config.SystemIdentifier, Async: i.config.Async,
		Witness: i.config.Witness, Peers: i.news.present, Wish: i.wish.Wish,
	}
	i.viewLocal(&v.Local)
	i.viewLeader(&v.Local)
	i.measureQuorum(&v.Local)
	return v
}

// viewLocal is what lies here, and how the server is.
func (i *Instance) viewLocal(local *ha.Local) {
	w, s := &i.watch, &i.server
	*local = ha.Local{
		Data: w.data.Data, SystemIdentifier: w.data.SystemIdentifier, HardState: i.hardState,
		Failed: w.failed, Full: s.seen.Full, RewindFailed: w.rewindFailed, NoRoom: w.noRoom,
		Unwritten: w.unwritten, Unelected: w.unelected, Resigned: i.hasResigned(),
		Resting: w.rests != never && i.now < w.rests, Server: s.role, Following: s.following.Term,
		Streaming: s.seen.Streaming, Answers: s.seen.Answers, Limits: i.limits(), LocalWAL: ha.LocalWAL{
			Known: w.known, End: w.end, Received: s.seen.Received, Unreplayed: s.seen.Unreplayed,
		},
	}
	if local.Unreplayed > 0 {
		local.Still = i.now - w.moved
	}
	if s.seen.Known && s.role == ha.ServerStandby && s.following == (ha.Ballot{}) {
		local.Known, local.End = true, s.seen.End
	}
	if s.role == ha.ServerPrimary && s.seen.Failure != "" {
		local.Failed = s.seen.Failure
	}
}

// hasResigned says that it gave up the term of its ballot a moment ago, or can't come back yet: its server has not
// ended.
func (i *Instance) hasResigned() bool {
	w := &i.watch
	lately := w.resigned != never && (i.now-w.resigned < ha.IdleLimit || i.fence != nil)
	return lately && w.resignedTerm == i.hardState.Ballot.Term
}

// viewLeader is for how long the leader of the ballot has been what it is.
func (i *Instance) viewLeader(local *ha.Local) {
	w, leader := &i.watch, i.hardState.Ballot.Leader
	local.Leaderless, local.Lost = i.now-w.led, i.ago(w.elects.since)
	local.Idle, local.Stalled = i.ago(w.idle), i.ago(w.stalled.since)
	local.Unacknowledged = i.ago(w.unreached.since)
	local.Yielded = w.yielded != never && i.now-w.yielded < ha.YieldPause
	local.Slack, local.OwnSlack = i.slackFor(leader), i.slack.own
	if leader == i.name {
		return
	}
	since := i.now - w.since
	local.Silence = since
	if h := i.news.peer(leader); h != nil && h.asked != never {
		local.Silence = min(i.now-h.asked, since)
	}
	if h := i.news.heard[leader]; h != nil {
		local.Refused = min(h.refusedFor(i.now), since)
	}
	if limit := local.Limits.Silence; local.Silence > limit || local.Refused > ha.RefusedLimit {
		local.Leaderless = max(local.Leaderless, local.Silence-limit)
	}
}

// Says is what the instance says of itself at a time.
func (i *Instance) Says(now time.Duration) PeerStatus {
	i.now = now
	i.said++
	v := i.View()
	return PeerStatus{
		Name: i.name, Boot: i.boot, Number: i.said, Peer: i.peer(v), Configuration: i.hardState.Configuration,
		Began: i.began, Forgotten: i.Forgotten(), Limits: i.LimitsSaid(), Silence: v.Local.Silence,
	}
}

// Began is how far this instance had come when its process began.
func (i *Instance) Began() ha.Progress { return i.began }

// Peer is this instance as others see it.
func (i *Instance) Peer() ha.Peer { return i.peer(i.View()) }

// peer is this instance as others see it.
func (i *Instance) peer(v ha.View) ha.Peer {
	m, l := i.hardState, v.Local
	p := ha.Peer{
		Voter: m.Voter, Data: l.Data, SystemIdentifier: l.SystemIdentifier, Ballot: m.Ballot, Leading: i.leading(l),
		Underway: underway(i), Resigned: l.Resigned, Successor: i.successor,
		Defeated:    v.Defeated() && (i.campaign == nil || i.campaign.term > m.Ballot.Term) && i.storing == nil,
		TermHistory: historyToFollow(i), Oldest: i.server.seen.Oldest,
		Position: l.Position(), Unreplayed: l.Unreplayed, Replaying: v.Replaying(),
		Streaming: l.Streaming, LeaderLost: v.LeaderLost(),
		Eligible: v.Eligible(), Rebuilding: i.last.Action == ha.Rewind ||
			i.last.Action == ha.Clone && l.Data != ha.DataEmpty, Stalls: l.Stalls(),
	}
	if p.Leading {
		p.Written = i.server.seen.Written
	}
	return p
}

// historyToFollow is this instance's term history as others may take it over. One that was elected and is not promoted
// yet leaves that term out, and so is not followed yet, where there is the beginning of a record behind the end of its
// WAL. PostgreSQL would send that as well, and count what a standby has of it for what the new timeline has in its
// place (StartReplication in walsender.c does not forget how far the standby had been).
func historyToFollow(i *Instance) []ha.TermStart {
	m := i.hardState
	if i.server.ragged && ha.Unpromoted(m.TermHistory, m.Won) {
		return m.TermHistory[:len(m.TermHistory)-1]
	}
	return m.TermHistory
}

// leading says that this instance is a primary that can be followed, in the term that it has won.
func (i *Instance) leading(l ha.Local) bool {
	return i.Leads() && i.server.role == ha.ServerPrimary && i.server.confirmed && l.Failed == "" &&
		i.fence == nil && !i.server.stopping
}

// underway says that this instance was elected in the term of its ballot, and makes its server a primary, or stops it
// to hand over. A disk that does not take the new timeline is no work.
func underway(i *Instance) bool {
	s, c := &i.server, i.command
	promotes := i.preemption != nil || c != nil && c.Kind == Promote ||
		s.begins.Timeline > 0 && !s.open && i.trouble.err == ""
	return i.Leads() && i.fence == nil && (promotes || s.stopping && i.last.Action == ha.Resign)
}

// decisives are the facts about an instance that make others decide anew.
type decisives struct {
	data                                                               ha.Data
	identifier                                                         string
	ballot                                                             ha.Ballot
	oldest                                                             wal.LSN
	starts                                                             int
	leading, resigned, defeated, lost, eligible, rebuilding, streaming bool
	stalls, underway                                                   bool
}

func decisive(p ha.Peer) decisives {
	return decisives{
		p.Data, p.SystemIdentifier, p.Ballot, p.Oldest, len(p.TermHistory),
		p.Leading, p.Resigned, p.Defeated, p.LeaderLost, p.Eligible, p.Rebuilding, p.Streaming, p.Stalls,
		p.Underway,
	}
}

// broadcastNews tells the others at once what makes them decide anew.
func (i *Instance) broadcastNews(said ha.Peer) {
	if now := decisive(said); now != i.told {
		i.told = now
		i.broadcast()
	}
}

// broadcast tells the others how this instance is. A reader has nothing to tell them.
func (i *Instance) broadcast() {
	if !i.config.Reader {
		i.emit(Broadcast{})
	}
}

// lookInterval is how often a standby is looked at that may have to take over, seldomLook how often where its leader
// has been lost for longer than electionTime: then there is nobody to wait for.
const (
	lookInterval = 100 * time.Millisecond
	seldomLook   = 2 * time.Second
	electionTime = 5 * time.Second
)

// observeServer wants to know how far the WAL of a standby goes that has lost its leader: what came last may decide who
// is elected, and the server is looked at too seldom for that while all is well. So it does where nobody listens at the
// leader's address any more: whether the stream has ended decides then.
//
// One that keeps its replay waiting, because somebody has told it to or reads there, is let do so until that is in the
// way: nobody else has been elected, and it would stand; or it can't receive what a leader has, which it asks for only
// when it has replayed what it has.
func (i *Instance) observeServer(said ha.Peer) {
	w, patience := &i.watch, ha.CampaignPatience+i.slack.own
	interval, lost := lookInterval, said.LeaderLost || refusedWhileStreaming(i)
	if !lost || i.ago(w.lost) > electionTime {
		interval = seldomLook
	}
	replay := said.Unreplayed > 0 && (i.last.Refusal == ha.RefusedReplaying && i.ago(w.lost) > patience ||
		!said.Streaming && i.ago(w.stalled.since) > patience)
	if (lost || replay) && i.server.role == ha.ServerStandby && i.command == nil && i.now-w.looked >= interval {
		w.looked = i.now
		i.emit(ObserveServer{Replay: replay})
	}
}

// refusedWhileStreaming says that nobody listens at the leader's address, and that this instance was seen to stream
// from it last: if that has ended, the leader is lost.
func refusedWhileStreaming(i *Instance) bool {
	h := i.news.heard[i.hardState.Ballot.Leader]
	return h != nil && i.server.seen.Streaming && h.refuses()
}

// believed are the peers that count, to be changed by the caller.
func (i *Instance) believed() map[string]ha.Peer { return maps.Clone(i.news.present) }
