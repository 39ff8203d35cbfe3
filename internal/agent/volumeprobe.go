package agent

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"toban.dev/internal/ha"
	"toban.dev/internal/ha/machine"
	"toban.dev/internal/protocol"
)

// How long after a write the next one is begun, and how often is looked whether it has come back. One that has not for
// writeSlow is told of.
const (
	writeInterval = 500 * time.Millisecond
	writeLook     = 100 * time.Millisecond
	writeSlow     = 300 * time.Millisecond
)

// reasonVolumeStalls is that of an instance whose volume takes no writes.
const reasonVolumeStalls = "VolumeStalls"

// volumeFile lies on the volume, and is written again and again. It is no part of what the agent has to remember.
const volumeFile = "writable"

// volumeLoop tells the machine when the volume does not take writes.
func (a *Agent) volumeLoop(ctx context.Context) error {
	file, failed := filepath.Join(a.Volume, volumeFile), ""
	p := volumeProbe{
		write: func() error { return writeInPlace(file) },
		tell:  func(unwritten time.Duration) { a.post(machine.VolumeSeen{Unwritten: unwritten}) },
		done: func(err error) {
			if err != nil && err.Error() != failed {
				a.Log.Warn("the volume can't be written", "error", err.Error())
			}
			failed = text(err)
		},
	}
	p.run(ctx)
	return nil
}

// volumeProbe sees by writes of its own whether a volume takes writes. There is one write at a time, in a goroutine of
// its own: it may hang for ever, and nobody else waits for it.
type volumeProbe struct {
	write func() error
	// tell is told for how long a write has not come back, again and again, and 0 when it has.
	tell func(unwritten time.Duration)
	// done is told what came of each write. One that fails is no stall: what can't be written to can be read why.
	done func(error)
}

func (p *volumeProbe) run(ctx context.Context) {
	for {
		written := make(chan error, 1)
		go func() { written <- p.write() }()
		p.await(ctx, written)
		if !sleep(ctx, writeInterval) {
			return
		}
	}
}

// await waits for a write. Only what is seen of its wait counts: after a pause of the agent's own, the write may have
// come back long ago.
func (p *volumeProbe) await(ctx context.Context, written <-chan error) {
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

// describeVolume says that the volume stalls, where that is not the reason for what was decided anyway.
func describeVolume(s *protocol.Status, l ha.Local) {
	if stalling := l.Stalling(); stalling != "" && s.Reason != "ServerFailed" {
		s.Reason, s.Message = reasonVolumeStalls, stalling+": look at its disk, or at the storage that it is of"
	}
}
