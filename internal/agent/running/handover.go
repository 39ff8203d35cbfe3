package running

import (
	"context"
	"errors"
	"fmt"
	"io"

	"toban.dev/internal/ha"
	"toban.dev/internal/ha/machine"
	"toban.dev/internal/postgres"
)

// Handed is a server that runs, and the elections, as they are handed over.
type Handed struct {
	Postmaster postgres.Handed  `json:"postmaster"`
	Machine    machine.Handover `json:"machine"`
	Standing   handedStanding   `json:"standing"`
	// Runs is the configuration that the server runs with, Settings what that became. Unruled is configuration.unruled.
	Runs     candidate         `json:"runs"`
	Settings postgres.Settings `json:"settings"`
	Unruled  bool              `json:"unruled"`
}

// handedStanding is the standing of the server that runs.
type handedStanding struct {
	Primary  bool           `json:"primary"`
	Promoted bool           `json:"promoted"`
	Upstream ha.Ballot      `json:"upstream"`
	Least    map[string]int `json:"least,omitempty"`
}

// HandOver is what the next program has to know of the server that runs and its configuration; the process is not in
// it. undo has all go on here. The configuration is not changed until then.
func (r *Server) HandOver(h *Handed) (undo func(), err error) {
	if !r.Config.files.TryLock() {
		return nil, fmt.Errorf("%w: the configuration is being applied", ErrBusy)
	}
	process, ok := r.Process.(interface {
		HandOver() (postgres.Handed, func(), error)
	})
	if !ok {
		r.Config.files.Unlock()
		return nil, errors.New("this server can't be handed over")
	}
	postmaster, resume, err := process.HandOver()
	if err != nil {
		r.Config.files.Unlock()
		return nil, err //nolint:wrapcheck // it says what
	}
	h.Postmaster, h.Runs, h.Settings, h.Unruled = postmaster, r.Config.runs, r.Config.settings, r.Config.Unruled.Load()
	h.Standing = r.Standing.handOver()
	return func() { resume(); r.Config.files.Unlock() }, nil
}

func (s *Standing) handOver() handedStanding {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return handedStanding{Primary: s.primary, Promoted: s.promoted, Upstream: s.upstream, Least: s.least}
}

// TakeOver takes over a postmaster that was handed over.
func (s Real) TakeOver(h postgres.Handed, log io.Writer) (Process, error) {
	p, err := s.Server.TakeOver(h, log)
	if err != nil {
		return nil, err //nolint:wrapcheck // as Start
	}
	return p, nil
}

// TakeOver looks after a server that runs and was handed over.
func (l *Launcher) TakeOver(ctx context.Context, t *Handed, process Process) {
	l.Require(t.Machine.Server.Rule)
	r := l.prepare(ctx, t.Machine.Server.Run, &Standing{
		primary: t.Standing.Primary, promoted: t.Standing.Promoted, upstream: t.Standing.Upstream, opened: true,
		least: t.Standing.Least, seen: seenOf(t.Machine.Server.Seen),
	})
	r.Config.takeOver(process, t)
	l.Flags.Renewed.Store(true) // the certificate is another one
	r.Attend()
}

// seenOf is what the monitor had seen that the machine was told of.
func seenOf(s machine.ServerSeen) Seen {
	return Seen{
		streaming: s.Streaming, received: s.Received, End: s.End, Known: s.Known, Unreplayed: s.Unreplayed,
		standbys: s.Standbys, written: s.Written, oldest: s.Oldest,
	}
}

// takeOver goes on with the configuration that a server runs with.
func (c *configuration) takeOver(process Process, t *Handed) {
	c.files.Lock()
	c.settings, c.runs, c.unsure = t.Settings, t.Runs, true // the former agent may have been about to change it
	c.Unruled.Store(t.Unruled)
	c.process = process
	c.files.Unlock()
	c.started(process)
}
