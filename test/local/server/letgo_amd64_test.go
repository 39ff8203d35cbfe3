package server_test

import (
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// A session has written its commit, and has still to begin to wait for standbys, when the server is told to stop.
func TestAStopTellsNoClientWhoseCommitDoesNotWaitYet(t *testing.T) {
	n := lonely(t)
	pid, begin := n.prepareInsert("")
	held, release := n.breakAt(pid, "SyncRepWaitForLSN")
	told := begin()
	must(t, <-held)
	stopped := n.stopping()
	n.keepsItsRule("and a commit is on its way")
	must(t, release())
	n.hasStoppedInOrder(stopped)
	n.toldNothing(told)
}

// breakAt holds a process when it calls a function of PostgreSQL. Afterwards it goes on, and has taken no signal since.
func (n *node) breakAt(pid int, function string) (held chan error, release func() error) {
	n.Helper()
	address, err := n.addressOf(pid, function)
	must(n, err)
	set, held := make(chan error, 1), make(chan error, 1)
	goOn, gone := make(chan struct{}), make(chan error, 1)
	go func() {
		runtime.LockOSThread() // it is the thread that traces
		defer runtime.UnlockOSThread()
		code, err := setBreak(pid, address)
		set <- err
		if err != nil {
			return
		}
		held <- awaitBreak(pid)
		<-goOn
		gone <- removeBreak(pid, address, code)
	}()
	must(n, <-set)
	return held, func() error {
		close(goOn)
		return <-gone
	}
}

// addressOf is where a process has a function of its program, which is loaded anywhere.
func (n *node) addressOf(pid int, function string) (uintptr, error) {
	program, err := elf.Open(filepath.Join(n.Programs.Dir, "postgres"))
	if err != nil {
		return 0, err
	}
	defer program.Close()
	symbols, err := program.DynamicSymbols()
	if err != nil {
		return 0, err
	}
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		return 0, err
	}
	var base uint64
	if _, err := fmt.Sscanf(string(maps), "%x-", &base); err != nil || !strings.Contains(string(maps), "/postgres\n") {
		return 0, fmt.Errorf("no program in the memory of %d: %w", pid, err)
	}
	for _, s := range symbols {
		if s.Name == function && program.Type == elf.ET_DYN {
			return uintptr(base + s.Value), nil
		}
	}
	return 0, fmt.Errorf("%s is not found", function)
}

// trap is the instruction that ends in a SIGTRAP.
const trap = 0xcc

func setBreak(pid int, address uintptr) (code []byte, err error) {
	if err := syscall.PtraceAttach(pid); err != nil {
		return nil, err
	}
	if _, err := syscall.Wait4(pid, nil, 0, nil); err != nil {
		return nil, err
	}
	code = make([]byte, 8)
	if _, err := syscall.PtracePeekText(pid, address, code); err != nil {
		return nil, err
	}
	changed := binary.LittleEndian.AppendUint64(nil, binary.LittleEndian.Uint64(code)&^0xff|trap)
	if _, err := syscall.PtracePokeText(pid, address, changed); err != nil {
		return nil, err
	}
	return code, syscall.PtraceCont(pid, 0)
}

// awaitBreak waits until a process is there, and passes its signals on until then.
func awaitBreak(pid int) error {
	for {
		var status syscall.WaitStatus
		if _, err := syscall.Wait4(pid, &status, 0, nil); err != nil {
			return err
		}
		if !status.Stopped() {
			return errors.New("the process has ended")
		}
		if status.StopSignal() == syscall.SIGTRAP {
			return nil
		}
		if err := syscall.PtraceCont(pid, int(status.StopSignal())); err != nil {
			return err
		}
	}
}

func removeBreak(pid int, address uintptr, code []byte) error {
	if _, err := syscall.PtracePokeText(pid, address, code); err != nil {
		return err
	}
	var registers syscall.PtraceRegs
	if err := syscall.PtraceGetRegs(pid, &registers); err != nil {
		return err
	}
	registers.Rip = uint64(address)
	if err := syscall.PtraceSetRegs(pid, &registers); err != nil {
		return err
	}
	return syscall.PtraceDetach(pid)
}
