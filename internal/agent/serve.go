package agent

import (
	"context"
	"fmt"
	"time"

	"toban.dev/internal/ha"
	"toban.dev/internal/naming"
	"toban.dev/internal/postgres"
	"toban.dev/internal/protocol"
)

// How often the slow chores are done, and how long a fast stop may take before
// it becomes an immediate one. The Pod's grace period is longer.
const (
	choreInterval = 10 * time.Second
	stopDeadline  = 90 * time.Second
)

// running is a server in a role: what runPrimary and runStandby share.
type running struct {
	*Agent
	role     protocol.Role
	decision ha.Decision
	process  *postgres.Process
	session  *postgres.Session
	// settings and revision are those that the server runs with.
	settings postgres.Settings
	revision string
	// chores is when the chores were last done.
	chores time.Time
}

// runPrimary is being primary. When it returns, the server does not run, so it
// takes no writes.
func (a *Agent) runPrimary(ctx context.Context, d ha.Decision) error {
	if err := a.server.SetStandby(false); err != nil {
		return err
	}
	return (&running{Agent: a, role: protocol.RolePrimary, decision: d}).run(ctx)
}

// runStandby is being a standby of the decision's target.
func (a *Agent) runStandby(ctx context.Context, d ha.Decision) error {
	if err := a.server.SetStandby(true); err != nil {
		return err
	}
	return (&running{Agent: a, role: protocol.RoleStandby, decision: d}).run(ctx)
}

// run starts the server, tends it while the decision stays the same, and stops it.
func (r *running) run(ctx context.Context) error {
	if err := r.longStep(func() error { return r.start(ctx) }); err != nil {
		return err
	}
	defer r.stop(ctx)
	for {
		if err := r.tend(ctx); err != nil {
			return err
		}
		r.pauseOrEnd(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-r.process.Done():
			return r.process.Err()
		default:
		}
		if same, err := r.stays(ctx); err != nil || !same {
			return err
		}
		if r.take(&r.restart) {
			r.Log.Info("restarting the server, as asked")
			return nil
		}
	}
}

// pauseOrEnd waits for the next look, for news, or for the server's end.
func (r *running) pauseOrEnd(ctx context.Context) {
	wait, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-r.process.Done():
			cancel()
		case <-wait.Done():
		}
	}()
	r.pause(wait, tickInterval)
}

// stays says whether the instance is still to be what it is.
func (r *running) stays(ctx context.Context) (bool, error) {
	d, err := r.decide(ctx)
	if err != nil {
		return false, err
	}
	same := d.Action == r.decision.Action && d.Target == r.decision.Target && d.Ballot == r.decision.Ballot
	return same, nil
}

// tend sees to everything that is to be done with a running server, and reports
// how it is. Trouble of the server is reported, not returned: it may pass.
func (r *running) tend(ctx context.Context) error {
	r.settle(true)
	query, cancel := context.WithTimeout(ctx, queryDeadline)
	defer cancel()
	err := r.look(query)
	if ctx.Err() != nil {
		return nil // told to stop: what the last query said does not matter
	}
	if err != nil {
		r.disconnect()
		r.Log.Warn("the server does not do what its role asks", "role", string(r.role), "error", err.Error())
		r.report(func(s *protocol.Status) {
			s.Ready, s.Streaming, s.Reason, s.Message = false, false, "NotAnswering", err.Error()
		})
	}
	return nil
}

// look connects if need be, applies the config, does the role's chores and asks
// the server for its state.
func (r *running) look(ctx context.Context) error {
	if err := r.connect(ctx); err != nil {
		return err
	}
	if err := r.applyConfig(ctx); err != nil {
		return err
	}
	if r.take(&r.renewed) {
		if err := r.process.Reload(); err != nil {
			return err
		}
	}
	state, err := r.session.State(ctx)
	if err != nil {
		return err
	}
	if state.InRecovery != (r.role == protocol.RoleStandby) {
		return fmt.Errorf("the server is in recovery: %t, which is not what a %s is", state.InRecovery, r.role)
	}
	standbys, oldest, err := r.doChores(ctx)
	if err != nil {
		return err
	}
	r.reportState(state, standbys, oldest)
	return nil
}

func (r *running) connect(ctx context.Context) error {
	if r.session != nil && !r.session.Broken() {
		return nil
	}
	session, err := r.server.Connect(ctx)
	if err != nil {
		return err
	}
	r.session = session
	return nil
}

func (r *running) disconnect() {
	if r.session != nil {
		r.session.Close()
		r.session = nil
	}
}

// reportState makes the instance ready: its server has just done what its role asks.
func (r *running) reportState(state postgres.State, standbys []string, oldest string) {
	r.report(func(s *protocol.Status) {
		if !s.Ready || s.Role != r.role {
			r.Log.Info("the instance is ready", "role", string(r.role))
		}
		s.Role, s.Ready = r.role, r.role == protocol.RolePrimary || s.Ready || state.Streaming
		s.Reason, s.Message = r.decision.Reason, r.decision.Message
		if r.role == protocol.RoleStandby && !s.Ready {
			s.Reason, s.Message = "NotStreaming", "does not stream from "+r.decision.Target+" yet"
		}
		s.ServerVersion, s.SystemIdentifier, s.Timeline = state.Version, state.SystemIdentifier, state.Timeline
		s.LSN, s.Streaming, s.Standbys = state.LSN, state.Streaming, standbys
		if oldest != "" {
			s.Oldest = oldest
		}
	})
	if r.Status().Ready {
		r.wantPublished(r.role)
	}
}

// doChores does what a primary has to do besides taking writes.
func (r *running) doChores(ctx context.Context) (standbys []string, oldest string, err error) {
	if r.role != protocol.RolePrimary {
		return nil, "", nil
	}
	if time.Since(r.chores) > choreInterval {
		if oldest, err = r.slowChores(ctx); err != nil {
			return nil, "", err
		}
		r.chores = time.Now()
	}
	standbys, err = r.session.Standbys(ctx)
	return standbys, oldest, err
}

// slowChores proves that writes work, keeps the standbys' role and slots, and
// looks how far back the WAL goes.
func (r *running) slowChores(ctx context.Context) (oldest string, err error) {
	if err := r.session.ProveWrite(ctx); err != nil {
		return "", err
	}
	if err := r.session.EnsureReplication(ctx); err != nil {
		return "", err
	}
	if err := r.session.EnsureSlots(ctx, r.slots()); err != nil {
		return "", err
	}
	file, size, err := r.session.OldestWAL(ctx)
	if err != nil {
		return "", err
	}
	start, err := ha.SegmentStart(file, size)
	if err != nil {
		return "", err
	}
	return start.String(), nil
}

// slots are those of the other members.
func (r *running) slots() []string {
	slots := []string{}
	for _, m := range r.currentConfig().Members {
		if m.Name != r.Name {
			slots = append(slots, naming.Slot(m.Name))
		}
	}
	return slots
}

// stop stops the server, with a checkpoint before the sessions are ended, so
// that nobody waits for it.
func (r *running) stop(ctx context.Context) {
	r.report(func(s *protocol.Status) { s.Ready, s.Streaming = false, false })
	within, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopDeadline)
	defer cancel()
	if r.session != nil && r.role == protocol.RolePrimary {
		if err := r.session.Checkpoint(within); err != nil {
			r.Log.Info("no checkpoint before the stop", "error", err.Error())
		}
	}
	r.disconnect()
	r.setBusy(true)
	r.process.Stop(within, postgres.StopFast)
	r.setBusy(false)
	r.Log.Info("the server has stopped", "role", string(r.role))
}
