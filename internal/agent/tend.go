package agent

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"toban.dev/internal/ha"
	"toban.dev/internal/ha/machine"
	"toban.dev/internal/naming"
	"toban.dev/internal/postgres"
	"toban.dev/internal/protocol"
)

// How often the server is looked at, and the slow chores are done. A primary
// that does not answer twice in a row, within the two deadlines, hangs: one late answer
// may be this agent's own pause.
const (
	lookInterval   = 500 * time.Millisecond
	standbyLook    = time.Second
	firstDeadline  = 1200 * time.Millisecond
	secondDeadline = 800 * time.Millisecond
	choreInterval  = 10 * time.Second
	newSessions    = time.Second
	// leastSpace is what a primary needs to go on writing WAL: one segment, in bytes.
	leastSpace = 16 << 20
)

// reasonNotAnswering is that of an instance whose server does not do what its role asks, reasonNotStreaming that of a
// standby that receives nothing.
const (
	reasonNotAnswering = "NotAnswering"
	reasonNotStreaming = "NotStreaming"
)

// tender looks after a running server with a session of its own. Only its
// goroutine uses it.
type tender struct {
	*running
	session  *postgres.Session
	failures int
	chores   time.Time // when the chores were last done
	archives bool      // the slot of the archive was among those that were kept then
	together time.Time // since when all members stream from the leader of the term, zero while not all do
	term     uint64    // that term
	pruned   uint64    // the term in which WAL of former timelines was removed
	entered  time.Time // when a new session was last tried
}

// tend looks after the server until ctx ends.
func (r *running) tend(ctx context.Context) {
	t := &tender{running: r}
	defer t.disconnect()
	for ctx.Err() == nil {
		t.lookOnce(ctx)
		interval := standbyLook
		if t.isPrimary() || t.failures > 0 {
			interval = lookInterval
		}
		timer := time.NewTimer(interval)
		select {
		case <-ctx.Done():
		case <-r.poke:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// lookOnce sees to everything that is to be done with the server, and reports how it is.
func (t *tender) lookOnce(ctx context.Context) {
	deadline := firstDeadline
	if t.failures > 0 {
		deadline = secondDeadline
	}
	began := time.Now()
	query, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	err := t.look(query)
	if ctx.Err() != nil || t.ended() {
		return // told to stop, or it has stopped: what the last query said does not matter
	}
	if postgres.TooManyClients(err) {
		t.Log.Warn("the server has no room for a session of the agent", "error", err.Error())
	}
	if err == nil || postgres.TooManyClients(err) {
		t.failures = 0
		t.see(func(s *seen) { s.failure = "" })
		t.tellMachine(err == nil)
		return
	}
	t.disconnect()
	t.failures++
	t.Log.Warn("the server does not do what its role asks", "error", err.Error(), "took", time.Since(began).String())
	if t.failures < 2 {
		t.running.look()
		return
	}
	t.see(func(s *seen) { s.failure = "the server does not answer: " + err.Error() })
	t.report(func(s *protocol.Status) {
		s.Ready, s.Streaming, s.Reason, s.Message = false, false, reasonNotAnswering, err.Error()
	})
	t.tellMachine(false)
}

// tellMachine tells the machine how the server is.
func (r *running) tellMachine(answers bool) {
	following, seen := r.following(), r.lastSeen()
	r.post(machine.ServerSeen{
		Run: r.run, Following: following.Term, Answers: answers, Streaming: seen.streaming, Received: seen.received,
		End: seen.end, Known: seen.known, Standbys: seen.standbys, Written: seen.written, Oldest: seen.oldest, Failure: seen.failure,
		Unelected: seen.unelected, Full: r.full.Load(),
	})
}

// look connects if need be, asks the server for its state, does the chores of
// its role and applies the config.
func (t *tender) look(ctx context.Context) error {
	if err := t.connect(ctx); err != nil {
		return err
	}
	state, err := t.session.State(ctx)
	if err != nil {
		return err
	}
	primary := t.isPrimary()
	if primary && state.InRecovery {
		return nil // it is being promoted
	}
	if !primary && !state.InRecovery {
		t.noteUnelected()
		return nil
	}
	if err := t.lookAtRole(ctx, state, primary); err != nil {
		return err
	}
	if t.take(&t.renewed) {
		if err := t.process.Reload(); err != nil {
			return err
		}
	}
	if err := t.applyConfig(ctx, t.session); err != nil {
		return err
	}
	return t.close(ctx)
}

// noteUnelected takes note of a server that was promoted, though it is run as a standby: the role loop ends it.
func (r *running) noteUnelected() {
	r.see(func(s *seen) { s.unelected = true })
	r.report(func(s *protocol.Status) { s.Ready, s.Streaming = false, false })
	r.tellMachine(true)
}

// close ends what clients there are, where none is to be let in any more.
func (t *tender) close(ctx context.Context) error {
	closed := t.currentConfig().Closed && t.closed()
	if closed {
		ended, err := t.session.EndClients(ctx)
		if err != nil {
			return err
		}
		closed = ended == 0 // those that were told to end are seen again until they have
	}
	t.report(func(s *protocol.Status) { s.Closed = closed })
	return nil
}

// closed says that the server lets no client in.
func (r *running) closed() bool {
	r.files.Lock()
	defer r.files.Unlock()
	return r.settings.Closed
}

// lookAtRole looks at what is particular to a role.
func (t *tender) lookAtRole(ctx context.Context, state postgres.State, primary bool) error {
	t.lookAtSpace()
	if err := t.forgetSuperseded(); err != nil {
		t.Log.Warn("WAL files of former timelines could not be removed", "error", err.Error())
	}
	if !primary {
		return t.lookAtStandby(ctx, state)
	}
	oldest, err := t.doChores(ctx)
	if err != nil {
		return err
	}
	if time.Since(t.entered) > newSessions {
		if err := t.enter(ctx); err != nil {
			return err
		}
		t.entered = time.Now()
	}
	voters, err := t.session.Standbys(ctx)
	if err != nil {
		return err
	}
	var standbys []string
	t.see(func(s *seen) {
		s.standbys = nil
		for _, v := range voters {
			s.standbys = append(s.standbys, ha.Voter(v))
			standbys = append(standbys, ha.Voter(v).Instance())
		}
	})
	slices.Sort(standbys)
	written, _ := ha.ParseLSN(state.LSN)
	t.see(func(s *seen) {
		if s.written = written; oldest != "" {
			s.oldest, _ = ha.ParseLSN(oldest)
		}
	})
	t.reportState(state, protocol.RolePrimary, standbys, oldest)
	return nil
}

// enter proves that a new session can be had: the postmaster may hang though
// the sessions there are go on.
func (t *tender) enter(ctx context.Context) error {
	session, err := t.server.Connect(ctx)
	if postgres.TooManyClients(err) {
		return nil
	}
	if err != nil {
		return err
	}
	session.Close()
	return nil
}

// lookAtStandby notes how far a standby is. One that follows nobody is asked for
// the end of its WAL.
func (t *tender) lookAtStandby(ctx context.Context, state postgres.State) error {
	received, _ := ha.ParseLSN(state.LSN) // "" where it has nothing yet
	if t.choresAreDue() {
		// The slots of a former primary would keep WAL for ever.
		if err := t.keepSlots(ctx, nil); err != nil {
			return err
		}
		t.chores = time.Now()
	}
	if err := t.lookAtBounds(ctx); err != nil {
		return err
	}
	var end ha.LSN
	known := false
	if t.following().Leader == "" {
		text, is, err := t.session.EndOfWAL(ctx)
		if err != nil {
			return err
		}
		end, _ = ha.ParseLSN(text)
		known = is
	}
	changed := false
	t.see(func(s *seen) {
		changed = s.streaming != state.Streaming || s.known != known
		s.streaming, s.received, s.end, s.known = state.Streaming, received, end, known
	})
	t.reportState(state, protocol.RoleStandby, nil, "")
	if changed {
		t.tellMachine(true)
	}
	if t.following().Leader == "" && !known {
		t.running.look()
		sleep(ctx, endInterval)
	}
	return nil
}

// lookAtBounds looks whether what keeps parameters higher than they are asked for
// is gone: what the primary has lowered may be lowered here too, once that is replayed.
func (t *tender) lookAtBounds(ctx context.Context) error {
	wanted, held := t.currentConfig().Parameters, false
	for name, bound := range t.lowerBounds() {
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
	t.setLeast(control.Least)
	return nil
}

// endInterval is how often the end of the WAL is asked for while it is not known.
const endInterval = 20 * time.Millisecond

// lookAtSpace notes whether there is room for WAL.
func (t *tender) lookAtSpace() {
	free, err := t.server.FreeSpace()
	if err != nil {
		t.Log.Warn("the free space of the volume is not known", "error", err.Error())
		return
	}
	t.full.Store(free < leastSpace)
}

func (t *tender) connect(ctx context.Context) error {
	if t.session != nil && !t.session.Broken() {
		return nil
	}
	session, err := t.server.Connect(ctx)
	if err != nil {
		return err
	}
	t.session = session
	return nil
}

func (t *tender) disconnect() {
	if t.session != nil {
		t.session.Close()
		t.session = nil
	}
}

// reportState makes the instance ready: its server has just done what its role asks.
func (t *tender) reportState(state postgres.State, role protocol.Role, standbys []string, oldest string) {
	following := t.following().Leader
	t.report(func(s *protocol.Status) {
		if t.ending.Load() {
			return
		}
		ready := t.opened.Load()
		if role != protocol.RolePrimary {
			ready = (s.Ready && s.Role == role || state.Streaming) && !t.stale.Load()
		}
		if ready && !s.Ready || s.Role != role {
			t.Log.Info("the server answers", "role", string(role), "ready", ready)
		}
		s.Role, s.Ready = role, ready
		if s.Reason == reasonNotAnswering {
			s.Reason, s.Message = "Answers", "the server answers again"
		}
		expected := s.Reason == "Follower" || s.Reason == "Answers" // else there is a better reason
		if role == protocol.RoleStandby && !s.Ready && following != "" && expected {
			s.Reason, s.Message = reasonNotStreaming, "does not stream from "+following+" yet"
		}
		s.ServerVersion, s.SystemIdentifier, s.Timeline = state.Version, state.SystemIdentifier, state.Timeline
		s.LSN, s.Streaming, s.Standbys = state.LSN, state.Streaming, standbys
		if oldest != "" {
			s.Oldest = oldest
		}
	})
	if s := t.Status(); s.Ready {
		t.wantPublished(s.Role)
	}
}

// doChores does, now and then, what a primary has to do besides taking writes:
// it proves that they work, keeps the standbys' role and slots, keeps applications out of the database postgres, and looks how far
// back the WAL goes.
func (t *tender) doChores(ctx context.Context) (oldest string, err error) {
	if !t.choresAreDue() {
		return "", nil
	}
	if err := t.session.ProveWrite(ctx); err != nil {
		return "", err
	}
	if err := t.session.EnsureReplication(ctx); err != nil {
		return "", err
	}
	if err := t.session.CloseMaintenance(ctx); err != nil {
		return "", err
	}
	if err := t.keepSlots(ctx, t.slots()); err != nil {
		return "", err
	}
	file, size, err := t.session.OldestWAL(ctx)
	if err != nil {
		return "", err
	}
	start, err := ha.SegmentStart(file, size)
	if err != nil {
		return "", fmt.Errorf("look how far back the WAL goes: %w", err)
	}
	t.chores = time.Now()
	return start.String(), nil
}

// choresAreDue says that it is time, or that there is a new archive: until its slot is there, nothing keeps the WAL for it.
func (t *tender) choresAreDue() bool {
	return time.Since(t.chores) > choreInterval || t.archives != (t.currentConfig().Archive != nil)
}

// keepSlots makes the slots there are to be, and lets go of the WAL that is archived.
func (t *tender) keepSlots(ctx context.Context, slots []string) error {
	archives := t.currentConfig().Archive != nil
	if err := t.session.EnsureSlots(ctx, t.withArchive(slots)); err != nil {
		return err
	}
	t.archives = archives
	return t.letWALGo(ctx, t.session)
}

// togetherLimit is how long all must have streamed from a leader for nobody to need WAL of former timelines.
const togetherLimit = 3 * time.Second

// forgetSuperseded removes WAL files of former timelines that a newer one has, once in a term, when
// nobody can need them any more.
func (t *tender) forgetSuperseded() error {
	m := t.memory.Get()
	if !t.allStream() || t.term != m.Ballot.Term {
		t.together, t.term = time.Time{}, m.Ballot.Term
		return nil
	}
	if t.together.IsZero() {
		t.together = time.Now()
	}
	last := len(m.Lineage) - 1
	if t.pruned == t.term || time.Since(t.together) < togetherLimit || last < 0 || m.Lineage[last].Term != t.term || m.Lineage[last].Timeline == 0 {
		return nil
	}
	removed, err := t.server.ForgetSuperseded(m.Lineage[last].Timeline)
	if err != nil {
		return err
	}
	if t.pruned = t.term; removed > 0 {
		t.Log.Info("removed WAL files of former timelines", "files", removed)
	}
	return nil
}

// allStream says that the leader leads, and every other member streams from it.
func (a *Agent) allStream() bool {
	ballot := a.memory.Get().Ballot
	status, ok := a.Status(), true
	if ballot.Leader != a.Name {
		status, ok = a.peers.last(ballot.Leader)
	}
	if !ok || status.Role != protocol.RolePrimary || status.Term != ballot.Term {
		return false
	}
	for _, m := range a.constituents() {
		if m.Name != ballot.Leader && !slices.Contains(status.Standbys, m.Name) {
			return false
		}
	}
	return true
}

// slots are those of the other members.
func (a *Agent) slots() []string {
	slots := []string{}
	for _, m := range a.constituents() {
		if m.Name != a.Name {
			slots = append(slots, naming.Slot(m.Name))
		}
	}
	return slots
}
