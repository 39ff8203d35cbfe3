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

// dieAfter is how long the agent lives on after the order to end, so that its answer gets out.
const dieAfter = 100 * time.Millisecond

// faults break this instance, when a FaultDrill orders it. Nothing else of the agent knows: it has to notice, as with
// any other fault. What hangs goes on by itself when its time is over. If the agent has gone on as another program by
// then, that one notices that its server hangs, and ends it.
type faults struct {
	current *atomic.Pointer[running]
	// die ends this process at once.
	die func()
	log *slog.Logger

	mutex sync.Mutex
	// hung is the server that hangs, ends what lets it go on later.
	hung breakable
	ends *time.Timer
}

func newFaults(current *atomic.Pointer[running], die func(), log *slog.Logger) *faults {
	if die == nil {
		die = func() { os.Exit(naming.ExitFaultDrill) } // process 1 can't be killed from inside (pid_namespaces(7))
	}
	return &faults{current: current, die: die, log: log}
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
	return f.hang(server, o.For)
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

// hang lets the server hang for a while.
func (f *faults) hang(server breakable, lasts time.Duration) error {
	if lasts <= 0 || lasts > protocol.MaxHang {
		return fmt.Errorf("a server may hang for %s at most, not for %s", protocol.MaxHang, lasts)
	}
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if f.hung != nil {
		return errors.New("the server hangs already, by an earlier order")
	}
	f.hung = server
	f.ends = time.AfterFunc(lasts, func() {
		if err := f.undo(); err != nil {
			f.log.Error("the server may still hang", "error", err.Error())
		}
	})
	return server.Hang()
}

// undo lets the server go on that hangs, if one does.
func (f *faults) undo() error {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if f.hung == nil {
		return nil
	}
	f.ends.Stop()
	err := f.hung.Continue()
	if err == nil {
		f.hung = nil
		f.log.Info("the server goes on")
	}
	return err
}
