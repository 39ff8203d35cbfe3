package pooler

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
)

// bouncer is the process of PgBouncer.
type bouncer struct {
	cmd   *exec.Cmd
	ended chan struct{}
	err   error // once it has ended
}

// startBouncer starts PgBouncer, whose log goes to the error output. It ends with this process.
func startBouncer(program, configuration string) (*bouncer, error) {
	b := &bouncer{cmd: exec.Command(program, configuration), ended: make(chan struct{})}
	b.cmd.Stdout, b.cmd.Stderr = os.Stderr, os.Stderr
	b.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // Linux sends the signal when the thread ends that has started the process
		err := b.cmd.Start()
		started <- err
		if err == nil {
			b.err = b.cmd.Wait()
			close(b.ended)
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start PgBouncer (the image must have pgbouncer on its PATH): %w", err)
	}
	return b, nil
}

// failure says why it has ended by itself, nil while it runs.
func (b *bouncer) failure() error {
	select {
	case <-b.ended:
		return errors.Join(errors.New("PgBouncer has ended"), b.err)
	default:
		return nil
	}
}

// kill ends it at once.
func (b *bouncer) kill() {
	_ = b.cmd.Process.Kill() // it may have ended
	<-b.ended
}
