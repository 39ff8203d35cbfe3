package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"syscall"
	"time"
)

// ErrNoRoom says that the volume has no room for a copy beside the data, which stays.
var ErrNoRoom = errors.New("the volume has no room for a copy beside the data")

const (
	// roomToSpare is how much of the volume must be left for a copy to go on beside the data that it replaces: as much
	// as a fast one writes while that is being removed. leastRoom is with how little it does not go on at all, and
	// can't even begin to write: a file of WAL.
	roomToSpare = 256 << 20
	leastRoom   = 20 << 20
	// roomInterval is how often it is looked how much is left, discardInterval how often it is asked
	// whether the data may go.
	roomInterval    = 20 * time.Millisecond
	discardInterval = time.Second
)

// Clone copies the data of another server through a replication connection, with the WAL that was written meanwhile
// (pg_basebackup). What was in the data directory is replaced when the copy is whole. Where the volume has no room for
// both, the data goes first: once the copy flows, not before it is needed, and only when mayDiscard has no objection;
// else the copy ends with ErrNoRoom. It is asked again when the copy is whole, before it takes the place of the data.
func (s *Server) Clone(
	ctx context.Context, source Upstream, mayDiscard func(whole bool) error, progress io.Writer,
) error {
	from := s.keys().copyingInfo(source, nameClone)
	args := []string{"--pgdata", s.Data.incoming(), "--dbname", from,
		"--checkpoint", "fast", "--wal-method", "stream", "--no-sync", "--verbose"}
	if source.Slot != "" {
		args = append(args, "--slot", source.Slot)
	}
	args = append(args, s.Data.WALOptions()...)
	if err := s.clearFormer(); err != nil {
		return err
	}
	list := func() []string { return s.spacesOf(ctx, from, progress) }
	spaces := &spaces{data: s.Data, list: list, progress: progress}
	defer spaces.sweep()
	return s.Data.grow(ctx, func() error {
		c := &copying{programs: s.Programs, data: s.Data, spaces: spaces, mayDiscard: mayDiscard}
		mapping, err := spaces.place()
		if err == nil {
			err = c.run(ctx, slices.Concat(args, mapping), progress)
		}
		if err != nil && c.slotLost.yes() {
			err = c.withNewSlot(ctx, from, source.Slot, args, progress)
		}
		if err == nil {
			err = mayDiscard(true)
		}
		if err != nil {
			return errors.Join(err, RemoveData(s.Data.incoming())) // what there is of it would fill the volume
		}
		return nil
	})
}

// copying is a copy that grows beside the data.
type copying struct {
	programs   Programs
	data       DataDirectory
	spaces     *spaces
	cmd        *exec.Cmd
	begun      *heard // that the source has begun to send
	slotLost   *heard // that the source has removed WAL which the slot kept
	mayDiscard func(whole bool) error
	asked      time.Time
	objection  error
}

// run lets pg_basebackup copy, and sees to it meanwhile that the volume does not become full.
func (c *copying) run(ctx context.Context, args []string, progress io.Writer) error {
	ctx, end := context.WithCancel(ctx)
	defer end()
	c.cmd = c.programs.command(ctx, "pg_basebackup", args...)
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // it has a child, which receives the WAL
	c.cmd.Cancel = func() error { return c.signal(syscall.SIGKILL) }
	c.begun, c.slotLost = newHeard(wordsBegun), newHeard(wordsSlotLost)
	copied := make(chan error, 1)
	go func() { copied <- run(c.cmd, io.MultiWriter(progress, c.begun, c.slotLost)) }()
	ticker := time.NewTicker(roomInterval)
	defer ticker.Stop()
	for begun := c.begun.said; ; {
		select {
		case err := <-copied:
			return err
		case <-begun:
			begun = nil
		case <-ticker.C:
		}
		if err := c.seeToRoom(); err != nil {
			end()
			<-copied //nolint:errcheck // it was ended: why is the error that counts
			return err
		}
	}
}

// withNewSlot copies once more, with another slot in the place of one that is lost. PostgreSQL 18 and later send no WAL
// by such a slot, and each copy begins with a checkpoint of the source, and with a segment of its own. So nothing is
// won by trying until the source has made the slot anew: that checkpoint may cost it again, and slots of others too.
// This one is made after the checkpoint.
func (c *copying) withNewSlot(ctx context.Context, from, slot string, args []string, progress io.Writer) error {
	drop := c.programs.command(ctx, "pg_receivewal", "--drop-slot", "--slot", slot, "--dbname", from)
	if err := run(drop, progress); err != nil {
		return fmt.Errorf("drop the replication slot %s, which is lost: %w", slot, err)
	}
	if err := RemoveData(c.data.incoming()); err != nil { // the folders of its tablespaces are empty no more
		return err
	}
	mapping, err := c.spaces.place()
	if err != nil {
		return err
	}
	return c.run(ctx, slices.Concat(args, mapping, []string{"--create-slot"}), progress)
}

func (c *copying) signal(s syscall.Signal) error { return syscall.Kill(-c.cmd.Process.Pid, s) }

// seeToRoom removes the data that is being replaced when the copy needs its room and may have it. It fails when it may
// not, and nothing is left.
func (c *copying) seeToRoom() error {
	if there, err := exists(c.data.Path()); err != nil || !there {
		return err
	}
	short, none, err := c.data.shortOfRoom()
	if err != nil || !short {
		return err
	}
	if !none {
		flows, err := c.data.flows()
		if err != nil || !flows {
			return err
		}
		return c.ask()
	}
	if !c.begun.yes() {
		return nil
	}
	// There is no room for what comes next, so nothing may come meanwhile.
	if err := c.signal(syscall.SIGSTOP); err != nil {
		return nil //nolint:nilerr // it has ended
	}
	defer c.signal(syscall.SIGCONT) //nolint:errcheck // it may have ended
	if err := c.ask(); err != nil {
		return err
	}
	if c.objection != nil {
		return fmt.Errorf("%w: %w", ErrNoRoom, c.objection)
	}
	return nil
}

// ask removes the data if nobody has an objection.
func (c *copying) ask() error {
	if time.Since(c.asked) < discardInterval {
		return nil
	}
	c.objection = c.mayDiscard(false)
	if c.asked = time.Now(); c.objection != nil {
		return nil
	}
	return c.data.discard()
}

// What pg_basebackup says when the source has begun to send (pg_basebackup.c, the same in PostgreSQL 15 to 19), and
// what a source says of a slot that is lost (ReplicationSlotAcquire in slot.c, from PostgreSQL 18 on).
const (
	wordsBegun    = "write-ahead log start point"
	wordsSlotLost = "can no longer access replication slot"
)

// heard notices words in the messages of a program.
type heard struct {
	words string
	said  chan struct{}
	mutex sync.Mutex
	text  []byte
}

func newHeard(words string) *heard { return &heard{words: words, said: make(chan struct{})} }

func (h *heard) Write(p []byte) (int, error) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if !h.yes() {
		if h.text = append(h.text, p...); bytes.Contains(h.text, []byte(h.words)) {
			close(h.said)
		}
	}
	return len(p), nil
}

func (h *heard) yes() bool {
	select {
	case <-h.said:
		return true
	default:
		return false
	}
}

var walFile = regexp.MustCompile(`^[0-9A-F]{24}$`)

// flows says whether the source sends its data, by the connection that all of it is to come by, and its WAL by the
// other one: the first file of a base backup has come (basebackup.c), and some WAL.
func (d DataDirectory) flows() (bool, error) {
	label, err := os.Stat(filepath.Join(d.incoming(), "backup_label"))
	if errors.Is(err, os.ErrNotExist) || err == nil && label.Size() == 0 {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look whether the copy has begun: %w", err)
	}
	entries, err := os.ReadDir(filepath.Join(d.incoming(), walFolder))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return false, fmt.Errorf("look whether the copy has begun: %w", err)
	}
	for _, entry := range entries {
		if walFile.MatchString(entry.Name()) {
			return true, nil
		}
	}
	return false, nil
}

// discard removes the data, first by one step, and one that a full volume allows: no half of it is ever taken for data.
func (d DataDirectory) discard() error {
	if err := os.Rename(d.Path(), d.outgoing()); err != nil {
		return fmt.Errorf("make room for a copy: %w", err)
	}
	if err := syncFolder(d.Volume); err != nil {
		return fmt.Errorf("make room for a copy: %w", err)
	}
	if err := RemoveData(d.outgoing()); err != nil {
		return fmt.Errorf("make room for a copy: %w", err)
	}
	return nil
}
