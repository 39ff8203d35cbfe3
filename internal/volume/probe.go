package volume

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"toban.dev/internal/pause"
)

// How long after a write the next one is begun, and how often is looked whether it has come back. One that has not for
// writeSlow is told of.
const (
	writeInterval = 500 * time.Millisecond
	writeLook     = 100 * time.Millisecond
	writeSlow     = 300 * time.Millisecond
)

// probeFile lies on the volume, and is written again and again. It is no part of what the agent has to remember.
const probeFile = "writable"

// NewProbe is the probe of a volume. tell is told for how long a write has not come back, again and
// again, and 0 when it has.
func NewProbe(volume string, tell func(unwritten time.Duration), log *slog.Logger) *Probe {
	file, failed := filepath.Join(volume, probeFile), ""
	done := func(err error) {
		words := ""
		if err != nil {
			words = err.Error()
		}
		if words != failed && err != nil {
			log.Warn("the volume can't be written", "error", words)
		}
		failed = words
	}
	return &Probe{write: func() error { return writeInPlace(file) }, tell: tell, done: done}
}

// Probe sees by writes of its own whether a volume takes writes. There is one write at a time, in a goroutine of
// its own: it may hang for ever, and nobody else waits for it.
type Probe struct {
	write func() error
	// tell is told for how long a write has not come back, again and again, and 0 when it has.
	tell func(unwritten time.Duration)
	// done is told what came of each write. One that fails is no stall: what can't be written to can be read why.
	done func(error)
}

// Run writes again and again, until ctx ends.
func (p *Probe) Run(ctx context.Context) error {
	for {
		written := make(chan error, 1)
		go func() { written <- p.write() }()
		p.await(ctx, written)
		if !pause.Every(ctx, writeInterval) {
			return nil
		}
	}
}

// await waits for a write. Only what is seen of its wait counts: after a pause of the agent's own, the write may have
// come back long ago.
func (p *Probe) await(ctx context.Context, written <-chan error) {
	ticker := time.NewTicker(writeLook)
	defer ticker.Stop()
	unwritten, before := time.Duration(0), time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case err := <-written:
			if unwritten >= writeSlow {
				p.tell(0)
			}
			p.done(err)
			return
		case <-ticker.C:
		}
		now := time.Now()
		unwritten += min(now.Sub(before), 2*writeLook)
		if before = now; unwritten >= writeSlow {
			p.tell(unwritten)
		}
	}
}

// writeInPlace writes something to a file, the same number of bytes each time, and waits until it is on disk. That
// takes room once, and no entry in a file system's journal, for which it would have to wait until what others write is
// on disk: PostgreSQL writes its WAL so, too.
func writeInPlace(path string) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("see whether the volume takes writes: %w", err)
	}
	defer file.Close()
	if _, err = fmt.Fprintf(file, "%020d\n", time.Now().UnixNano()); err == nil {
		err = syscall.Fdatasync(int(file.Fd()))
	}
	if err != nil {
		return fmt.Errorf("see whether the volume takes writes: %w", err)
	}
	return nil
}
