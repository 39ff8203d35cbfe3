package virtual

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"toban.dev/internal/postgres"
)

// copyAsked asks a server for its data; first and last are what it sends: when the copy begins, and when it ends.
type copyAsked struct{ takes time.Duration }
type copyBegun struct {
	refusal error
	history []byte
	disk    *disk
}
type copyEnded struct{ disk *disk }

// sendCopy sends the data of a server: its files first, with the term history among them, and then the WAL
// that was written meanwhile.
func (p *process) sendCopy(c *conn, asked copyAsked) {
	p.w.mutex.Lock()
	deaf := p.stopping || time.Now().Before(p.s.deaf)
	begun := copyBegun{disk: p.s.disk.copied()}
	recovers := p.recovery
	p.w.mutex.Unlock()
	if deaf {
		begun.refusal = errors.New("this server takes no replication")
	}
	begun.history, _ = os.ReadFile(filepath.Join(p.s.Path(), lineageFile))
	if c.send(begun) != nil || begun.refusal != nil || pause(p.life, asked.takes) != nil {
		return
	}
	p.w.mutex.Lock()
	ended := copyEnded{p.s.disk.copied()}
	promoted := recovers != p.recovery
	p.w.mutex.Unlock()
	if !promoted { // a copy of a standby that is promoted meanwhile fails
		_ = c.send(ended)
	}
}

// fetch copies the data of a server. Between its beginning and its end it calls flows.
func (s *server) fetch(
	ctx context.Context, u postgres.Upstream, kind string, flows func(begun copyBegun) error,
) (copyBegun, *disk, error) {
	if err := s.takes(ctx, kind, 20*time.Millisecond, 100*time.Millisecond); err != nil {
		return copyBegun{}, nil, err
	}
	c, err := s.w.net.dial(ctx, s.name, net.JoinHostPort(u.Host, strconv.Itoa(u.Port)))
	if err != nil {
		return copyBegun{}, nil, err
	}
	defer c.Close()
	_ = c.send(copyAsked{s.w.between(kind+s.name, 100*time.Millisecond, 1500*time.Millisecond)})
	message, err := c.receive(ctx, copyPatience)
	begun, ok := message.(copyBegun)
	if err == nil && !ok {
		err = fmt.Errorf("%T is no copy", message)
	}
	if err = errors.Join(err, begun.refusal); err != nil {
		return copyBegun{}, nil, err
	}
	if err := flows(begun); err != nil {
		return copyBegun{}, nil, err
	}
	message, err = c.receive(ctx, copyPatience)
	ended, ok := message.(copyEnded)
	if err == nil && !ok {
		err = fmt.Errorf("%T is not the end of a copy", message)
	}
	if err == nil {
		err = s.takes(ctx, "copy ends", time.Millisecond, 20*time.Millisecond)
	}
	return begun, ended.disk, err
}

// Clone is postgres.Server's. On a cramped volume the data has to go before the copy is whole.
func (s *server) Clone(ctx context.Context, u postgres.Upstream, mayDiscard func(whole bool) error, _ io.Writer) error {
	begun, copied, err := s.fetch(ctx, u, "clone", func(copyBegun) error { return s.makeRoom(mayDiscard) })
	if err != nil {
		return fmt.Errorf("pg_basebackup: %w", err)
	}
	if err := mayDiscard(true); err != nil {
		return err
	}
	if err := s.awaitVolumeFor(ctx); err != nil {
		return err
	}
	copied.oldest = len(begun.disk.wal)
	return s.replace(copied, begun.history)
}

func (s *server) makeRoom(mayDiscard func(whole bool) error) error {
	s.w.mutex.Lock()
	cramped := s.cramped && s.disk.data
	s.w.mutex.Unlock()
	if !cramped {
		return nil
	}
	if err := mayDiscard(false); err != nil {
		return errors.Join(postgres.ErrNoRoom, err)
	}
	s.w.mutex.Lock()
	defer s.w.mutex.Unlock()
	s.w.check.discards(s.host)
	*s.disk = disk{}
	return s.putLineage(nil)
}

// replace puts a copy in the place of the data.
func (s *server) replace(copied *disk, history []byte) error {
	s.w.mutex.Lock()
	defer s.w.mutex.Unlock()
	if s.isDead() {
		return errDead
	}
	copied.standby, copied.incomplete, copied.forked = true, false, false
	copied.settings, copied.state = postgres.Settings{}, "in production"
	*s.disk = *copied
	return s.putLineage(history)
}

// Rewind is postgres.Server's.
func (s *server) Rewind(ctx context.Context, u postgres.Upstream, _ io.Writer) error {
	if err := s.prepareRewind(ctx); err != nil {
		return fmt.Errorf("prepare the rewind: %w", err)
	}
	begins := false
	begun, copied, err := s.fetch(ctx, u, "rewind", func(begun copyBegun) (err error) {
		begins, err = s.beginRewind(begun.disk)
		return err
	})
	if err != nil {
		return fmt.Errorf("pg_rewind: %w", err) // data of which some was changed is not whole
	}
	if !begins {
		return nil
	}
	if err := s.awaitVolumeFor(ctx); err != nil {
		return err
	}
	return s.replace(copied, begun.history)
}

// prepareRewind lets a server that was not stopped in order recover first, which writes a checkpoint.
func (s *server) prepareRewind(ctx context.Context) error {
	if err := s.takes(ctx, "single", 20*time.Millisecond, 100*time.Millisecond); err != nil {
		return err
	}
	if err := s.awaitVolumeFor(ctx); err != nil {
		return err
	}
	s.w.mutex.Lock()
	defer s.w.mutex.Unlock()
	d := s.disk
	switch {
	case !d.data:
		return errNoData
	case d.incomplete:
		return errors.New("the data directory is not whole")
	case d.state != "shut down" && d.state != "shut down in recovery":
		d.write(s.w.nextID(), "recovered")
		d.state, d.checkpoint, d.standby = "shut down", len(d.wal)-1, false
	}
	return nil
}

// beginRewind looks where the histories part, and changes the first file unless there is nothing to take back.
func (s *server) beginRewind(source *disk) (begins bool, err error) {
	s.w.mutex.Lock()
	defer s.w.mutex.Unlock()
	d := s.disk
	if source.settled != source.timeline() || source.settled == d.timeline() {
		return false, postgres.ErrSameTimeline
	}
	at, ok := parting(d.history, source.history, len(d.wal), len(source.wal))
	if !ok {
		return false, errors.New("could not find common ancestor of the source and target cluster's timelines")
	}
	if len(d.wal) <= at {
		return false, nil
	}
	d.incomplete = true
	return true, nil
}
