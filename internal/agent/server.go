package agent

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"toban.dev/internal/agent/archive"
	"toban.dev/internal/agent/status"
	"toban.dev/internal/ha"
	"toban.dev/internal/ha/machine"
	"toban.dev/internal/pause"
	"toban.dev/internal/protocol"
)

// running is a server that runs, as primary or standby. Commands start, turn and stop it; its monitor sees to it
// meanwhile.
type running struct {
	// run is the command that started it.
	run      uint64
	server   PostgreSQL
	process  Process
	standing *standing
	config   *configuration
	control  *control
	monitor  *monitor
	// collations looks whether texts are sorted as before.
	collations *collations
	// poke makes the monitor look at once.
	poke   poke
	status *status.Board
	post   func(machine.Event)
	log    *slog.Logger
	// ending says that it is being ended here.
	ending atomic.Bool
	// end ends the monitor and whoever else is tending, in the context life.
	end     context.CancelFunc
	life    context.Context //nolint:containedctx // it is the server's, not a caller's
	tending sync.WaitGroup
}

// leading is the server that runs while it is a primary, nil else.
func leading(current *atomic.Pointer[running]) *running {
	if r := current.Load(); r != nil && r.standing.role() == ha.ServerPrimary {
		return r
	}
	return nil
}

// attend begins to look after the server, and notices when it ends by itself.
func (r *running) attend() {
	r.tending.Go(func() { r.monitor.run(r.life) })
	r.tending.Go(func() { r.collations.run(r.life) })
	go func() {
		<-r.process.Done()
		if !r.ending.Load() {
			r.status.Change(func(s *protocol.Status) { s.Reason, s.Message = "ServerEnded", r.process.Err().Error() })
			r.post(machine.ServerEnded{Run: r.run, Why: r.process.Err().Error()})
		}
	}()
}

// close ends the monitor and the sessions.
func (r *running) close() {
	r.end()
	r.tending.Wait()
	r.control.close()
}

// ended says that a server's process has ended.
func ended(process Process) bool {
	select {
	case <-process.Done():
		return true
	default:
		return false
	}
}

// follow makes a standby follow another leader, or nobody. It takes a reload.
func (r *running) follow(upstream ha.Ballot) error {
	r.standing.follow(upstream)
	defer r.poke.observe()
	return r.config.rewrite()
}

func (r *running) stopReceiving(ctx context.Context, patience time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return r.process.StopReceiving(ctx)
}

// configurePrimary gives the server a primary's configuration before it is one:
// what it acknowledges from its first commit on must be on other disks too.
func (r *running) configurePrimary() error {
	r.standing.bePrimary()
	return r.config.rewrite()
}

// settleLater begins to settle.
func (r *running) settleLater() { r.tending.Go(func() { r.settle(r.life) }) }

// settleDelay keeps the first checkpoint of a new primary out of the way of the
// standbys that come to it, which may share its disk.
const settleDelay = 2 * time.Second

// settle writes the first checkpoint of a new primary: the control file has
// the new timeline then, which is what a rewind of another instance goes by.
func (r *running) settle(ctx context.Context) {
	if pause.For(ctx, settleDelay) {
		r.checkpoint(ctx)
	}
}

// checkpoint writes a checkpoint. Nothing rests on it.
func (r *running) checkpoint(ctx context.Context) {
	session, err := r.server.Connect(ctx)
	if err == nil {
		defer session.Close()
		err = session.Checkpoint(ctx)
	}
	if err != nil && ctx.Err() == nil {
		r.log.Info("no checkpoint", "error", err.Error())
	}
}

// WAL is the server's, for the archive.
func (r *running) WAL() archive.Source { return &walSource{server: r.server} }

// Ended is closed when the server is being ended.
func (r *running) Ended() <-chan struct{} { return r.life.Done() }
