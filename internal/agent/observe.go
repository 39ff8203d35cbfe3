package agent

import (
	"context"
	"math"
	"time"

	"toban.dev/internal/ha"
	"toban.dev/internal/protocol"
)

// watch is what the role loop remembers from one look to the next: since when
// something has been so. Only the role loop uses it.
type watch struct {
	ballot ha.Ballot
	// since is when the ballot became what it is, led when somebody was last seen
	// to lead in it.
	since, led time.Time
	// idle is since when the leader has answered without leading, stalled since when
	// a standby has not streamed though it leads, streams since when it has.
	idle, stalled, streams time.Time
	// rests is until when no campaign begins, resigned when this instance gave up
	// the term resignedTerm.
	rests, resigned time.Time
	resignedTerm    uint64
	// overtakes is the term before which a leader may hold on, for all that is known.
	overtakes uint64
	successor string
	// failed says why the primary's server does not serve.
	failed       string
	rewindFailed bool
	// lacksRoom is how much must be free for a copy to be tried beside the data, in bytes, 0 while none has failed for want of it.
	lacksRoom uint64
	// unelected says that the server was seen to take writes as a standby; until its data is marked.
	unelected bool
	// end is the end of the WAL, once it is known for good.
	end   ha.LSN
	known bool
}

// observe collects the view. What can't be learned is absent in it.
func (a *Agent) observe(ctx context.Context) ha.View {
	config, m := a.currentConfig(), a.memory.Get()
	a.watch.turn(m.Ballot)
	view := ha.View{
		Self:             a.Name,
		SystemIdentifier: config.SystemIdentifier,
		Async:            config.Durability == durabilityAsync,
		Witness:          config.Witness,
		Peers:            a.peers.answers(),
		Wish:             a.currentWish(),
		Local:            ha.Local{Memory: m, RewindFailed: a.watch.rewindFailed, NoRoom: a.noRoom(), Limits: a.limits()},
	}
	for _, member := range config.Members {
		view.Members = append(view.Members, member.Name)
	}
	a.observeData(ctx, &view.Local)
	a.observeServer(&view.Local)
	a.observeLeader(view.Peers, &view.Local)
	a.observeQuorum(view.Wish, &view.Local)
	return view
}

// turn begins the watch anew when the ballot has changed.
func (w *watch) turn(ballot ha.Ballot) {
	if ballot == w.ballot {
		return
	}
	w.ballot, w.since, w.led = ballot, time.Now(), time.Now()
	w.idle, w.stalled, w.streams = time.Time{}, time.Time{}, time.Time{}
}

// observeData looks at the data directory. What can't be read stays unknown.
func (a *Agent) observeData(ctx context.Context, local *ha.Local) {
	incomplete, err := a.server.Incomplete()
	present, forked := false, false
	if err == nil && !incomplete {
		present, err = a.server.HasData()
	}
	if err == nil && present {
		forked, err = a.server.Forked()
	}
	switch {
	case err == nil && incomplete:
		local.Data = ha.DataIncomplete
		return
	case err != nil:
		a.Log.Warn("the data directory can't be read", "error", err.Error())
		return
	case !present:
		local.Data = ha.DataEmpty
		return
	case forked:
		local.Data = ha.DataForked
		return
	}
	if id := a.Status().SystemIdentifier; id != "" {
		local.Data, local.SystemIdentifier = ha.DataPresent, id
		return
	}
	control, err := a.server.Control(ctx)
	if err != nil {
		a.Log.Warn("the control file can't be read", "error", err.Error())
		return
	}
	local.Data, local.SystemIdentifier = ha.DataPresent, control.SystemIdentifier
	a.report(func(s *protocol.Status) { s.SystemIdentifier = control.SystemIdentifier })
}

// observeServer takes what was last seen of the running server.
func (a *Agent) observeServer(local *ha.Local) {
	w := &a.watch
	local.Known, local.End = w.known, w.end
	local.Resigned = w.resignedTerm == local.Memory.Ballot.Term && time.Since(w.resigned) < ha.IdleLimit
	local.Failed = w.failed
	local.Full = a.full.Load()
	local.Resting = time.Now().Before(w.rests)
	if a.running != nil && a.running.lastSeen().unelected {
		w.unelected = true
	}
	local.Unelected = w.unelected
	if a.running == nil {
		return
	}
	local.Server, local.Following = a.running.role, a.running.following().Term
	seen := a.running.lastSeen()
	local.Streaming, local.Received = seen.streaming, seen.received
	if seen.known && local.Server == ha.ServerStandby && local.Following == 0 {
		local.Known, local.End = true, seen.end
	}
	if local.Server == ha.ServerPrimary && seen.failure != "" {
		local.Failed = seen.failure
	}
}

// observeLeader measures for how long the leader of the ballot has been what it is.
func (a *Agent) observeLeader(peers map[string]ha.Peer, local *ha.Local) {
	w, ballot := &a.watch, local.Memory.Ballot
	leader, heard := peers[ballot.Leader]
	leads := heard && leader.Leading && leader.Ballot.Term == ballot.Term
	own := ballot.Leader == a.Name && local.Server == ha.ServerPrimary && a.running.confirmed.Load()
	if leads || own {
		w.led, w.idle = time.Now(), time.Time{}
	} else if heard && w.idle.IsZero() {
		w.idle = time.Now()
	}
	// A server that does not even start is no better than one that does not stream.
	w.stall(leads && ballot.Leader != a.Name && local.Server != ha.ServerPrimary && local.Data == ha.DataPresent, local.Streaming)
	local.Leaderless, local.Idle, local.Stalled = time.Since(w.led), ago(w.idle), ago(w.stalled)
	if ballot.Leader == a.Name {
		return
	}
	local.Silence = min(time.Since(a.peers.asked(ballot.Leader)), time.Since(w.since))
	local.Refused = min(a.peers.refusing(ballot.Leader), time.Since(w.since))
	if local.Silence > local.Limits.Silence || local.Refused > ha.RefusedLimit {
		local.Leaderless = max(local.Leaderless, local.Silence-local.Limits.Silence)
	}
}

// streamsLimit is how long a stalled standby must have streamed to count as one that does: a receiver that begins and
// fails again and again streams for a moment each time.
const streamsLimit = 3 * time.Second

// stall notes since when a standby has not streamed that should.
func (w *watch) stall(should, streams bool) {
	switch {
	case !should:
		w.stalled, w.streams = time.Time{}, time.Time{}
	case !streams:
		w.streams = time.Time{}
		if w.stalled.IsZero() {
			w.stalled = time.Now()
		}
	case w.streams.IsZero():
		w.streams = time.Now()
	case time.Since(w.streams) > streamsLimit:
		w.stalled = time.Time{}
	}
}

// ago is how long ago something began, 0 where it has not.
func ago(since time.Time) time.Duration {
	if since.IsZero() {
		return 0
	}
	return time.Since(since)
}

// observeQuorum measures when a majority last knew of no later term, and has the witness looked at where that matters.
func (a *Agent) observeQuorum(wish ha.Wish, local *ha.Local) {
	a.measureQuorum(local)
	term, leads := a.led()
	leaves, alone := wish.Resign || local.Failed != "", local.Alone > unconfirmedLooks
	if local.Server == ha.ServerPrimary && !leads {
		term = 0 // it has been overtaken, and is to be released when its server has stopped
	}
	a.witness.hold(term, leads && alone && local.Server == ha.ServerPrimary)
	a.witness.want(leads && (leaves || alone) || !leads && local.Leaderless > 0 || a.witness.released.Load() > 0)
}

// measureQuorum measures by what the others and the witness have said, and asks nobody.
func (a *Agent) measureQuorum(local *ha.Local) {
	m := local.Memory
	ages := map[ha.Voter]time.Duration{}
	for _, voter := range m.Record.Voters() {
		status, asked, ok := a.peers.last(voter.Instance())
		lost := status.Election.LeaderLost && status.Term == m.Ballot.Term // it may be giving its vote to another
		if ok && status.Election.Voter == voter && status.Term <= m.Ballot.Term && !lost {
			ages[voter] = time.Since(asked)
		}
	}
	witness := a.witness.last()
	local.WitnessReachable = time.Since(witness.at) < witnessCounts
	if local.WitnessReachable {
		local.WitnessBallot = witness.ballot
	}
	local.Unconfirmed = ha.Unconfirmed(m, ages, time.Since(witness.at))
	local.Alone = ha.Unconfirmed(m, ages, math.MaxInt64)
	term, leads := a.led()
	local.Holds = leads && witness.holding == term && witness.ballot.Term <= term && time.Since(witness.at) <= local.Limits.Hold
}
