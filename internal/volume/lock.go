// Package volume is what an agent has on its persistent volume, apart from the server's own work: the
// right to work there, the hard state of what the instance has promised, what a restore has left, and what
// lies in the data directory.
package volume

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"toban.dev/internal/pause"
	"toban.dev/internal/postgres"
)

const (
	// folderLocks is where the locks lie on a volume.
	folderLocks = "locks"
	// lockOwner is that of who may read and change all that is on it, lockRestore that of who may change what a restore
	// makes beside the data, which a server may use meanwhile.
	lockOwner, lockRestore = "owner", "restore"
	// programsSuffix ends the name of the lock that also the programs have which the holder has started.
	programsSuffix = ".programs"
	// lockInterval is how often it is looked whether a lock is free.
	lockInterval = 100 * time.Millisecond
)

// errInUse says that somebody else has a lock.
var errInUse = errors.New("somebody else works on the volume")

// Lock is the right to work on a volume, which at most one process has. It is two locks: the process's own ends with
// the process. The other one ends when also all programs have ended that it has started since, as a server and its
// sessions: what they do to the volume, they do after their agent's death too. The kernel releases them.
type Lock struct{ own, programs *os.File }

// Own waits until nobody works on a volume any more, and has all others wait from then on for as long as this
// process and the programs that it starts live. Where it has to wait it calls waits, with the words for whom.
func Own(ctx context.Context, volume string, waits func(whom string)) (*Lock, error) {
	return lockWithPrograms(ctx, volume, lockOwner, waits)
}

// OwnRestore is the same for what a restore makes beside the data.
func OwnRestore(ctx context.Context, volume string, waits func(whom string)) (*Lock, error) {
	return lockWithPrograms(ctx, volume, lockRestore, waits)
}

// AwaitRestore waits until nobody works on what a restore or an upgrade makes beside the data.
func AwaitRestore(ctx context.Context, volume string, waits func(whom string)) (*Lock, error) {
	return awaitLock(ctx, volume, lockRestore, waits)
}

func lockWithPrograms(ctx context.Context, volume, name string, waits func(whom string)) (*Lock, error) {
	l, err := awaitLock(ctx, volume, name, waits)
	if err != nil {
		return nil, err
	}
	return l, l.passOn()
}

// passOn has all programs that are started from now on inherit their lock.
func (l *Lock) passOn() error {
	if _, err := unix.FcntlInt(l.programs.Fd(), unix.F_SETFD, 0); err != nil {
		return fmt.Errorf("pass the lock of the volume on: %w", err)
	}
	return nil
}

// Release ends a lock that has not been passed on.
func (l *Lock) Release() { _ = errors.Join(l.own.Close(), l.programs.Close()) } // nothing was written

// HandOver has the program that takes this process over inherit the lock, which is so never free, and tells by which
// descriptors. Until then no other program may be started. keep takes that back.
func (l *Lock) HandOver() (descriptors [2]int, keep func(), err error) {
	own, err := postgres.Inherit(l.own, true)
	if err != nil {
		return descriptors, nil, err
	}
	programs, err := postgres.Inherit(l.programs, true)
	if err != nil {
		return descriptors, nil, err
	}
	return [2]int{own, programs}, func() {
		_, _ = postgres.Inherit(l.own, false) // it could be set before
	}, nil
}

// taken is the lock that the program before has handed over.
func taken(descriptors [2]int) *Lock {
	unix.CloseOnExec(descriptors[0])
	return &Lock{
		own: os.NewFile(uintptr(descriptors[0]), lockOwner), programs: os.NewFile(uintptr(descriptors[1]), lockOwner),
	}
}

// tryLock takes a lock that is free. Else it fails with errInUse.
func tryLock(volume, name string) (*Lock, error) {
	path, err := lockPath(volume, name)
	if err != nil {
		return nil, err
	}
	own, err := lockFile(path)
	if err != nil {
		return nil, err
	}
	programs, err := lockFile(path + programsSuffix)
	if err != nil {
		return nil, errors.Join(err, own.Close())
	}
	return &Lock{own, programs}, nil
}

// awaitLock takes a lock when it is free. Programs that an earlier holder has left are ended, as
// far as they can be seen.
func awaitLock(ctx context.Context, volume, name string, waits func(whom string)) (*Lock, error) {
	path, err := lockPath(volume, name)
	if err != nil {
		return nil, err
	}
	whom := map[string]string{lockOwner: "another agent or restore", lockRestore: "a restore"}[name]
	own, err := awaitFile(ctx, path, func() { waits(whom) }, func() {})
	if err != nil {
		return nil, err
	}
	path += programsSuffix
	programs, err := awaitFile(ctx, path,
		func() { waits("a server or another program of " + whom + " that has ended") }, func() { endUsers(path) })
	if err != nil {
		return nil, errors.Join(err, own.Close())
	}
	return &Lock{own, programs}, nil
}

func lockPath(volume, name string) (string, error) {
	folder := filepath.Join(volume, folderLocks)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return "", fmt.Errorf("make the folder of the volume's locks: %w", err)
	}
	return filepath.Join(folder, name), nil
}

// awaitFile locks a file when it is free. While it is not, it calls try before each look, and waits once,
// when that was of no use.
func awaitFile(ctx context.Context, path string, waits, try func()) (*os.File, error) {
	for looks := 1; ; looks++ {
		file, err := lockFile(path)
		if !errors.Is(err, errInUse) {
			return file, err
		}
		if looks == 2 {
			waits()
		}
		try()
		if !pause.For(ctx, lockInterval) {
			return nil, fmt.Errorf("wait until the volume is free: %w", ctx.Err())
		}
	}
}

// lockFile locks a file for whoever has what it returns open, and fails with errInUse when somebody else has it locked.
// It is a lock of the open file, not of the process (fcntl_locking(2), F_OFD_SETLK): it does not end when the process
// closes the file elsewhere, is inherited, and goes to the server of an NFS, as locks by flock(2) do not everywhere.
func lockFile(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the lock of the volume: %w", err)
	}
	for {
		err = unix.FcntlFlock(file.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart})
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	switch {
	case err == nil:
		return file, nil
	case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.EACCES):
		err = errInUse
	default:
		err = fmt.Errorf("lock the volume (%s), which its file system must be able to: %w", path, err)
	}
	return nil, errors.Join(err, file.Close())
}

// endUsers kills the processes in sight that have a file open. In a container there are none: they have ended with the
// agent that started them. Nothing is read from the volume, which may hang.
func endUsers(path string) {
	file, err := filepath.EvalSymlinks(path)
	if err != nil {
		return // it is waited for them
	}
	links, err := filepath.Glob("/proc/[0-9]*/fd/*")
	if err != nil {
		return // only a malformed pattern is an error
	}
	for _, link := range links {
		if target, err := os.Readlink(link); err != nil || target != file {
			continue // another file; or one of another user's, or of one that has gone
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(link))))
		if err == nil && pid != os.Getpid() {
			_ = syscall.Kill(pid, syscall.SIGKILL) // gone already: as well
		}
	}
}
