package virtual

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"toban.dev/internal/archive/book"
	"toban.dev/internal/archive/bucket"
	"toban.dev/internal/ha"
	"toban.dev/internal/protocol"
	"toban.dev/internal/wal"
)

// pgWAL is where files of WAL lie, for the archive. The model keeps its WAL elsewhere.
func (s *server) pgWAL(name string) string { return filepath.Join(s.Path(), "pg_wal", name) }

// Open is postgres.WALDirectory's. The file has pages without records, as far as the WAL goes.
func (s *server) Open(name string) (*os.File, error) {
	segment, ok := wal.ParseSegment(name, wal.SegmentSize)
	if !ok {
		return nil, fmt.Errorf("open %s: %w", name, os.ErrNotExist)
	}
	end := uint64(locked(s.w, func() wal.LSN { return lsn(len(s.disk.wal)) }))
	content := make([]byte, (end/wal.PageSize+1)*wal.PageSize)
	for at := 0; at < len(content); at += wal.PageSize {
		address := uint64(segment.Start()) + uint64(at)
		binary.LittleEndian.PutUint32(content[at+4:], uint32(segment.Timeline))
		binary.LittleEndian.PutUint64(content[at+8:], address)
	}
	if err := os.WriteFile(s.pgWAL(name), content, 0o600); err != nil {
		return nil, err
	}
	return os.Open(s.pgWAL(name))
}

// archived has the cluster archive to a folder, where a commit may wait for an hour, and waits until the primary does.
func (w *world) archived(p *process) bucket.Bucket {
	w.Helper()
	folder := filepath.Join(w.folder, "bucket")
	w.check.must(os.Mkdir(folder, 0o700))
	w.mutex.Lock()
	hosts := w.hosts()
	w.mutex.Unlock()
	for _, h := range hosts {
		first := wal.Segment{Timeline: 1, Size: wal.SegmentSize}
		w.check.must(os.MkdirAll(h.server.pgWAL(""), 0o700))
		w.check.must(os.WriteFile(h.server.pgWAL(first.String()), nil, 0o600))
		w.check.must(os.WriteFile(h.server.pgWAL(wal.Timeline(2).HistoryFile()), nil, 0o600)) // of who is promoted
	}
	w.mutex.Lock()
	w.config.Archive = &protocol.Archive{
		Bucket: bucket.Config{Folder: folder}, Path: "test/db", Owner: "uid", MaxLag: time.Hour,
	}
	w.mutex.Unlock()
	w.eventually("the primary archives", time.Minute, func() bool {
		a := p.s.agent.Status().Archive
		return a != nil && a.Reason == ""
	})
	return bucket.Sub(bucket.OpenFolder(folder), "test/db")
}

// promised waits until an instance has promised a term to another.
func (w *world) promised(h *host) {
	w.Helper()
	before := locked(w, func() ha.Ballot { return h.hardState.Ballot })
	w.eventually("another asks for votes", 10*time.Second, func() bool {
		return locked(w, func() bool { return h.hardState.Ballot.Leader != before.Leader })
	})
}

// All instances are told to stop, in some order. Every commit that was acknowledged is in the archive then.
func TestThatAllStopLeavesNothingOutOfTheArchive(t *testing.T) {
	together := func(hosts ...*host) {
		for _, h := range hosts {
			h.leave()
		}
	}
	for name, stop := range map[string]func(w *world, primary, standby *host){
		"both at once": func(_ *world, primary, standby *host) { together(primary, standby) },
		"the standby, and the primary when that has ended": func(_ *world, primary, standby *host) {
			standby.leave()
			<-standby.over
			primary.leave()
		},
		"the primary, and the standby when it has been elected": func(w *world, primary, standby *host) {
			w.change(func() { standby.hanging["promote"] = time.Now().Add(time.Minute) })
			primary.leave()
			w.promised(primary)
			standby.leave()
		},
		"the primary, and the standby when it leads": func(w *world, primary, standby *host) {
			primary.leave()
			leads := func() bool { return standby.agent.Status().Election.Leading }
			w.eventually("another leads", 10*time.Second, leads)
			standby.leave()
		},
		"the primary, and the standby while the server there stops, which takes long": func(
			w *world, primary, standby *host,
		) {
			primary.leave()
			w.eventually("the server stops", 10*time.Second, func() bool {
				return locked(w, func() bool { p := primary.server.process; return p != nil && p.stopping })
			})
			w.change(func() { primary.hanging["checkpoint"] = time.Now().Add(4 * time.Second) })
			standby.leave()
		},
		"both at once, when the API is away": func(w *world, primary, standby *host) {
			w.withoutAPI(primary, standby)
			together(primary, standby)
		},
		"the standby, and the primary a moment later, when the API is away": func(w *world, primary, standby *host) {
			w.withoutAPI(primary, standby)
			standby.leave()
			time.Sleep(500 * time.Millisecond)
			primary.leave()
		},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, 9, 2, func(w *world) {
				p := w.formed()
				archive := w.archived(p)
				primary, standby := p.s.host, locked(w, func() *host {
					for _, h := range w.hosts() {
						if h != p.s.host {
							return h
						}
					}
					return nil
				})
				stop(w, primary, standby)
				<-primary.over
				<-standby.over
				w.isArchived(archive)
			})
		})
	}
}

// withoutAPI cuts hosts off from the API.
func (w *world) withoutAPI(hosts ...*host) {
	for _, h := range hosts {
		w.cutOff(h.instance, "api")
	}
}

// isArchived expects that all that was acknowledged is in an archive.
func (w *world) isArchived(archive bucket.Bucket) {
	w.Helper()
	catalogue, err := book.Read(w.ctx, archive)
	w.check.must(err)
	to, gap := catalogue.Covered(catalogue.NewestTermHistory(), 0)
	want := locked(w, func() (end wal.LSN) {
		for _, k := range w.check.commits {
			if k.how == "acknowledged" {
				end = max(end, lsn(k.index+1))
			}
		}
		return end
	})
	w.expect(fmt.Sprintf("the archive goes to the last acknowledged commit at %s: to %s, gap %v", want, to, gap),
		to >= want && gap == nil)
	cut := locked(w, func() bool {
		return slices.ContainsFunc(w.trace, func(line string) bool { return strings.Contains(line, "could not stop") })
	})
	w.expect("no stop is cut short: nobody knows where the WAL ends then", !cut)
}
