package postgres

import (
	"os/exec"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
)

// ChildSet knows the processes that were started here and are waited for, so
// that who reaps the orphans of a container (PID 1) leaves their exit status alone.
type ChildSet struct {
	mutex sync.Mutex
	pids  map[int]bool
}

// Children are all programs that this package started.
var Children = &ChildSet{pids: map[int]bool{}}

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
