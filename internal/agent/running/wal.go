package running

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"toban.dev/internal/archive/write"
	"toban.dev/internal/naming"
	"toban.dev/internal/wal"
)

// walSource is the WAL of the running server, looked at with a session of its own.
type walSource struct {
	server  PostgreSQL
	mutex   sync.Mutex
	session Session
}

// Close ends the session.
func (w *walSource) Close() {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if w.session != nil {
		w.session.Close()
		w.session = nil
	}
}

// ask asks the server, with a new session where there is none that works.
func (w *walSource) ask(ctx context.Context, question func(Session) error) error {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if w.session == nil || w.session.Broken() {
		session, err := w.server.Connect(ctx)
		if err != nil {
			return err
		}
		w.session = session
	}
	return question(w.session)
}

// Keep has the server keep WAL until it is archived.
func (w *walSource) Keep(ctx context.Context) error {
	return w.ask(ctx, func(s Session) error { return s.EnsureSlot(ctx, naming.SlotArchive) })
}

// Flushed is up to where the WAL is on disk.
func (w *walSource) Flushed(ctx context.Context) (lsn wal.LSN, err error) {
	err = w.ask(ctx, func(s Session) error {
		lsn, err = s.FlushedWAL(ctx)
		return err
	})
	return lsn, err
}

// Oldest is where the oldest segment begins that there is. The server need not run.
func (w *walSource) Oldest(context.Context) (wal.LSN, error) {
	entries, err := os.ReadDir(filepath.Join(w.server.Directory().Path(), "pg_wal"))
	if err != nil {
		return 0, fmt.Errorf("look for the oldest WAL file: %w", err)
	}
	oldest := wal.MaxLSN
	for _, e := range entries {
		if s, is := wal.ParseSegment(e.Name(), wal.SegmentSize); is {
			oldest = min(oldest, s.Start())
		}
	}
	if oldest == wal.MaxLSN {
		return 0, fmt.Errorf("look for the oldest WAL file: there is none in %s", w.server.Directory().Path())
	}
	return oldest, nil
}

// Secret is the nonce of the database system that nobody else knows.
func (w *walSource) Secret(ctx context.Context) ([]byte, error) {
	control, err := w.server.Control(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the nonce of the database system: %w", err)
	}
	return control.Nonce, nil
}

// Open opens a segment by its name.
func (w *walSource) Open(name string) (write.File, error) {
	return w.server.WAL().Open(name)
}

// History is the content of a timeline's history file.
func (w *walSource) History(timeline wal.Timeline) ([]byte, error) {
	text, err := os.ReadFile(filepath.Join(w.server.Directory().Path(), "pg_wal", timeline.HistoryFile()))
	if err != nil {
		return nil, fmt.Errorf("read the history of timeline %d: %w", timeline, err)
	}
	return text, nil
}
