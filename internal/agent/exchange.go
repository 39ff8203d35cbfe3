package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"time"

	"toban.dev/internal/agent/program"
	"toban.dev/internal/pause"
	"toban.dev/internal/postgres"
	"toban.dev/internal/protocol"

	"toban.dev/internal/agent/running"
	"toban.dev/internal/ha/machine"
)

const (
	// exchangePatience is how long a good moment for an exchange is waited for.
	exchangePatience = 30 * time.Second
	// exchangeLook is how often it is looked whether the moment is good: an answer of another instance makes it good
	// for a fraction of a heartbeat.
	exchangeLook = 20 * time.Millisecond
	// exchangeRest is how long a machine is left alone that was too slow: each try is work for it, too.
	exchangeRest = 2 * time.Second
	// forRehearsal and forGuard are the parts of the time until a primary's fence that the last rehearsal and the guard
	// may have taken: else the program might begin to lead too late. A rehearsal does more than the beginning of a
	// program, a guard is just that.
	forRehearsal, forGuard = 4, 8
)

// exchange gives this process to another program.
type exchange struct {
	agent  *Agent
	folder program.Folder
	// former is where this program lies.
	former string
	under  sync.Mutex // held while a program is being tried

	mutex     sync.Mutex
	listeners map[string]net.Listener
}

func newExchange(a *Agent) *exchange {
	former, err := os.Executable()
	if err != nil {
		former = "" // then there is no way back, and so none to another program
	}
	return &exchange{
		agent: a, folder: program.Folder(a.options.Programs), former: former, listeners: map[string]net.Listener{},
	}
}

// identify says in the status which program this is. One that has been handed the process knows from the one before,
// and does not read itself: it has better to do in that moment.
func (x *exchange) identify() {
	own, err := x.own()
	if err != nil {
		x.agent.options.Log.Warn("this program can't be read", "error", err.Error())
		return
	}
	x.agent.status.Change(func(s *protocol.Status) {
		next := own
		if s.Program != nil {
			next.Failed = s.Program.Failed // it was tried meanwhile
		}
		s.Program = &next
	})
	x.folder.Clear(x.former)
}

func (x *exchange) own() (protocol.Program, error) {
	t := x.agent.taking
	if t != nil && t.failed == nil {
		return protocol.Program{SHA256: t.Program, Architecture: runtime.GOARCH}, nil
	}
	own, err := program.Own()
	if t != nil {
		own.Failed = t.failed
	}
	return own, err
}

// listen is the listener at an address: the one that was handed over, or a new one.
func (x *exchange) listen(ctx context.Context, address string) (net.Listener, error) {
	listener, err := x.inherited(address)
	if listener == nil && err == nil {
		listener, err = x.agent.options.listener(ctx, address)
	}
	if err != nil {
		return nil, err
	}
	x.mutex.Lock()
	defer x.mutex.Unlock()
	x.listeners[address] = listener
	return listener, nil
}

// inherited is the listener at an address that was handed over, nil where none was. Who connects meanwhile waits.
func (x *exchange) inherited(address string) (net.Listener, error) {
	t := x.agent.taking
	if t == nil {
		return nil, nil //nolint:nilnil // there mostly is none
	}
	return t.takeListener(address)
}

// offer takes a program and rehearses it. The agent tries to go on as it when begin is called.
func (x *exchange) offer(ctx context.Context, is protocol.Program, body io.Reader) (begin func(), err error) {
	if !x.under.TryLock() {
		return nil, errors.New("another program is being tried")
	}
	told := make(chan os.Signal, 1)
	signal.Notify(told, syscall.SIGTERM, syscall.SIGINT)
	release := func() { signal.Stop(told); x.under.Unlock() }
	path, took, err := x.prepare(ctx, is, body)
	if err != nil {
		defer release()
		return nil, x.failed(is, err)
	}
	return func() {
		go func() {
			defer release()
			_ = x.failed(is, x.tryFor(path, is.SHA256, took, told)) // it is in the status, and in the log
		}()
	}, nil
}

func (x *exchange) prepare(
	ctx context.Context, is protocol.Program, body io.Reader,
) (path string, took time.Duration, err error) {
	if x.former == "" {
		return "", 0, errors.New("this program does not know where it lies, so there would be no way back to it")
	}
	path, err = x.folder.Take(is, body)
	if err != nil {
		return "", 0, err //nolint:wrapcheck // it says what
	}
	took, err = x.rehearse(ctx, path)
	return path, took, err
}

// failed notes why a program is not gone on as.
func (x *exchange) failed(is protocol.Program, why error) error {
	var refused *program.RefusedError
	failure := &protocol.ProgramFailure{SHA256: is.SHA256, Message: why.Error(), Busy: !errors.As(why, &refused)}
	x.agent.options.Log.Warn("does not go on as the program that was given", "sha256", is.SHA256, "error", why.Error())
	x.agent.status.Change(func(s *protocol.Status) {
		next := protocol.Program{}
		if s.Program != nil {
			next = *s.Program
		}
		next.Failed = failure
		s.Program = &next
	})
	return why
}

// tryFor tries it again until the moment is good, and gives up after a while. It returns only if nothing came of it.
func (x *exchange) tryFor(path, sha string, took time.Duration, told chan os.Signal) error {
	ctx, cancel := context.WithTimeout(x.agent.life, exchangePatience)
	defer cancel()
	var g *guard
	defer func() { g.dismiss() }()
	for {
		why := x.agent.elections.handOver(ctx, func(m machine.Handover) error {
			left := m.Serves - time.Since(x.agent.elections.began)
			switch {
			case m.Serves > 0 && took > left/forRehearsal:
				return errSlow
			case m.Serves > 0 && !g.quick(left/forGuard):
				return errUnguarded
			}
			return x.give(m, path, sha, told, g)
		})
		var err error
		switch {
		case errors.Is(why, errSlow):
			if !pause.For(ctx, exchangeRest) {
				return why
			}
			took, err = x.rehearse(ctx, path)
		case errors.Is(why, errUnguarded):
			g.dismiss()
			if g.fresh() && !pause.For(ctx, exchangeRest) { // it was slow
				return why
			}
			g, err = startGuard(ctx)
		case !errors.Is(why, running.ErrBusy):
			return why
		}
		if err != nil {
			return err
		}
		if !pause.For(ctx, exchangeLook) {
			return why
		}
	}
}

var (
	// errSlow says that a program would take too long to begin.
	errSlow = errors.New("the machine is too slow at the moment: the program would begin to lead too late")
	// errUnguarded says that a primary's server needs a guard meanwhile, which has just started, and soon.
	errUnguarded = errors.New("the machine is too slow at the moment: no guard has begun soon enough")
)

func (x *exchange) rehearse(ctx context.Context, path string) (took time.Duration, err error) {
	took, err = program.Rehearse(ctx, path, os.Args[1:], EnvFormat+"="+strconv.Itoa(handoverFormat))
	x.agent.options.Log.Info("rehearsed a program", "took", took.String())
	return took, err //nolint:wrapcheck // it says what
}

// give gives the process away. It is called between two steps of the elections, and returns only if it fails: then all
// goes on as before. A primary has a guard.
func (x *exchange) give(m machine.Handover, path, sha string, told chan os.Signal, g *guard) error {
	a := x.agent
	r := a.current.Load()
	if r == nil || r.Run != m.Server.Run || r.Ending.Load() {
		return fmt.Errorf("%w: no server runs", running.ErrBusy)
	}
	began, err := x.began()
	if err != nil {
		return err
	}
	h := &handover{
		Format: handoverFormat, Former: x.former, Program: sha, Began: began, Handed: running.Handed{Machine: m},
		Config: a.configs.get(), Status: a.status.Get(), Listeners: map[string]int{}, Programs: a.options.found,
	}
	undo := undoing{}
	defer undo.all()
	release, err := a.breaker.Rest()
	if err != nil {
		return err
	}
	undo.add(release)
	resume, err := r.HandOver(&h.Handed)
	if err != nil {
		return err
	}
	undo.add(resume)
	if postgres.Children.Others(h.Postmaster.PID, g.pid()) > 0 {
		return fmt.Errorf("%w: a program of PostgreSQL runs", running.ErrBusy)
	}
	if m.Serves > 0 {
		if h.Guard, err = g.arm(h.Postmaster, began+m.Serves); err != nil {
			return err
		}
	}
	undo.add(postgres.Children.Hold())
	return x.exec(h, path, told, &undo)
}

// errTold says that the agent is told to stop.
var errTold = errors.New("the agent is told to stop")

// exec passes the open files on, writes the handover, and runs the program. No other one is started meanwhile. A signal
// that has come before is not taken along.
func (x *exchange) exec(h *handover, path string, told chan os.Signal, undo *undoing) error {
	var err error
	var keep func()
	if h.Lock, keep, err = x.agent.lock.HandOver(); err != nil {
		return err //nolint:wrapcheck // it says what
	}
	undo.add(keep)
	x.mutex.Lock()
	defer x.mutex.Unlock()
	for address, listener := range x.listeners {
		conn, ok := listener.(syscall.Conn)
		if !ok {
			continue // it is made anew
		}
		if h.Listeners[address], err = postgres.Inherit(conn, true); err != nil {
			return err //nolint:wrapcheck // it says what
		}
		undo.add(func() { _, _ = postgres.Inherit(conn, false) })
	}
	file, err := h.write(x.agent.options.Run)
	if err != nil {
		return err
	}
	undo.add(func() { _ = os.Remove(file) })
	if stops(x.agent.options.Run) { // it is looked for after the handover is there: see BeforeStop
		return errTold
	}
	x.agent.options.Log.Info("goes on as another program", "sha256", h.Program)
	env := append(os.Environ(), envHandover+"="+file, noGarbage)
	postgres.PostmastersParent.Do(func() {
		signal.Stop(told) // it returns when all signals that have come are in the channel
		if err = errTold; len(told) == 0 {
			err = execAs(path, env)
		}
	})
	return err
}

// began is when the machine's time began.
func (x *exchange) began() (time.Duration, error) {
	now, err := monotonic()
	return now - time.Since(x.agent.elections.began), err
}

// undoing takes back what was done, the last first.
type undoing []func()

func (u *undoing) add(undo func()) { *u = append(*u, undo) }

func (u *undoing) all() {
	for i := len(*u) - 1; i >= 0; i-- {
		(*u)[i]()
	}
}
