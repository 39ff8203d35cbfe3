package postgres

import (
	"fmt"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// HoldTerm has SIGTERM wait, or no longer. While another program takes this process over (execve(2)), it must wait: the
// new program would end by it, or lose it as process 1, before it takes signals. The mask of the calling thread and
// what waits for the process stay through execve(2) (signal(7), "Signal mask and pending signals"). The other threads
// have it blocked too, so that none of them takes it in the last moment. Programs that are built with cgo can't do that
// for all threads: there a signal of that moment is lost.
func HoldTerm(hold bool) {
	set, how := termOnly(), unix.SIG_UNBLOCK
	if hold {
		how = unix.SIG_BLOCK
	}
	_, _, errno := syscall.AllThreadsSyscall6(unix.SYS_RT_SIGPROCMASK, uintptr(how),
		uintptr(unsafe.Pointer(&set)), 0, 8, 0, 0) // #nosec G103 -- no other way to reach all threads
	if errno != 0 {
		_ = unix.PthreadSigmask(how, &set, nil) // it has no other error than a wrong argument
	}
}

// unmasked starts a program so that SIGTERM reaches it. In a process that was given to this program most threads have
// the signal blocked for good, because Go gives each new thread the mask that the process began with; and who is
// started inherits the mask of the thread that starts it (execve(2)).
func unmasked(start func() error) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var before unix.Sigset_t
	set := termOnly()
	if err := unix.PthreadSigmask(unix.SIG_UNBLOCK, &set, &before); err != nil {
		return fmt.Errorf("unblock SIGTERM: %w", err)
	}
	defer func() { _ = unix.PthreadSigmask(unix.SIG_SETMASK, &before, nil) }() // it was set so before
	return start()
}

// termOnly is the set of signals with SIGTERM in it.
func termOnly() (set unix.Sigset_t) {
	set.Val[0] = 1 << (uint(syscall.SIGTERM) - 1)
	return set
}
