package agent

import (
	"context"
	"fmt"
	"io"
	"time"

	"toban.dev/internal/agent/identity"
	"toban.dev/internal/agent/running"
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
		TakeOver(h postgres.Handed, log io.Writer) (running.Process, error)
	})
	if !ok {
		return nil
	}
	process, err := server.TakeOver(t.Postmaster, a.serverLog)
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
	process running.Process
	began   time.Time
	machine *machine.Handover
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
