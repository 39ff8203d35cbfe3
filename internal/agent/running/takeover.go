package running

import (
	"context"
	"io"

	"toban.dev/internal/ha/machine"
	"toban.dev/internal/postgres"
)

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
	c.settings, c.runs = t.Settings, t.Runs
	c.Unruled.Store(t.Unruled)
	c.process = process
	c.files.Unlock()
	c.started(process)
}
