package archive

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"toban.dev/internal/agent/status"
	"toban.dev/internal/archive/bucket"
	"toban.dev/internal/archive/format"
	"toban.dev/internal/archive/write"
	"toban.dev/internal/ha"
	"toban.dev/internal/protocol"
	"toban.dev/internal/wal"
)

// primary is a server whose WAL can't be kept.
type primary struct {
	write.Source
	asked, closed atomic.Int64
	err           atomic.Pointer[error]
	ended         chan struct{}
}

// fails has it answer with an error from now on.
func (p *primary) fails(err error) { p.err.Store(&err) }

func (p *primary) WAL() Source { return p }

func (p *primary) Ended() <-chan struct{} { return p.ended }

func (p *primary) Keep(context.Context) error {
	p.asked.Add(1)
	return *p.err.Load()
}

func (p *primary) Close() { p.closed.Add(1) }

func (p *primary) Secret(context.Context) ([]byte, error) { return nil, nil }

func TestWhatIsArchived(t *testing.T) {
	leads := ha.HardState{
		Ballot: ha.Ballot{Term: 4}, Won: 4, TermHistory: []ha.TermStart{{Term: 1, Timeline: 1}, {Term: 4, Timeline: 2}},
	}
	fresh, beaten, empty := leads, leads, leads
	fresh.TermHistory = []ha.TermStart{{Term: 4}}
	beaten.Ballot.Term, empty.TermHistory = 5, nil
	for name, c := range map[string]struct {
		config protocol.Config
		memory ha.HardState
		runs   bool
		want   bool
	}{
		"the WAL of a leader": {
			protocol.Config{Archive: &protocol.Archive{Path: "shop"}}, leads, true, true,
		},
		"there is no archive":            {protocol.Config{}, leads, true, false},
		"no primary runs":                {protocol.Config{Archive: &protocol.Archive{}}, leads, false, false},
		"another has been elected since": {protocol.Config{Archive: &protocol.Archive{}}, beaten, true, false},
		"its timeline is not known yet":  {protocol.Config{Archive: &protocol.Archive{}}, fresh, true, false},
		"nobody knows whose WAL it has":  {protocol.Config{Archive: &protocol.Archive{}}, empty, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			l := &Loop{
				Config: func() protocol.Config { return c.config }, HardState: func() ha.HardState { return c.memory },
				Primary: func() Primary {
					if !c.runs {
						return nil
					}
					return &primary{}
				},
			}
			if to, history, p := l.task(); (p != nil) != c.want || c.want && (to.Path != "shop" || len(history) != 2) {
				t.Errorf("the task is %+v, %v, %v", to, history, p)
			}
		})
	}
}

// What keeps the WAL from being archived is said from when on, and is tried again; it is over when
// there is nothing to archive.
func TestWhyNothingIsArchived(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var leads atomic.Bool
		leads.Store(true)
		server, board := &primary{}, status.New(protocol.Status{})
		server.fails(errors.New("no connection"))
		l := &Loop{
			Config:    func() protocol.Config { return protocol.Config{Archive: &protocol.Archive{}} },
			HardState: func() ha.HardState { return ha.HardState{TermHistory: []ha.TermStart{{Timeline: 1}}} },
			Primary: func() Primary {
				if !leads.Load() {
					return nil
				}
				return server
			},
			Status: board, Log: slog.New(slog.DiscardHandler),
		}
		began := time.Now()
		go func() { _ = l.Run(t.Context()) }()
		time.Sleep(time.Minute)
		synctest.Wait()
		now := board.Get()
		if a := now.Archive; a == nil || a.Error != "no connection" || a.Reason != protocol.ArchiveFailing ||
			!a.Since.Equal(began) || now.Number != 1 {
			t.Errorf("after a minute, it has said %d times %+v", now.Number, a)
		}
		if asked, closed := server.asked.Load(), server.closed.Load(); asked < 60 || closed != asked {
			t.Errorf("it was tried %d times, and given up %d times", asked, closed)
		}
		server.fails(fmt.Errorf("open it: %w", format.ErrTaken))
		time.Sleep(time.Minute)
		synctest.Wait()
		if a := board.Get().Archive; a.Reason != protocol.ArchiveTaken || !a.Since.Equal(began) {
			t.Errorf("another reason: %+v", a)
		}
		leads.Store(false)
		time.Sleep(time.Minute)
		synctest.Wait()
		if a := board.Get().Archive; a != nil {
			t.Errorf("of one that does not lead: %+v", a)
		}
	})
}

func TestWhatIsSaidOfTheArchive(t *testing.T) {
	for name, c := range map[string]struct {
		state write.State
		want  protocol.ArchiveStatus
	}{
		"nothing is known yet": {write.State{}, protocol.ArchiveStatus{}},
		"all is archived": {
			write.State{Archived: 0x2000000, Flushed: 0x2000000}, protocol.ArchiveStatus{LSN: "0/2000000"},
		},
		"some is not": {
			write.State{Archived: 0x2000000, Flushed: 0x2000100, Behind: 7 * time.Second},
			protocol.ArchiveStatus{LSN: "0/2000000", LagBytes: 256, LagSeconds: 7},
		},
		"some is nowhere": {
			write.State{
				Archived: 0x6000000, Flushed: 0x6000000, Gap: &format.Gap{From: 0x5000000, To: 0x6000000},
			},
			protocol.ArchiveStatus{LSN: "0/6000000", Gap: "from 0/5000000 to 0/6000000", GapEnd: "0/6000000"},
		},
		"the archive has more than the server": {
			write.State{Err: fmt.Errorf("open: %w", &write.AheadError{Name: "x", What: "goes further"})},
			protocol.ArchiveStatus{
				Reason: protocol.ArchiveAhead,
				Error:  "open: " + (&write.AheadError{Name: "x", What: "goes further"}).Error(),
			},
		},
		"the store has no room": {
			write.State{Archived: 0x2000000, Flushed: 0x2000000, Err: fmt.Errorf("create x: %w", bucket.ErrFull)},
			protocol.ArchiveStatus{LSN: "0/2000000", Reason: protocol.ArchiveFull, Error: "create x: no space left"},
		},
		"the bucket is another's": {
			write.State{Archived: 0x2000000, Flushed: 0x2000000, Err: format.ErrReplaces},
			protocol.ArchiveStatus{LSN: "0/2000000", Reason: protocol.ArchiveUnfit, Error: format.ErrReplaces.Error()},
		},
	} {
		t.Run(name, func(t *testing.T) {
			board := status.New(protocol.Status{})
			to := protocol.Archive{Bucket: bucket.Config{S3: &bucket.S3{Bucket: "b"}, Prefix: "p"}, Path: "ns/x-1"}
			(&Loop{Status: board}).archived(to, c.state)
			c.want.Place = "s3://b/p/ns/x-1"
			if got := board.Get().Archive; got == nil || *got != c.want {
				t.Errorf("it is %+v, want %+v", got, c.want)
			}
		})
	}
}

// written is a server that writes, whose WAL can be kept, until it is ended.
type written struct {
	primary
	flushed atomic.Uint64
}

func (w *written) WAL() Source { return w }

func (w *written) Keep(context.Context) error { return nil }

func (w *written) Oldest(context.Context) (wal.LSN, error) { return 0, nil }

func (w *written) Flushed(context.Context) (wal.LSN, error) {
	select {
	case <-w.ended:
		return 0, errors.New("it has ended")
	default:
		return wal.LSN(w.flushed.Load()), nil
	}
}

func (w *written) Open(name string) (write.File, error) {
	s, _ := wal.ParseSegment(name, wal.SegmentSize)
	return page{s}, nil
}

func (w *written) History(wal.Timeline) ([]byte, error) { return nil, fs.ErrNotExist }

// page is a segment of pages without records.
type page struct{ of wal.Segment }

func (page) Close() error { return nil }

func (p page) ReadAt(content []byte, off int64) (int, error) {
	for i := range content {
		at := off + int64(i)
		content[i] = 0
		if in := at % wal.PageSize; in < 16 {
			header := make([]byte, 16)
			binary.LittleEndian.PutUint32(header[4:], uint32(p.of.Timeline))
			binary.LittleEndian.PutUint64(header[8:], uint64(p.of.Start())+uint64(at-in))
			content[i] = header[in]
		}
	}
	return len(content), nil
}

// What a primary has written last is archived when it has stopped in order, also of one that has led for a moment only.
func TestTheLastWALOfAPrimaryIsArchived(t *testing.T) {
	server := &written{}
	server.ended = make(chan struct{})
	server.flushed.Store(wal.SegmentSize + 100)
	var current atomic.Pointer[written]
	current.Store(server)
	board := status.New(protocol.Status{SystemIdentifier: "7"})
	to := protocol.Archive{Bucket: bucket.Config{Folder: t.TempDir()}, Path: "shop", Owner: "u", MaxLag: time.Hour}
	history := []ha.TermStart{{Timeline: 1}}
	hardState := ha.HardState{TermHistory: history}
	l := &Loop{
		Config: func() protocol.Config {
			return protocol.Config{Archive: &to, Namespace: "shop", Cluster: "main"}
		},
		HardState: func() ha.HardState { return hardState },
		Primary: func() Primary {
			if p := current.Load(); p != nil {
				return p
			}
			return nil
		},
		Status: board, Log: slog.New(slog.DiscardHandler),
	}
	ctx, cancel := context.WithCancel(t.Context())
	ran := make(chan error)
	go func() { ran <- l.Run(ctx) }()
	for a := (*protocol.ArchiveStatus)(nil); a == nil || a.LSN == ""; a = board.Get().Archive {
		if a != nil && a.Error != "" {
			t.Fatal(a.Error)
		}
		time.Sleep(time.Millisecond)
	}
	current.Store(nil)
	close(server.ended)
	const end = wal.SegmentSize + 5000
	hardState.Ballot.Term = 8 // it has promised that to another
	if err := l.Finish(t.Context(), server, history, end); err != nil || l.last.archiver.State().Archived != end {
		t.Errorf("%v, %+v", err, l.last.archiver.State())
	}
	cancel()
	if err := <-ran; err != nil {
		t.Fatal(err)
	}
	short := &written{primary: primary{ended: server.ended}}
	err := l.Finish(t.Context(), short, history, end+100)
	if err != nil || l.last.archiver.State().Archived != end+100 {
		t.Errorf("one that has led for a moment: %v, %+v", err, l.last.archiver.State())
	}
	unpromoted := &written{primary: primary{ended: server.ended}}
	if err := l.Finish(t.Context(), unpromoted, []ha.TermStart{{Term: 8}}, end+200); err == nil {
		t.Error("one whose timeline is not known is finished")
	}
}

// The volume's server asks who writes; other buckets have credentials of their own.
func TestWhoWritesToTheArchive(t *testing.T) {
	l := &Loop{Identity: "/run/identity"}
	if got := l.reaching(bucket.Config{Volume: &bucket.Volume{}}); got.Credentials != "/run/identity" {
		t.Errorf("to a volume as %q", got.Credentials)
	}
	if got := l.reaching(bucket.Config{}); got.Credentials != "" {
		t.Errorf("to a bucket as %q", got.Credentials)
	}
}
