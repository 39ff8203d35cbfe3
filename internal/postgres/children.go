package postgres

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// ChildSet knows the processes that were started here and are waited for, so
// that who reaps the orphans of a container (PID 1) leaves their exit status alone.
type ChildSet struct {
	mutex sync.Mutex
	pids  map[int]bool
	// readings are the programs of RunReading that are under way, by what they read.
	readings map[string]*reading
}

// Children are all programs that this package started.
var Children = newChildSet()

func newChildSet() *ChildSet { return &ChildSet{pids: map[int]bool{}, readings: map[string]*reading{}} }

// Start starts a command and remembers it. Nobody can reap in between.
func (c *ChildSet) Start(cmd *exec.Cmd) error {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if err := cmd.Start(); err != nil {
		return err
	}
	c.pids[cmd.Process.Pid] = true
	return nil
}

// Wait waits for a command that Start started.
func (c *ChildSet) Wait(cmd *exec.Cmd) error {
	err := cmd.Wait()
	c.mutex.Lock()
	defer c.mutex.Unlock()
	delete(c.pids, cmd.Process.Pid)
	return err
}

// killedDelay is how long a program that was told to end by its context may take to be gone.
const killedDelay = time.Second

// errHangs says that a program which was killed is still there: the kernel lets it go only when the disk answers that
// it waits for.
var errHangs = errors.New("it was killed, and has not ended yet: it waits within the kernel, mostly for a disk")

// awaitKilled waits for a program that is killed when ctx ends, and not much longer. It returns errHangs for one that
// has not ended then, which is waited for aside: so its status is taken whenever it ends.
func awaitKilled(ctx context.Context, wait func() error) error {
	over := make(chan error, 1)
	go func() { over <- wait() }()
	select {
	case err := <-over:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-over:
		return err
	case <-time.After(killedDelay):
		return errHangs
	}
}

// RunReading is Run for a program that only reads, which is what it reads of, and that ctx kills: it is not waited for
// much longer than ctx. What it says must be safe to read while it runs. One that is under way already, of the same, is
// waited for; where that was killed and has not ended, this is an error at once: on a disk that hangs each would hang
// too, and be one process more.
func (c *ChildSet) RunReading(ctx context.Context, of string, cmd *exec.Cmd) error {
	return c.read(ctx, of, cmd, c.Wait)
}

// read is RunReading with what waits for the program.
func (c *ChildSet) read(ctx context.Context, of string, cmd *exec.Cmd, wait func(*exec.Cmd) error) error {
	of = cmd.Path + " " + of
	r, err := c.beginReading(ctx, of)
	if err != nil {
		return err
	}
	cmd.WaitDelay = killedDelay
	if err := c.Start(cmd); err != nil {
		c.endReading(of, r)
		return err
	}
	err = awaitKilled(ctx, func() error {
		defer c.endReading(of, r)
		return wait(cmd)
	})
	if errors.Is(err, errHangs) {
		close(r.hangs)
	}
	return err
}

// reading is a program that only reads, and is under way.
type reading struct {
	began time.Time
	// over is closed when it has ended, hangs when it was killed and had not ended.
	over, hangs chan struct{}
}

// beginReading is the turn of a program, when that before it has ended.
func (c *ChildSet) beginReading(ctx context.Context, of string) (*reading, error) {
	for {
		earlier, mine := c.takeReading(of)
		if mine != nil {
			return mine, nil
		}
		select {
		case <-earlier.over:
		case <-earlier.hangs:
			return nil, fmt.Errorf("another one began %s ago: %w",
				time.Since(earlier.began).Round(time.Second), errHangs)
		case <-ctx.Done():
			return nil, fmt.Errorf("another one, which began %s ago, has not ended: %w",
				time.Since(earlier.began).Round(time.Second), ctx.Err())
		}
	}
}

// takeReading takes the turn where nobody has it, and else says who does.
func (c *ChildSet) takeReading(of string) (earlier, mine *reading) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if earlier = c.readings[of]; earlier != nil {
		return earlier, nil
	}
	mine = &reading{time.Now(), make(chan struct{}), make(chan struct{})}
	c.readings[of] = mine
	return nil, mine
}

func (c *ChildSet) endReading(of string, r *reading) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	delete(c.readings, of)
	close(r.over)
}

// words are what a program says, also while it runs.
type words struct {
	mutex sync.Mutex
	said  strings.Builder
}

// Write takes what os/exec copies.
func (w *words) Write(p []byte) (int, error) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return w.said.Write(p)
}

// String is what it has said so far.
func (w *words) String() string {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return w.said.String()
}

// Run starts a command and waits for it.
func (c *ChildSet) Run(cmd *exec.Cmd) error {
	if err := c.Start(cmd); err != nil {
		return err
	}
	return c.Wait(cmd)
}

// Adopt remembers a process that was started before this program took its process over.
func (c *ChildSet) Adopt(pid int) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.pids[pid] = true
}

// Forget notes that a process which was adopted has been waited for.
func (c *ChildSet) Forget(pid int) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	delete(c.pids, pid)
}

// Others are how many processes were started here and are waited for, without some.
func (c *ChildSet) Others(than ...int) (n int) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	for pid := range c.pids {
		if !slices.Contains(than, pid) {
			n++
		}
	}
	return n
}

// Hold keeps programs from being started until they are released.
func (c *ChildSet) Hold() (release func()) {
	c.mutex.Lock()
	return c.mutex.Unlock
}

// Strangers calls reap for each of the pids that was not started here.
func (c *ChildSet) Strangers(pids []int, reap func(pid int)) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	for _, pid := range pids {
		if !c.pids[pid] {
			reap(pid)
		}
	}
}

// Parent is the thread that starts postmasters. The kernel sends the death signal of a child when the thread ends that
// has forked it, not the process (prctl(2)), so that thread must never end. When another program takes the process over
// (execve(2)), all threads end but the one that calls, which goes on as the first thread of the process. So whoever
// gives the process away has to do that here, and has to be served by the first thread after it.
type Parent struct {
	served atomic.Bool
	work   chan func()
}

// PostmastersParent is this process's.
var PostmastersParent = &Parent{work: make(chan func())}

// Serve runs something aside, and has the calling goroutine's thread do the work until that has ended. It is called
// before anything is done.
func (p *Parent) Serve(run func()) {
	p.served.Store(true)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		run()
	}()
	p.serve(ended)
}

func (p *Parent) serve(ended <-chan struct{}) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for {
		select {
		case <-ended:
			return
		case work := <-p.work:
			work()
		}
	}
}

// Do has something done on the thread and waits for it. Where no thread serves, one is started for good.
func (p *Parent) Do(work func()) {
	if !p.served.Swap(true) {
		go p.serve(nil)
	}
	done := make(chan struct{})
	p.work <- func() { defer close(done); work() }
	<-done
}
