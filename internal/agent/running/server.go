// Package running is about the server that an agent runs: what it asks of it (PostgreSQL, Process, Session), what it is
// to be (Standing), its configuration, and who looks after it until it is ended. Who leads, and what is done with the
// server for that, is decided by the agent, which starts it with a Launcher.
package running

import (
	"context"
	"errors"
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

// Server is a server that runs, as primary or standby. Commands start, turn and stop it; its monitor sees to it
// meanwhile.
type Server struct {
	// Run is the command that started it.
	Run        uint64
	PostgreSQL PostgreSQL
	Process    Process
	Standing   *Standing
	Config     *configuration
	Control    *control
	monitor    *monitor
	// collations looks whether texts are sorted as before.
	collations *collations
	// poke makes the monitor look at once.
	poke   poke
	status *status.Board
	post   func(machine.Event)
	log    *slog.Logger
	// Ending says that it is being ended here.
	Ending atomic.Bool
	// end ends the monitor and whoever else is tending, in the context life.
	end     context.CancelFunc
	life    context.Context //nolint:containedctx // it is the server's, not a caller's
	tending sync.WaitGroup
}

var (
	// ErrBusy says that the moment is not good for a handover.
	ErrBusy = errors.New("the moment is not good")
	// ErrNoServer says that no server runs.
	ErrNoServer = errors.New("no server runs here")
	// ErrNoEnd says that a server was killed, and is still there.
	ErrNoEnd = errors.New("the server was killed and does not end: its processes wait within the kernel, mostly for " +
		"a disk. See whether the volume answers")
)

// Leading is the server that runs while it is a primary, nil else.
func Leading(current *atomic.Pointer[Server]) *Server {
	if r := current.Load(); r != nil && r.Standing.Role() == ha.ServerPrimary {
		return r
	}
	return nil
}

// Attend begins to look after the server, and notices when it ends by itself.
func (r *Server) Attend() {
	r.tending.Go(func() { r.monitor.run(r.life) })
	r.tending.Go(func() { r.collations.run(r.life) })
	go func() {
		<-r.Process.Done()
		if !r.Ending.Load() {
			r.status.Change(func(s *protocol.Status) { s.Reason, s.Message = "ServerEnded", r.Process.Err().Error() })
			r.post(machine.ServerEnded{Run: r.Run, Why: r.Process.Err().Error()})
			r.Config.makeTablespace(r.Process) // it is there when the server is started again
		}
	}()
}

// Observe has the server looked at at once.
func (r *Server) Observe() { r.poke.observe() }

// ObserveStandby has a standby looked at at once that has lost its leader, and with replay has it replay what it has.
func (r *Server) ObserveStandby(replay bool) {
	r.monitor.end.asked.Store(true)
	if replay {
		r.monitor.end.hasten.Store(true)
	}
	r.Observe()
}

// Close ends the monitor and the sessions.
func (r *Server) Close() {
	r.end()
	r.tending.Wait()
	r.Control.close()
}

// Ended says that a server's process has ended.
func Ended(process Process) bool {
	select {
	case <-process.Done():
		return true
	default:
		return false
	}
}

// Follow makes a standby follow another leader, or nobody. It takes a reload.
func (r *Server) Follow(upstream ha.Ballot) error {
	r.Standing.follow(upstream)
	defer r.poke.observe()
	return r.Config.Rewrite()
}

// StopReceiving has a standby receive nothing any more.
func (r *Server) StopReceiving(ctx context.Context, patience time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return r.Process.StopReceiving(ctx)
}

// ConfigurePrimary gives the server a primary's configuration before it is one:
// what it acknowledges from its first commit on must be on other disks too.
func (r *Server) ConfigurePrimary() error {
	r.Standing.bePrimary()
	return r.Config.Rewrite()
}

// SettleLater begins to settle.
func (r *Server) SettleLater() { r.tending.Go(func() { r.settle(r.life) }) }

// settleDelay keeps the first checkpoint of a new primary out of the way of the
// standbys that come to it, which may share its disk.
const settleDelay = 2 * time.Second

// settle writes the first checkpoint of a new primary: the control file has
// the new timeline then, which is what a rewind of another instance goes by.
func (r *Server) settle(ctx context.Context) {
	if pause.For(ctx, settleDelay) {
		r.checkpoint(ctx)
	}
}

// checkpoint writes a checkpoint. Nothing rests on it.
func (r *Server) checkpoint(ctx context.Context) {
	session, err := r.PostgreSQL.Connect(ctx)
	if err == nil {
		defer session.Close()
		err = session.Checkpoint(ctx)
	}
	if err != nil && ctx.Err() == nil {
		r.log.Info("no checkpoint", "error", err.Error())
	}
}

// WAL is the server's, for the archive.
func (r *Server) WAL() archive.Source { return &walSource{server: r.PostgreSQL} }

// Ended is closed when the server is being ended.
func (r *Server) Ended() <-chan struct{} { return r.life.Done() }

// TakesClients says that a server is a primary that lets clients in, and is not about to end.
func (r *Server) TakesClients() bool {
	return r.Standing.Role() == ha.ServerPrimary && r.Standing.IsOpen() && !r.Ending.Load()
}
