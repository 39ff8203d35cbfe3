package virtual

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/jackc/pgx/v5"

	"toban.dev/internal/agent/running"
	"toban.dev/internal/pki"
	"toban.dev/internal/postgres"
	"toban.dev/internal/wal"
)

// server is a model of PostgreSQL behind the interface by which an agent uses it. It lives as long as its host does.
type server struct {
	*host
	// lowest is the lowest term that it may follow in.
	lowest  uint64
	process *process
}

var errNoData = errors.New("there is no data directory")

// The model is its data directory and pg_wal, too.
func (s *server) Directory() running.DataDirectory { return s }
func (s *server) WAL() running.WALDirectory        { return s }

// Path is where the agent puts its term history.
func (s *server) Path() string { return filepath.Join(s.volume, "data") }

// onDisk gives back what the volume says. A volume that stalls says nothing.
func onDisk[T any](s *server, look func(d *disk) T) (T, error) {
	var none T
	if err := s.awaitVolume(); err != nil {
		return none, err
	}
	s.w.mutex.Lock()
	defer s.w.mutex.Unlock()
	return look(s.disk), nil
}

// HasData and the next ones are postgres.DataDirectory's and postgres.Server's.
func (s *server) HasData() (bool, error) { return onDisk(s, func(d *disk) bool { return d.data }) }
func (s *server) Incomplete() (bool, error) {
	return onDisk(s, func(d *disk) bool { return d.incomplete })
}
func (s *server) Forked() (bool, error) { return onDisk(s, func(d *disk) bool { return d.forked }) }

// MarkForked is postgres.DataDirectory's.
func (s *server) MarkForked() error {
	_, err := onDisk(s, func(d *disk) bool { d.forked = true; return true })
	return err
}

// FreeSpace is postgres.DataDirectory's: a cramped volume has room for all but a copy.
func (s *server) FreeSpace() (uint64, error) {
	s.w.mutex.Lock()
	defer s.w.mutex.Unlock()
	if s.cramped {
		return 1 << 30, nil
	}
	return 10 << 30, nil
}

// Control is postgres.Server's.
func (s *server) Control(ctx context.Context) (postgres.Control, error) {
	if err := s.takes(ctx, "control", 2*time.Millisecond, 10*time.Millisecond); err != nil {
		return postgres.Control{}, err
	}
	s.w.mutex.Lock()
	defer s.w.mutex.Unlock()
	d := s.disk
	if !d.data {
		return postgres.Control{}, errNoData
	}
	return postgres.Control{
		SystemIdentifier: d.system, State: d.state, Checkpoint: lsn(d.checkpoint).String(), Timeline: d.settled,
		Least: map[string]int{},
	}, nil
}

// Initialise is postgres.Server's.
func (s *server) Initialise(ctx context.Context, _ io.Writer) error {
	if err := s.takes(ctx, "initialise", 50*time.Millisecond, 300*time.Millisecond); err != nil {
		return err
	}
	s.w.mutex.Lock()
	defer s.w.mutex.Unlock()
	s.w.systems++
	s.disk.initialise(fmt.Sprintf("system-%d", s.w.systems), s.w.nextID)
	return s.putLineage(nil)
}

// putLineage puts the term history of a copy beside it, in place of the one that was there. The
// host's folder is a real one.
func (s *server) putLineage(history []byte) error {
	if s.isDead() {
		return errDead
	}
	if err := os.MkdirAll(s.Path(), 0o700); err != nil {
		return err
	}
	path := filepath.Join(s.Path(), lineageFile)
	if history == nil {
		if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	return os.WriteFile(path, history, 0o600)
}

// Presents is postgres.Server's. The model reads its certificates whenever it is asked.
func (s *server) Presents(context.Context) (postgres.Presented, error) {
	certificate, err := s.certificates(postgres.FileClients)
	if err != nil || len(certificate) == 0 {
		return postgres.Presented{}, err
	}
	authorities, err := s.certificates(postgres.FileAuthority)
	out := postgres.Presented{Certificate: certificate[0].Raw}
	for _, c := range authorities {
		out.Authorities = append(out.Authorities, c.RawSubject)
	}
	return out, err
}

// certificates are those of a file.
func (s *server) certificates(file string) ([]*x509.Certificate, error) {
	text, err := os.ReadFile(filepath.Join(s.run, file))
	return pki.Certificates(text), err
}

// Check is postgres.Server's. The model takes every configuration.
func (s *server) Check(ctx context.Context, _ postgres.Settings) error {
	return s.takes(ctx, "check", 5*time.Millisecond, 20*time.Millisecond)
}

// Configure is postgres.Server's.
func (s *server) Configure(settings postgres.Settings) error {
	if err := s.awaitVolume(); err != nil {
		return err
	}
	s.w.mutex.Lock()
	defer s.w.mutex.Unlock()
	if u := settings.Upstream; u != nil && u.Term < s.lowest {
		return fmt.Errorf("follow a server in term %d: terms before %d have been revoked", u.Term, s.lowest)
	}
	s.disk.settings = settings
	return nil
}

// SetStandby is postgres.DataDirectory's.
func (s *server) SetStandby(standby bool) error {
	_, err := onDisk(s, func(d *disk) bool { d.standby = standby; return true })
	return err
}

// Revoke is postgres.Server's. What it changes lies in memory.
func (s *server) Revoke(term uint64) error {
	s.w.mutex.Lock()
	defer s.w.mutex.Unlock()
	if s.isDead() {
		return errDead
	}
	s.lowest = max(s.lowest, term)
	return nil
}

// Start is postgres.Server's.
func (s *server) Start(ctx context.Context, _ io.Writer) (running.Process, error) {
	if err := s.takes(ctx, "start", time.Millisecond, 20*time.Millisecond); err != nil {
		return nil, err
	}
	s.w.mutex.Lock()
	defer s.w.mutex.Unlock()
	switch {
	case s.isDead():
		return nil, errDead
	case !s.disk.data:
		return nil, errNoData
	case s.disk.incomplete:
		return nil, errors.New("the data directory is not whole")
	case s.process != nil && !s.process.ended():
		s.w.fail("nothing of an earlier server works in the data directory when one is started", "%s", s.name)
	}
	s.process = newProcess(s)
	go s.process.run()
	return s.process, nil
}

// Connect is postgres.Server's.
func (s *server) Connect(ctx context.Context) (running.Session, error) {
	session, err := s.connect(ctx)
	if err != nil {
		return nil, fmt.Errorf("connect to the server: %w", err)
	}
	return session, nil
}

func (s *server) connect(ctx context.Context) (*session, error) {
	s.w.mutex.Lock()
	p := s.process
	s.w.mutex.Unlock()
	if p == nil || !p.is(func() bool { return p.ready && !p.stopping }) {
		return nil, errors.New("nobody listens")
	}
	opened := &session{process: p}
	return opened, opened.query(ctx)
}

// ProveLogin is postgres.Server's.
func (s *server) ProveLogin(ctx context.Context) error {
	_, err := s.Connect(ctx)
	return err
}

// ConnectTo is postgres.Server's. Nobody declares databases here.
func (s *server) ConnectTo(context.Context, string) (*pgx.Conn, error) {
	return nil, errors.New("the model has no databases")
}

// ConnectStatistics, ConnectMetrics and EnsureMetricsRole are postgres.Server's. Nobody asks for metrics here.
func (s *server) ConnectStatistics(context.Context) (*pgx.Conn, error) {
	return nil, errors.New("the model has no statistics")
}

func (s *server) ConnectMetrics(context.Context, string) (*pgx.Conn, error) {
	return nil, errors.New("the model has no databases")
}

func (s *server) EnsureMetricsRole(context.Context, string) error {
	return errors.New("the model has no roles")
}

// Fork, Branch and ForkFrom are postgres.WALDirectory's.
func (s *server) Fork(timeline wal.Timeline) (wal.LSN, error) {
	return s.fromHistory(timeline, func(h []begin) int { return h[len(h)-1].at })
}

func (s *server) Branch(timeline, earlier wal.Timeline) (wal.LSN, error) {
	return s.fromHistory(timeline, func(h []begin) int {
		if at, ok := leaves(h, earlier, -1); ok && at >= 0 {
			return at
		}
		return h[len(h)-1].at
	})
}

func (s *server) ForkFrom(timeline wal.Timeline, from wal.LSN) (wal.LSN, error) {
	return s.fromHistory(timeline, func(h []begin) int {
		at := h[len(h)-1].at
		for _, b := range h[1:] {
			if lsn(b.at) >= from {
				at = min(at, b.at)
			}
		}
		return at
	})
}

// fromHistory finds something in the history of a timeline.
func (s *server) fromHistory(timeline wal.Timeline, find func([]begin) int) (wal.LSN, error) {
	s.w.mutex.Lock()
	defer s.w.mutex.Unlock()
	history := s.disk.known[timeline]
	if timeline == 1 {
		history = []begin{{timeline: 1}}
	}
	if len(history) == 0 {
		return 0, fmt.Errorf("the history of timeline %d is not there", timeline)
	}
	if len(history) == 1 {
		return 0, nil
	}
	return lsn(find(history)), nil
}

// HasTimelines is postgres.WALDirectory's.
func (s *server) HasTimelines(after wal.Timeline) (bool, error) {
	return onDisk(s, func(d *disk) bool {
		for timeline := range d.known {
			if timeline > after {
				return true
			}
		}
		return d.data && d.timeline() > after
	})
}

// ForgetTimelines is postgres.WALDirectory's.
func (s *server) ForgetTimelines(after wal.Timeline) error {
	_, err := onDisk(s, func(d *disk) bool {
		for timeline := range d.known {
			if timeline > after {
				delete(d.known, timeline)
			}
		}
		// A standby that has only heard of a timeline goes back to the one that its WAL is on.
		for d.timeline() > after && d.history[len(d.history)-1].at >= len(d.wal) {
			d.history = d.history[:len(d.history)-1]
		}
		if d.timeline() > after {
			s.w.fail("no WAL is forgotten that the data is of", "%s forgets what is after timeline %d, and is on %v",
				s.name, after, d.history)
		}
		return true
	})
	return err
}

// ForgetSuperseded is postgres.WALDirectory's. The model has no files.
func (s *server) ForgetSuperseded(wal.Timeline) (int, error) { return 0, nil }

// term is the one that the term history beside the data ends with: that of a primary.
func (s *server) term() uint64 {
	history := readHistory(s.Path())
	if len(history) == 0 {
		return 0
	}
	return history[len(history)-1].Term
}

var _ running.PostgreSQL = (*server)(nil)
