package postgres

import (
	"runtime"
	"sync/atomic"
)

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
