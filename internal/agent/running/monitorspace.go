package running

import (
	"context"
	"time"

	"toban.dev/internal/protocol"
)

// spareRoom sees to a server whose volume gets full. A checkpoint, or a restartpoint of a standby, removes the WAL that
// nobody needs. On a primary, which takes no writes then, the transactions are ended that were writing, and if need be
// those that only read.
func (t *monitor) spareRoom(ctx context.Context) error {
	spares, primary := t.config.spares(), t.standing.IsPrimary()
	t.status.Change(func(s *protocol.Status) { s.ReadOnly = spares && primary })
	if !spares {
		t.spared = time.Time{}
		return nil
	}
	if t.spared.IsZero() {
		t.spared = time.Now()
		t.checkpoint()
	}
	if !primary {
		return nil
	}
	reads := t.flags.EndReads.Load()
	ended, err := t.session.EndWriters(ctx, t.spared, reads)
	if ended > 0 {
		t.log.Warn("sessions were ended, for the volume gets full", "sessions", ended, "readsToo", reads)
	}
	return err
}

// observeSpace notes whether there is room for WAL.
func (t *monitor) observeSpace() {
	free, err := t.server.Directory().FreeSpace()
	if err != nil {
		t.log.Warn("the free space of the volume is not known", "error", err.Error())
		return
	}
	t.flags.full.Store(free < leastSpace)
}
