package agent

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"toban.dev/internal/naming"
	"toban.dev/internal/protocol"
)

// breakable is what a fault does to a server: a postgres.Process.
type breakable interface {
	Crash() error
	Hang() error
	Continue() error
}

// fillable is what a fault does to a volume, which is so large: a volume.Filler.
type fillable interface {
	Fill(volume int64) error
	Empty() error
}

// undoAgain is how long after it was tried in vain to take a fault back that is tried again.
const undoAgain = time.Second

// dieAfter is how long the agent lives on after the order to end, so that its answer gets out.
const dieAfter = 100 * time.Millisecond

// faults break this instance, when a FaultDrill orders it. Nothing else of the agent knows: it has to notice, as with
// any other fault. What lasts is over by itself when its time is over. Until then the agent does not go on as another
// program, which would not know.
type faults struct {
	current *atomic.Pointer[running]
	volume  fillable
	// die ends this process at once.
	die func()
	log *slog.Logger

	mutex sync.Mutex
	// undoes takes back what lasts, nil for nothing; ends does that later.
	undoes func() error
	ends   *time.Timer
}

func newFaults(current *atomic.Pointer[running], volume fillable, die func(), log *slog.Logger) *faults {
	if die == nil {
		die = func() { os.Exit(naming.ExitFaultDrill) } // process 1 can't be killed from inside (pid_namespaces(7))
	}
	return &faults{current: current, volume: volume, die: die, log: log}
}

// do carries an order out.
func (f *faults) do(o protocol.FaultOrder) error {
	f.log.Warn("a FaultDrill orders a fault", "fault", string(o.Fault), "drill", o.Drill)
	switch o.Fault {
	case protocol.FaultUndo:
		return f.undo()
	case protocol.FaultKillAgent:
		time.AfterFunc(dieAfter, f.die)
		return nil
	case protocol.FaultFillVolume:
		return f.last(o.For, func() error { return f.volume.Fill(o.Volume) }, f.volume.Empty)
	case protocol.FaultPauseReplay:
		return f.pauseReplay(o.For)
	case protocol.FaultKillServer, protocol.FaultHangServer:
	default:
		return fmt.Errorf("this agent knows no fault %q", o.Fault)
	}
	server, err := f.server()
	if err != nil {
		return err
	}
	if o.Fault == protocol.FaultKillServer {
		return server.Crash()
	}
	return f.last(o.For, server.Hang, server.Continue)
}

// server is the one that runs.
func (f *faults) server() (breakable, error) {
	r := f.current.Load()
	if r == nil {
		return nil, errNoServer
	}
	server, ok := r.process.(breakable)
	if !ok {
		return nil, errors.New("this server can't be broken on purpose")
	}
	return server, nil
}

// last begins a fault that lasts for a while. What could not be begun as a whole is taken back at once.
func (f *faults) last(lasts time.Duration, begin, undoes func() error) error {
	if lasts <= 0 || lasts > protocol.MaxFault {
		return fmt.Errorf("a fault may last for %s at most, not for %s", protocol.MaxFault, lasts)
	}
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if f.undoes != nil {
		return errors.New("a fault lasts already, by an earlier order")
	}
	f.undoes = undoes
	f.ends = time.AfterFunc(lasts, f.end)
	if err := begin(); err != nil {
		return errors.Join(err, f.undoHeld())
	}
	return nil
}

// end takes back what lasts, where nobody waits for that.
func (f *faults) end() {
	if err := f.undo(); err != nil {
		f.log.Error("a fault of a FaultDrill may last on", "error", err.Error())
	}
}

// undo takes back what lasts, if something does.
func (f *faults) undo() error {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return f.undoHeld()
}

func (f *faults) undoHeld() error {
	if f.undoes == nil {
		return nil
	}
	f.ends.Stop()
	if err := f.undoes(); err != nil {
		f.ends = time.AfterFunc(undoAgain, f.end)
		return err
	}
	f.undoes = nil
	f.log.Info("the fault of a FaultDrill is over")
	return nil
}

// rest keeps faults from beginning until release, for who makes another program of this process. It never waits: a
// fault may be at work on a volume that hangs, and elections must go on.
func (f *faults) rest() (release func(), err error) {
	if !f.mutex.TryLock() {
		return nil, fmt.Errorf("%w: a fault of a FaultDrill begins or ends", errBusy)
	}
	if f.undoes != nil {
		f.mutex.Unlock()
		return nil, fmt.Errorf("%w: a fault of a FaultDrill lasts", errBusy)
	}
	return f.mutex.Unlock, nil
}

// clear removes what a fault of an agent before has left on the volume, which ended before that was over.
func (f *faults) clear() {
	if err := f.volume.Empty(); err != nil {
		f.log.Error("what a FaultDrill has left can't be removed", "error", err.Error())
	}
}
