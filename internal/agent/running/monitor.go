package running

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"toban.dev/internal/agent/status"
	"toban.dev/internal/ha"
	"toban.dev/internal/pause"
	"toban.dev/internal/postgres"
	"toban.dev/internal/protocol"
	"toban.dev/internal/wal"
)

// How often the server is looked at. A primary
// that does not answer twice in a row, within the two deadlines, hangs: one late answer
// may be this agent's own pause.
const (
	lookInterval   = 500 * time.Millisecond
	standbyLook    = time.Second
	firstDeadline  = 1200 * time.Millisecond
	secondDeadline = 800 * time.Millisecond
	// firstAnswer and secondAnswer are how long a primary may take for what it has in memory: the second question goes
	// to a new session.
	firstAnswer  = 600 * time.Millisecond
	secondAnswer = 400 * time.Millisecond
	newSessions  = time.Second
	// busyPatience is for how long a server on a busy machine may not answer before it is taken for one that hangs.
	busyPatience = 15 * time.Second
	// answerLasts is for how long a standby's answer says that it would answer again.
	answerLasts = 5 * time.Second
	// busyDeadline is for how long one look may last on a busy machine.
	busyDeadline = 5 * time.Second
	// tendPatience is for how long a server that does what its role asks may be too busy for the rest of a look.
	tendPatience = 10 * time.Second
	// leastSpace is what a primary needs to go on writing WAL: one segment, in bytes.
	leastSpace = 16 << 20
)

// reasonNotAnswering is that of an instance whose server does not do what its role asks, reasonNotStreaming that of a
// standby that receives nothing, ReasonRefuses that of one whose server answers, and refuses its agent.
const (
	ReasonNotAnswering = "NotAnswering"
	ReasonRefuses      = "RefusesAgent"
	ReasonNotStreaming = "NotStreaming"
)

// monitor looks after a running server with a session of its own. Only its
// goroutine uses it.
type monitor struct {
	server   PostgreSQL
	process  Process
	standing *Standing
	reporter *reporter
	config   *configuration
	// wanted is the config as last given.
	wanted     func() protocol.Config
	lateness   lateness
	chores     *chores
	superseded *superseded
	presented  *presented
	flags      *Flags
	status     *status.Board
	// term is the one that this instance has been elected for last.
	term func() uint64
	// ending says that the server is being ended: nothing is said of it any more.
	ending *atomic.Bool
	// checkpoint begins a checkpoint.
	checkpoint func()
	// publish takes the role in which clients may find the server.
	publish func(protocol.Role)
	poke    poke
	// idle is for how long no client has done anything.
	idle  *Idle
	looks looks
	log   *slog.Logger

	session   Session
	end       end
	beginning beginning
	entered   time.Time // when a new session was last tried
	// spared is since when the server runs as one whose volume gets full, zero while it does not.
	spared time.Time
}

// end is how the end of a standby's WAL is looked for.
type end struct {
	// pauses are those until it is asked for again while it is not known.
	pauses pause.Growing
	// asked says that it is wanted though the standby follows somebody: its leader is lost. hasten says that its replay
	// must not wait for anything.
	asked, hasten atomic.Bool
}

// Flags are what is known of an instance whichever server runs.
type Flags struct {
	// full says whether the volume has no room for WAL, Slow that a write to it has not come back for a while, Stale
	// whether a standby has not streamed for long that should, Renewed that there is a certificate which the server has
	// not read yet.
	full, Slow, Stale, Renewed atomic.Bool
	// linked says that a standby has slots of a link that come along: only from the primary it learns that they are
	// gone.
	linked atomic.Bool
	// Sparing says how a server is to go on lest the volume gets full, nil where there is enough room; EndReads that
	// those who read are to be ended; Short that the volume is to grow.
	Sparing  atomic.Pointer[postgres.Sparing]
	EndReads atomic.Bool
	Short    atomic.Bool
}

// poke makes a monitor look at once.
type poke chan struct{}

// observe makes it do so.
func (p poke) observe() {
	select {
	case p <- struct{}{}:
	default:
	}
}

// run looks after the server until ctx ends.
func (t *monitor) run(ctx context.Context) {
	defer t.disconnect()
	t.idle.begin(time.Now())
	for ctx.Err() == nil {
		t.observeOnce(ctx)
		interval := standbyLook
		if t.standing.IsPrimary() || t.looks.failures > 0 {
			interval = lookInterval
		}
		timer := time.NewTimer(pause.Until(interval))
		select {
		case <-ctx.Done():
		case <-t.poke:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// observeOnce sees to everything that is to be done with the server, and reports how it is.
func (t *monitor) observeOnce(ctx context.Context) {
	began := t.looks.pressure.Mark()
	query, cancel := context.WithTimeout(ctx, t.looks.deadline())
	defer cancel()
	silent, err := t.observe(query)
	if ctx.Err() != nil || Ended(t.process) {
		return // told to stop, or it has stopped: what the last query said does not matter
	}
	if postgres.TooManyClients(err) {
		t.log.Warn("the server has no room for a session of the agent", "error", err.Error())
	}
	if err == nil {
		t.looks.tended = time.Now()
	}
	refused := t.reportLook(err)
	if err == nil || refused || postgres.TooManyClients(err) {
		t.looks.succeeded()
		t.standing.See(func(s *Seen) { s.failure, s.hangs = "", false })
		t.reporter.report(err == nil || refused && t.looks.proven || t.answersStill())
		return
	}
	t.disconnect()
	late := query.Err() != nil || errors.Is(err, context.DeadlineExceeded) // else it has answered, and refused
	if late {
		t.looks.pressure.GivenUp(began)
	}
	twice := t.looks.failed(late, silent)
	t.log.Warn("the server does not do what its role asks", "error", err.Error(), "took", began.Since().String())
	if !twice {
		t.poke.observe()
		return
	}
	t.standing.See(func(s *Seen) { s.failure, s.hangs = "the server does not answer: "+err.Error(), late })
	t.status.Change(func(s *protocol.Status) {
		s.Ready, s.Streaming, s.Reason, s.Message = false, false, ReasonNotAnswering, err.Error()
	})
	t.reporter.report(t.answersStill())
}

// answersStill says of a standby that it has answered a moment ago: whatever else of a look has failed since, it would
// say how far its WAL goes.
func (t *monitor) answersStill() bool {
	return !t.standing.IsPrimary() && time.Since(t.looks.answered) < answerLasts
}

// observe asks the server for its state, and sees to it. It says whether a primary did not say what it has in memory.
func (t *monitor) observe(ctx context.Context) (silent bool, err error) {
	t.looks.proven, t.looks.observed = false, false
	state, silent, err := t.state(ctx)
	if err != nil {
		return silent, err
	}
	return false, t.observeState(ctx, state)
}

// observeState has the server prove that it does what its role asks, and then sees to the rest: the chores of its role,
// how it is, and the config.
func (t *monitor) observeState(ctx context.Context, state postgres.State) error {
	primary := t.standing.IsPrimary() // by now: it may have been made one while it was asked
	if primary && state.InRecovery {
		return nil // it is being promoted
	}
	if !primary && !state.InRecovery {
		t.reporter.unelected()
		return nil
	}
	t.observeSpace()
	if err := t.prove(ctx, primary); err != nil {
		return err
	}
	t.looks.proven, t.looks.answered = true, time.Now()
	tended := t.tend(ctx, state, primary)
	if tended != nil && !postgres.RefusesBesides(tended) {
		return tended
	}
	return errors.Join(tended, t.update(ctx)) // what it refuses may be for the configuration that it has
}

// tend does the chores of a server's role, and looks at what is particular to it, also where it refuses a chore.
func (t *monitor) tend(ctx context.Context, state postgres.State, primary bool) error {
	oldest, refused := t.upkeep(ctx, primary, state.Streaming)
	if refused != nil && !postgres.RefusesBesides(refused) {
		return refused
	}
	if err := t.observeRole(ctx, state, primary, oldest); err != nil {
		return err
	}
	t.looks.observed, t.looks.tended = true, time.Now()
	return refused
}

// state connects if need be, and asks the server for its state. Where that takes long, the machine is busy, or the
// server hangs: a primary is silent then.
func (t *monitor) state(ctx context.Context) (state postgres.State, silent bool, err error) {
	primary := t.standing.IsPrimary()
	memory, cancel := ctx, func() {}
	if primary {
		memory, cancel = context.WithTimeout(ctx, t.looks.answer())
	}
	defer cancel()
	if err = t.connect(memory); err == nil {
		state, err = t.session.StateWithin(ctx, memory)
	}
	if err != nil {
		late := memory.Err()
		silent = primary && state.Took == 0 && errors.Is(late, context.DeadlineExceeded)
		return postgres.State{}, silent, errors.Join(err, late)
	}
	t.looks.pressure.Late(state.Took)
	return state, false, nil
}

// prove has a primary write to its WAL and take a new session, each now and then. A standby has answered: that is all.
func (t *monitor) prove(ctx context.Context, primary bool) error {
	if !primary {
		return nil
	}
	if t.chores.due(t.wanted()) {
		if err := t.session.ProveWrite(ctx); err != nil {
			return err
		}
	}
	if time.Since(t.entered) <= newSessions {
		return nil
	}
	if err := t.enter(ctx); err != nil {
		return err
	}
	t.entered = time.Now()
	return nil
}

// update has the server run with what is wanted now.
func (t *monitor) update(ctx context.Context) error {
	if t.flags.Renewed.Swap(false) {
		if err := t.process.Reload(); err != nil {
			return err
		}
	}
	t.presented.observe(ctx)
	return each(
		func() error { return t.configure(ctx) },
		func() error { return t.spareRoom(ctx) },
		func() error { return t.observeIdle(ctx) },
		func() error { return t.endClients(ctx) },
	)
}

// configure has the server run with what is configured, and looks whether sessions begin so.
func (t *monitor) configure(ctx context.Context) error {
	if err := t.config.apply(ctx, t.session); err != nil {
		return err
	}
	if err := t.config.prove(ctx, t.session); err != nil {
		t.log.Warn("it is not known whether sessions begin with the configuration", "error", err.Error())
	}
	return nil
}

// upkeep does what is to be done with a server now and then. Of a primary it tells where the oldest WAL begins, ""
// where it was not looked.
func (t *monitor) upkeep(ctx context.Context, primary, streams bool) (oldest string, err error) {
	if err := t.superseded.remove(); err != nil {
		t.log.Warn("WAL files of former timelines could not be removed", "error", err.Error())
	}
	if primary {
		return t.chores.ofPrimary(ctx, t.session)
	}
	return "", t.chores.ofStandby(ctx, t.session, streams)
}

// observeRole looks at what is particular to a role.
func (t *monitor) observeRole(ctx context.Context, state postgres.State, primary bool, oldest string) error {
	if !primary {
		return t.observeStandby(ctx, state)
	}
	return t.observePrimary(ctx, state, oldest)
}

// observePrimary looks who streams from a primary.
func (t *monitor) observePrimary(ctx context.Context, state postgres.State, oldest string) error {
	names, impostors, err := t.session.Standbys(ctx)
	if err != nil {
		return err
	}
	for _, who := range impostors {
		t.log.Warn("ended replication that passes for a standby's, and acknowledges commits that no standby has: "+
			"give it another application_name", "who", who)
	}
	var voters []ha.Voter
	var standbys []string
	for _, name := range names {
		if v, follows := ha.Follower(name, t.term()); follows {
			voters, standbys = append(voters, v), append(standbys, v.Instance())
		}
	}
	slices.Sort(standbys)
	written, _ := wal.ParseLSN(state.LSN)
	t.standing.See(func(s *Seen) {
		s.standbys = voters
		if s.written = written; oldest != "" {
			s.oldest, _ = wal.ParseLSN(oldest)
		}
	})
	t.reportState(state, protocol.RolePrimary, standbys, oldest)
	return nil
}

// observeLateness notes whether a standby is too late to be read.
func (t *monitor) observeLateness(state postgres.State, received wal.LSN) {
	replayed, _ := wal.ParseLSN(state.Replayed)
	waits, most := t.lateness.see(received, replayed, time.Now()), t.wanted().ReadMaxLag
	late := most > 0 && waits > most
	if t.status.Get().Late == late {
		return
	}
	t.log.Info("whether clients may read here", "late", late, "waits", waits.String(), "most", most.String())
	t.status.Change(func(s *protocol.Status) { s.Late = late })
}

// observeStandby notes how far a standby is. One that follows nobody, or that has lost its leader, is asked for the end
// of its WAL.
func (t *monitor) observeStandby(ctx context.Context, state postgres.State) error {
	if t.looks.hang(state.Hangs) {
		t.log.Warn("the WAL receiver hangs: it is killed, and the server begins anew")
		if err := t.process.KillReceiver(); err != nil {
			t.log.Warn("the WAL receiver could not be killed", "error", err.Error())
		}
	}
	received, _ := wal.ParseLSN(state.LSN) // "" where it has nothing yet
	replayed, _ := wal.ParseLSN(state.Replayed)
	if err := t.observeBounds(ctx); err != nil {
		return err
	}
	end := postgres.End{Unreplayed: received.Since(replayed)}
	follows := t.standing.following().Leader != ""
	if asked := t.end.asked.Swap(false); asked || !follows {
		var err error
		if end, err = t.endOfWAL(ctx); err != nil {
			return err
		}
		received, end.Known = end.LSN, end.Known && !follows
	}
	changed := false
	t.standing.See(func(s *Seen) {
		changed = s.streaming != state.Streaming || s.Known != end.Known
		s.streaming, s.received, s.End, s.Known = state.Streaming, received, end.LSN, end.Known
		s.Unreplayed = end.Unreplayed
	})
	t.observeLateness(state, received)
	t.reportState(state, protocol.RoleStandby, nil, "")
	if changed {
		t.reporter.report(true)
	}
	t.awaitEnd(ctx, end.Known && end.Unreplayed == 0 || t.standing.following().Leader != "")
	t.awaitStream(ctx, state.Streaming)
	return nil
}

// endOfWAL is the end of a standby's WAL. What holds its replay up is ended where that must not wait.
func (t *monitor) endOfWAL(ctx context.Context) (postgres.End, error) {
	if t.end.hasten.Swap(false) {
		if err := t.session.HastenReplay(ctx, true); err != nil {
			return postgres.End{}, err
		}
	}
	return t.session.EndOfWAL(ctx)
}

// observeBounds looks whether what keeps parameters higher than they are asked for
// is gone: what the primary has lowered may be lowered here too, once that is replayed.
func (t *monitor) observeBounds(ctx context.Context) error {
	wanted, held := t.wanted().Parameters, false
	for name, bound := range t.standing.lowerBounds() {
		value, err := strconv.Atoi(wanted[name])
		held = held || err == nil && value < bound
	}
	if !held {
		return nil
	}
	control, err := t.server.Control(ctx)
	if err != nil {
		return err
	}
	t.standing.setLeast(control.Least)
	return nil
}

func (t *monitor) connect(ctx context.Context) error {
	if t.session != nil && !t.session.Broken() {
		return nil
	}
	session, err := t.server.Connect(ctx)
	if postgres.RefusesUs(err) {
		return loginRefused{err}
	}
	if err != nil {
		return err
	}
	t.session = session
	return nil
}

func (t *monitor) disconnect() {
	if t.session != nil {
		t.session.Close()
		t.session = nil
	}
}

// isReady says whether a server that has just answered does what its role asks: a primary that lets clients in, and a
// standby that streams or has streamed a moment ago.
func (t *monitor) isReady(before *protocol.Status, role protocol.Role, streams bool) bool {
	if role == protocol.RolePrimary {
		return t.standing.IsOpen()
	}
	return (before.Ready && before.Role == role || streams) && !t.flags.Stale.Load()
}

// reportState makes the instance ready: its server has just done what its role asks.
func (t *monitor) reportState(state postgres.State, role protocol.Role, standbys []string, oldest string) {
	t.status.Change(func(s *protocol.Status) {
		if t.ending.Load() {
			return
		}
		ready := t.isReady(s, role, state.Streaming)
		if ready && !s.Ready || s.Role != role {
			t.log.Info("the server answers", "role", string(role), "ready", ready)
		}
		s.Role, s.Ready = role, ready
		s.ServerVersion, s.SystemIdentifier, s.Timeline = state.Version, state.SystemIdentifier, state.Timeline
		s.LSN, s.Streaming, s.Standbys, s.Started = state.LSN, state.Streaming, standbys, state.Started
		if oldest != "" {
			s.Oldest = oldest
		}
	})
	switch s := t.status.Get(); {
	case s.Role == protocol.RoleStandby && t.standing.IsPrimary():
		// It is being promoted since this look began, and is published as what it is about to be.
	case s.Ready && s.Role == protocol.RoleStandby && s.Late:
		t.publish(protocol.RoleNone)
	case s.Ready:
		t.publish(s.Role)
	}
}
