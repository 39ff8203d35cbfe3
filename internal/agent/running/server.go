// Package running is about the server that an agent runs: what it asks of it (PostgreSQL, Process, Session), what it is
// to be (Standing), its configuration, and who looks after it until it is ended. Who leads, and what is done with the
// server for that, is decided by the agent, which starts it with a Launcher.
package running

import (
	"context"
	"errors"
	"fmt"
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
	// killed is closed, once, when the server is ended at once.
	killed  chan struct{}
	killing sync.Once
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

// Close ends the monitor and the sessions, and waits for whoever looks after the server: on a disk that hangs only
// until the server is killed, because who has it killed waits for Close. Process.Gone waits for the rest.
func (r *Server) Close() {
	r.end()
	select {
	case <-r.untended():
	case <-r.killed:
	}
	r.Control.close()
}

// untended is closed when nobody looks after the server any more.
func (r *Server) untended() <-chan struct{} {
	over := make(chan struct{})
	go func() {
		defer close(over)
		r.tending.Wait()
	}()
	return over
}

// errTended says that something of what looks after a server is left.
var errTended = errors.New("what looks after the server has not come back: it reads or writes its files, on a disk " +
	"that hangs. See whether the volume answers")

// tended is the process of a server with whoever looks after it, and reads and writes its files too: it is gone when
// both are.
type tended struct {
	Process
	server *Server
}

// Kill kills the server. Who waits for those that look after it waits no longer: see Close.
func (t *tended) Kill(ctx context.Context, hangs bool) error {
	t.server.killing.Do(func() { close(t.server.killed) })
	return t.Process.Kill(ctx, hangs)
}

// Gone waits until nothing is left that works on the server's files.
func (t *tended) Gone(ctx context.Context) error {
	if err := t.Process.Gone(ctx); err != nil {
		return err
	}
	t.server.end()
	select {
	case <-t.server.untended():
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w (%w)", errTended, ctx.Err())
	}
}

// Itself is the process of a server without whoever looks after it.
func Itself(p Process) Process {
	if t, is := p.(*tended); is {
		return t.Process
	}
	return p
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
