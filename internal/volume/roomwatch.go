package volume

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"toban.dev/internal/change/space"
	"toban.dev/internal/pause"
	"toban.dev/internal/postgres"
)

const (
	// roomInterval is how often it is looked how much is free, roomSoon how often where it is short, or nearly.
	roomInterval = time.Second
	roomSoon     = 100 * time.Millisecond
	// reservePause is how long after an attempt to keep the reserve the next one is.
	reservePause = 10 * time.Second
	// reserveFile is where that is, in the state folder. It is no part of what the agent has promised.
	reserveFile = "reserve"
)

// RoomWatch sees to it that a volume never gets so full that its server can't go on. It says when a primary is to take
// no writes any more, and it keeps a file of which the room is given back when that was not enough: the server had no
// time to stop, or somebody else has filled the volume.
type RoomWatch struct {
	reserve  string
	measure  func() (size, used int64, err error)
	wal      func() (bytes int64, err error)
	bounds   func(size int64) space.Bounds
	allocate func(path string, bytes int64) error
	tell     func(Shortage)
	log      *slog.Logger
	now      func() time.Time

	told   Shortage
	free   int64     // at the last look, with what the WAL had
	looked time.Time // when that was
	// reserved is when it was last tried to keep the reserve, or given back.
	reserved time.Time
	failed   string
}

// Shortage is what is to be done about a volume that gets full.
type Shortage struct {
	// Short says that less is free than is to be: where volumes may grow, it is time.
	Short bool
	// Spare says that a server is to go on with little room, which for a primary is to take no writes, EndReads that it
	// is to end those who read as well.
	Spare, EndReads bool
	// Bounds are those of the volume.
	Bounds space.Bounds
}

// NewRoomWatch is that of a volume. allocate makes a file with that many bytes on disk, nil for Allocate.
func NewRoomWatch(
	volume string, allocate func(string, int64) error, tell func(Shortage), log *slog.Logger,
) *RoomWatch {
	if allocate == nil {
		allocate = Allocate
	}
	return &RoomWatch{
		reserve: filepath.Join(StateFolder(volume), reserveFile), allocate: allocate, tell: tell, log: log,
		measure: newMeter(volume).used, now: time.Now, bounds: space.BoundsOf,
		wal: func() (int64, error) { return postgres.WALSize(volume) },
	}
}

// OfWAL has it watch a WAL volume, on which the WAL is of the data on the other one.
func (w *RoomWatch) OfWAL(data string) *RoomWatch {
	w.bounds = space.BoundsOfWAL
	w.wal = func() (int64, error) { return postgres.LinkedWALSize(data) }
	return w
}

// Run looks again and again, until ctx ends.
func (w *RoomWatch) Run(ctx context.Context) error { return LookEvery(ctx, w.look, nil) }

// look looks once, and says when it is to be looked again.
func (w *RoomWatch) look() time.Duration {
	size, used, err := w.measure()
	if err != nil {
		w.complain(err)
		return roomInterval
	}
	free, bounds := size-used, w.bounds(size)
	wal, err := w.wal()
	if err != nil {
		w.complain(err) // none of it counts as free then
	}
	w.decide(free, wal, bounds)
	w.keep(free, wal, bounds)
	if free < bounds.Short/4*5 {
		return roomSoon
	}
	return roomInterval
}

// decide tells what is to be done, where that has changed.
func (w *RoomWatch) decide(free, wal int64, bounds space.Bounds) {
	now := Shortage{Spare: !bounds.TakeWrites(free, wal, w.perSecond(free+wal), !w.told.Spare), Bounds: bounds}
	now.EndReads, now.Short = now.Spare && bounds.EndReads(free), bounds.IsShort(free, w.told.Short)
	w.free, w.looked = free+wal, w.now()
	if now.Short == w.told.Short && now.Spare == w.told.Spare && now.EndReads == w.told.EndReads {
		return
	}
	w.told = now
	w.log.Warn("the room on the volume has changed", "short", now.Short, "takesWrites", !now.Spare, "endsReads",
		now.EndReads, "freeMiB", free>>20, "walMiB", wal>>20, "takesNoneBelowMiB", bounds.Closes>>20,
		"takesThemAgainFromMiB", bounds.Opens>>20)
	w.tell(now)
}

// perSecond is by how much the volume has filled since the last look, as if that had been a second ago. That WAL has
// more is no sign: it has files in advance.
func (w *RoomWatch) perSecond(free int64) int64 {
	if past := w.now().Sub(w.looked); !w.looked.IsZero() && past > 0 {
		return int64(float64(w.free-free) / past.Seconds())
	}
	return 0
}

// keep keeps the reserve, or gives it back.
func (w *RoomWatch) keep(free, wal int64, bounds space.Bounds) {
	switch {
	case bounds.GiveReserve(free):
		w.giveReserve()
	case w.now().Sub(w.reserved) > reservePause && bounds.TakeReserve(free, wal):
		w.reserved = w.now()
		if _, err := os.Stat(w.reserve); err == nil {
			return
		}
		if err := w.allocate(w.reserve, bounds.Reserve); err != nil {
			w.complain(fmt.Errorf("keep %d MiB in reserve: %w", bounds.Reserve>>20, err))
		}
	}
}

// giveReserve gives the room of the reserve back.
func (w *RoomWatch) giveReserve() {
	err := os.Remove(w.reserve)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if w.reserved = w.now(); err != nil {
		w.complain(fmt.Errorf("give the reserve back: %w", err))
		return
	}
	w.log.Warn("the volume is full: the reserve was given back")
}

// complain logs an error, once for as long as it stays the same.
func (w *RoomWatch) complain(err error) {
	if w.failed != err.Error() {
		w.failed = err.Error()
		w.log.Warn("the room on the volume is not watched as it should be", "error", err.Error())
	}
}

// Allocate makes a file with that many bytes on disk (fallocate(2)), or none. A file system that can't do that is no
// error: there is no reserve then.
func Allocate(path string, bytes int64) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("make %s: %w", path, err)
	}
	defer file.Close()
	err = unix.Fallocate(int(file.Fd()), 0, 0, bytes)
	if err == nil {
		return nil
	}
	if removed := os.Remove(path); removed != nil || !errors.Is(err, unix.EOPNOTSUPP) {
		return fmt.Errorf("allocate %s: %w", path, errors.Join(err, removed))
	}
	return nil
}

// LookEvery looks, waits for as long as the look says or until it is poked, and looks again, until ctx ends. A look at
// a volume that hangs is not waited for then. Only one is under way at a time.
func LookEvery(ctx context.Context, look func() time.Duration, poke <-chan struct{}) error {
	for ctx.Err() == nil {
		looked := make(chan time.Duration, 1)
		go func() { looked <- look() }()
		select {
		case <-ctx.Done():
			return nil
		case next := <-looked:
			timer := time.NewTimer(pause.Until(next))
			select {
			case <-ctx.Done():
			case <-poke:
			case <-timer.C:
			}
			timer.Stop()
		}
	}
	return nil
}
