package agent

import (
	"context"
	"fmt"
	"io"
	"time"

	"toban.dev/internal/agent/identity"
	"toban.dev/internal/ha"
	"toban.dev/internal/ha/machine"
	"toban.dev/internal/postgres"
	"toban.dev/internal/protocol"
	"toban.dev/internal/volume"
)

// resume is the server and the elections as they were handed over, to go on with. It is nil where there is nothing that
// may be gone on with: then no server runs, and the instance begins as after a restart of the agent.
func (a *Agent) resume(ctx context.Context) *resumed {
	t, log := a.taking, a.options.Log
	if t == nil {
		return nil
	}
	server, ok := a.server.(interface {
		TakeOver(h postgres.Handed, log io.Writer) (Process, error)
	})
	if !ok {
		return nil
	}
	process, err := server.TakeOver(t.Postmaster, a.options.ServerLog)
	if err != nil {
		log.Warn("the server was not taken over", "error", err.Error())
		return nil
	}
	began, err := timeOf(t.Began)
	if err == nil && t.Machine.Fits(a.states.Get()) {
		log.Info("took the server over", "pid", t.Postmaster.PID, "role", string(t.Machine.Server.Role))
		return &resumed{process, began, &t.Machine}
	}
	log.Warn("the handover does not fit the hard state: the server is ended")
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopDeadline)
	defer cancel()
	process.Stop(ctx, postgres.StopImmediate)
	return nil
}

// resumed is what is gone on with.
type resumed struct {
	process Process
	began   time.Time
	machine *machine.Handover
}

// TakeOver takes over a postmaster that was handed over.
func (s realServer) TakeOver(h postgres.Handed, log io.Writer) (Process, error) {
	p, err := s.Server.TakeOver(h, log)
	if err != nil {
		return nil, err //nolint:wrapcheck // as Start
	}
	return p, nil
}

// takeOver looks after a server that runs and was handed over.
func (l *launcher) takeOver(ctx context.Context, t *taking, process Process) {
	l.demands.require(t.Machine.Server.Rule)
	r := l.prepare(ctx, t.Machine.Server.Run, &standing{
		primary: t.Standing.Primary, promoted: t.Standing.Promoted, upstream: t.Standing.Upstream, opened: true,
		least: t.Standing.Least, seen: seenOf(t.Machine.Server.Seen),
	})
	r.config.takeOver(process, t)
	l.flags.renewed.Store(true) // the certificate is another one
	r.attend()
}

// seenOf is what the monitor had seen that the machine was told of.
func seenOf(s machine.ServerSeen) seen {
	return seen{
		streaming: s.Streaming, received: s.Received, end: s.End, known: s.Known, unreplayed: s.Unreplayed,
		standbys: s.Standbys, written: s.Written, oldest: s.Oldest,
	}
}

// takeOver goes on with the configuration that a server runs with.
func (c *configuration) takeOver(process Process, t *taking) {
	c.files.Lock()
	c.settings, c.runs = t.Settings, t.Runs
	c.unruled.Store(t.Unruled)
	c.process = process
	c.files.Unlock()
	c.started(process)
}

// takenOver is what an instance says at first that goes on with its server: what it said before, as the process that it
// is now. What this one began with is not what the one before began with: others would take that for a volume that has
// gone back in time.
func takenOver(fresh, before protocol.Status, began ha.Progress) protocol.Status {
	s := before
	s.Name, s.Protocol, s.Boot, s.Number = fresh.Name, fresh.Protocol, fresh.Boot, fresh.Number
	s.Election.Began, s.Election.Limits = began, ha.OwnLimits()
	s.Program, s.Identity, s.Certificate = fresh.Program, fresh.Identity, fresh.Certificate
	return s
}

// Rehearse reads what an agent begins with, changes nothing, and says whether it could take a process over.
func Rehearse(ctx context.Context, options Options, format string) error {
	if format != fmt.Sprint(handoverFormat) {
		return fmt.Errorf("this program knows the handover's format %d, not %q", handoverFormat, format)
	}
	config, err := readConfig(options.ConfigFile)
	if err != nil {
		return err
	}
	if _, _, err := options.postgreSQL(ctx, config.Major); err != nil {
		return err
	}
	if err := identity.Check(options.Authority, config); err != nil {
		return err //nolint:wrapcheck // it says what
	}
	return volume.Check(options.Volume) //nolint:wrapcheck // it says what
}
