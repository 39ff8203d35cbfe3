package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"

	"toban.dev/internal/postgres"
)

// CommandGuard is the verb by which this program is run as a guard.
const CommandGuard = "guard"

const (
	// guardPatience is how long a guard may take until it is ready.
	guardPatience = 5 * time.Second
	// startCounts is how long it counts how soon a guard has begun. The next program is as large.
	startCounts = time.Second
)

// guard is the process that ends a primary's server if the program that takes it over does not lead in time.
type guard struct {
	cmd  *exec.Cmd
	pipe *os.File
	// ready is when it was, took how long that had taken.
	ready time.Time
	took  time.Duration
}

// quick says that it was ready within a time, and lately.
func (g *guard) quick(within time.Duration) bool {
	return g.fresh() && g.took < within
}

// fresh says that it was ready lately.
func (g *guard) fresh() bool { return g != nil && time.Since(g.ready) < startCounts }

// guarded is what a guard is told when it is armed: a server, and when to end it by the monotonic clock.
type guarded struct {
	Server postgres.Handed `json:"server"`
	At     time.Duration   `json:"at"`
}

// startGuard starts one and waits until it is ready to be armed: its own start takes nothing of the time that the next
// program has.
func startGuard(ctx context.Context) (*guard, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("start the guard: %w", err)
	}
	defer read.Close()
	ready, says, err := os.Pipe()
	if err != nil {
		_ = write.Close() // nothing was written
		return nil, fmt.Errorf("start the guard: %w", err)
	}
	defer ready.Close()
	cmd := exec.Command("/proc/self/exe", CommandGuard) //nolint:noctx // it is this program, and outlasts who starts it
	cmd.Stdin, cmd.Stdout, cmd.Stderr = read, says, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	began := time.Now()
	err = postgres.Children.Start(cmd)
	_ = says.Close() // nothing was written
	if err != nil {
		_ = write.Close() // likewise
		return nil, fmt.Errorf("start the guard: %w", err)
	}
	g := &guard{cmd: cmd, pipe: write}
	stop := context.AfterFunc(ctx, func() { _ = ready.SetReadDeadline(time.Unix(1, 0)) }) // it has one anyway
	defer stop()
	_ = ready.SetReadDeadline(time.Now().Add(guardPatience)) // a pipe can have one
	if _, err := io.ReadFull(ready, make([]byte, 1)); err != nil {
		g.dismiss()
		return nil, fmt.Errorf("start the guard: it does not say that it is ready: %w", err)
	}
	g.ready, g.took = time.Now(), time.Since(began)
	return g, nil
}

// pid is its process, 0 where there is none.
func (g *guard) pid() int {
	if g == nil {
		return 0
	}
	return g.cmd.Process.Pid
}

// arm has it end a server at a moment of the monotonic clock, unless it hears before by the pipe, which the next
// program inherits by the descriptor.
func (g *guard) arm(server postgres.Handed, at time.Duration) (descriptor int, err error) {
	text, err := json.Marshal(guarded{server, at})
	if err != nil {
		return 0, fmt.Errorf("arm the guard: %w", err)
	}
	if _, err := g.pipe.Write(append(text, '\n')); err != nil {
		return 0, fmt.Errorf("arm the guard: %w", err)
	}
	return postgres.Inherit(g.pipe, true) //nolint:wrapcheck // it says what
}

// dismiss ends it: the exchange did not take place.
func (g *guard) dismiss() {
	if g == nil {
		return
	}
	_, _ = g.pipe.Write([]byte{'\n'}) // one that has ended needs no word
	_ = g.pipe.Close()                // likewise
	go func() { _ = postgres.Children.Wait(g.cmd) }()
}

// Guard is that process: it says that it is ready, and is armed or dismissed then. Armed, it ends the server at the
// moment that it was told, unless it hears before of somebody who leads, or whose end is the server's.
func Guard(ctx context.Context, in *os.File, out io.Writer) error {
	if _, err := out.Write([]byte{'\n'}); err != nil {
		return fmt.Errorf("say that the guard is ready: %w", err)
	}
	from := json.NewDecoder(in)
	var told guarded
	if err := from.Decode(&told); err != nil {
		return nil //nolint:nilerr // dismissed
	}
	when, err := timeOf(told.At)
	if err != nil {
		return err
	}
	heard := make(chan struct{})
	go func() {
		defer close(heard)
		// The line's end has been read or comes first.
		_, _ = io.ReadFull(io.MultiReader(from.Buffered(), in), make([]byte, 2)) // its end is a word, too
	}()
	select {
	case <-heard:
		return nil
	case <-time.After(time.Until(when)):
	}
	return postgres.EndHanded(ctx, told.Server) //nolint:wrapcheck // it says what
}
