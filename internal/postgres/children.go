package postgres

import (
	"os/exec"
	"slices"
	"sync"
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
