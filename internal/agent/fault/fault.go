// Package fault breaks an instance, when a FaultDrill orders it (docs/faultdrill.md). It is an annex (docs/packages.md,
// "Core and annexes").
package fault

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"toban.dev/internal/agent"
	"toban.dev/internal/agent/running"
	"toban.dev/internal/naming"
	"toban.dev/internal/protocol"
)

// breakable is what a fault does to a server: a postgres.Process.
type breakable interface {
	Crash() error
	Hang() error
	Continue() error
}

// fillable is what a fault does to a volume, which is so large: a filler.
type fillable interface {
	Fill(volume int64) error
	Empty() error
}

// cuttable is what a fault does to the way to the Kubernetes API, or to the store of the archive: a kube.Cluster, a
// way.Way.
type cuttable interface {
	Cut()
	Restore()
}

// undoAgain is how long after it was tried in vain to take a fault back that is tried again.
const undoAgain = time.Second

// dieAfter is how long the agent lives on after the order to end, so that its answer gets out.
const dieAfter = 100 * time.Millisecond

// faults break this instance, when a FaultDrill orders it. Nothing else of the agent knows: it has to notice, as with
// any other fault. What lasts is over by itself when its time is over. Until then the agent does not go on as another
// program, which would not know.
type faults struct {
	agent.Breakable
	volume fillable
	// api is the way to the Kubernetes API, nil where there is none; store that to the store of the archive.
	api, store cuttable

	mutex sync.Mutex
	// lasting are those that last, in the order in which they began. All are of one drill.
	lasting []*lastingFault
}

// lastingFault is a fault that lasts.
type lastingFault struct {
	fault protocol.Fault
	drill string
	// undo takes it back; ends does that later.
	undo func() error
	ends *time.Timer
}

// New is what breaks an instance.
func New(b agent.Breakable) agent.Breaker {
	if b.Die == nil {
		b.Die = func() { os.Exit(naming.ExitFaultDrill) } // process 1 can't be killed from inside (pid_namespaces(7))
	}
	api, _ := b.Cluster.(cuttable)
	return &faults{Breakable: b, volume: newFiller(b.Volume, b.Log), api: api, store: b.Store}
}

// Do carries an order out.
func (f *faults) Do(o protocol.FaultOrder) error {
	f.Log.Warn("a FaultDrill orders a fault", "fault", string(o.Fault), "drill", o.Drill)
	if role := f.Role(); o.Role != protocol.RoleNone && o.Role != role {
		return fmt.Errorf("this instance was to be broken as the %s, and its role is %q by now", o.Role, role)
	}
	switch o.Fault {
	case protocol.FaultUndo:
		return f.undo()
	case protocol.FaultKillAgent:
		time.AfterFunc(dieAfter, f.Die)
		return nil
	case protocol.FaultFillVolume:
		return f.last(o, func() error { return f.volume.Fill(o.Volume) }, f.volume.Empty)
	case protocol.FaultPauseReplay:
		return f.pauseReplay(o)
	case protocol.FaultCutAPI:
		return f.cutAPI(o)
	case protocol.FaultCutArchive:
		return f.cutArchive(o)
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
	return f.last(o, server.Hang, server.Continue)
}

// cutAPI has this instance not reach the Kubernetes API for a while.
func (f *faults) cutAPI(o protocol.FaultOrder) error {
	if f.api == nil {
		return errors.New("there is no Kubernetes API around this instance")
	}
	return f.cut(o, f.api)
}

// cutArchive has this instance not reach the store of the archive for a while. One that does not lead asks nothing of
// it, until it is elected.
func (f *faults) cutArchive(o protocol.FaultOrder) error {
	switch to := f.Config().Archive; {
	case to == nil:
		return errors.New("this instance has no archive")
	case to.Bucket.Folder != "":
		return errors.New("the archive of this instance is a folder, which is not reached over a network")
	}
	return f.cut(o, f.store)
}

// cut has nothing be reached by a way for a while.
func (f *faults) cut(o protocol.FaultOrder, way cuttable) error {
	return f.last(o, func() error { way.Cut(); return nil }, func() error { way.Restore(); return nil })
}

// server is the one that runs.
func (f *faults) server() (breakable, error) {
	r := f.Current.Load()
	if r == nil {
		return nil, running.ErrNoServer
	}
	server, ok := r.Process.(breakable)
	if !ok {
		return nil, errors.New("this server can't be broken on purpose")
	}
	return server, nil
}

// last begins a fault that lasts for a while. What could not be begun as a whole is taken back at once.
func (f *faults) last(o protocol.FaultOrder, begin, undo func() error) error {
	if o.For <= 0 || o.For > protocol.MaxFault {
		return fmt.Errorf("a fault may last for %s at most, not for %s", protocol.MaxFault, o.For)
	}
	f.mutex.Lock()
	defer f.mutex.Unlock()
	for _, l := range f.lasting {
		if why := l.excludes(o); why != "" {
			return errors.New(why)
		}
	}
	l := &lastingFault{fault: o.Fault, drill: o.Drill, undo: undo}
	l.ends = time.AfterFunc(o.For, func() { f.report(f.endOne(l)) })
	f.lasting = append(f.lasting, l)
	if err := begin(); err != nil {
		return errors.Join(err, f.over(l))
	}
	return nil
}

// excludes says why a fault can't be ordered while this one lasts, "" where it can.
func (l *lastingFault) excludes(o protocol.FaultOrder) string {
	hangs := l.fault == protocol.FaultHangServer || o.Fault == protocol.FaultHangServer
	pauses := l.fault == protocol.FaultPauseReplay || o.Fault == protocol.FaultPauseReplay
	switch {
	case l.drill != o.Drill, l.fault == o.Fault:
		return fmt.Sprintf("the fault %s lasts already, by an earlier order", l.fault)
	case hangs && pauses:
		return "a server that hangs can't be told to pause its replay, or to replay on: order one of the two"
	}
	return ""
}

// End takes back what lasts, where nobody waits for that.
func (f *faults) End() { f.report(f.undo()) }

func (f *faults) report(err error) {
	if err != nil {
		f.Log.Error("a fault of a FaultDrill may last on", "error", err.Error())
	}
}

// undo takes back all that lasts, what began last first.
func (f *faults) undo() (err error) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	for _, l := range slices.Backward(slices.Clone(f.lasting)) {
		err = errors.Join(err, f.over(l))
	}
	return err
}

// endOne takes one of them back.
func (f *faults) endOne(l *lastingFault) error {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return f.over(l)
}

// over takes back a fault that lasts, with the mutex. What can't be taken back is tried again later.
func (f *faults) over(l *lastingFault) error {
	if !slices.Contains(f.lasting, l) {
		return nil // it was taken back meanwhile
	}
	l.ends.Stop()
	if err := l.undo(); err != nil {
		l.ends = time.AfterFunc(undoAgain, func() { f.report(f.endOne(l)) })
		return err
	}
	f.lasting = slices.DeleteFunc(f.lasting, func(other *lastingFault) bool { return other == l })
	f.Log.Info("a fault of a FaultDrill is over", "fault", string(l.fault))
	return nil
}

// Rest keeps faults from beginning until release, for who makes another program of this process. It never waits: a
// fault may be at work on a volume that hangs, and elections must go on.
func (f *faults) Rest() (release func(), err error) {
	if !f.mutex.TryLock() {
		return nil, fmt.Errorf("%w: a fault of a FaultDrill begins or ends", running.ErrBusy)
	}
	if len(f.lasting) > 0 {
		f.mutex.Unlock()
		return nil, fmt.Errorf("%w: a fault of a FaultDrill lasts", running.ErrBusy)
	}
	return f.mutex.Unlock, nil
}

// Clear removes what a fault of an agent before has left on the volume, which ended before that was over.
func (f *faults) Clear() {
	if err := f.volume.Empty(); err != nil {
		f.Log.Error("what a FaultDrill has left can't be removed", "error", err.Error())
	}
}
