package fault

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"toban.dev/internal/change/space"
	"toban.dev/internal/postgres"
	"toban.dev/internal/volume"
)

const (
	// fillInterval is how often it is looked whether as much is free as is to be, fillUnit how far that may be from
	// it.
	fillInterval = 250 * time.Millisecond
	fillUnit     = 1 << 20
	// fillStep is how much is allocated at once: a signal has the kernel begin with that anew.
	fillStep = 64 << 20
	// ownPart is by what part a file system may be larger than its volume claims to be, and still be the volume's
	// own.
	ownPart = 10
)

// filler fills a volume for a FaultDrill, with one file, until a primary there takes no writes. As long as it does,
// it holds free what is left: what a server writes or removes makes neither more room nor less. So a server never
// ends for lack of it.
type filler struct {
	path    string
	measure func() (size, used int64, err error)
	wal     func() (bytes int64, err error)
	// resize has a file take so many bytes more on disk, or fewer, where that is negative.
	resize func(path string, more int64) error
	log    *slog.Logger

	mutex  sync.Mutex
	stop   context.CancelFunc // nil while it does not fill
	failed string
}

// newFiller is that of a volume.
func newFiller(folder string, log *slog.Logger) *filler {
	return &filler{
		path: volume.FillPath(folder), measure: volume.Used(folder), resize: resize, log: log,
		wal: func() (int64, error) { return postgres.WALSize(folder) },
	}
}

// Fill fills the volume, which is so large, until Empty.
func (f *filler) Fill(size int64) error {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if err := f.mayFill(size); err != nil {
		return err
	}
	if err := f.hold(); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	f.stop = stop
	go func() { _ = volume.LookEvery(ctx, f.look, nil) }()
	return nil
}

// mayFill says why the volume must not be filled, nil where it may.
func (f *filler) mayFill(volume int64) error {
	size, used, err := f.measure()
	if err != nil {
		return err
	}
	wal, err := f.wal()
	if err != nil {
		return err
	}
	switch {
	case size > volume+volume/ownPart:
		return fmt.Errorf("the file system of the volume has %d MiB, and the volume %d MiB: it is not the volume's "+
			"own, and others would have no room", size>>20, volume>>20)
	case !space.BoundsOf(size).DrillMayFill(size-used, wal):
		return fmt.Errorf("only %d MiB of the volume are free: a primary there might take no writes when the drill "+
			"is over. Enlarge the volume first (spec.storage.size)", (size-used)>>20)
	}
	return nil
}

// look looks once whether as much is free as is to be.
func (f *filler) look() time.Duration {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if f.stop == nil {
		return fillInterval
	}
	words := ""
	if err := f.hold(); err != nil {
		words = err.Error()
	}
	if words != "" && words != f.failed {
		f.log.Warn("the volume is not filled as a FaultDrill wants it", "error", words)
	}
	f.failed = words
	return fillInterval
}

// hold makes the file so large that as much is free as is to be.
func (f *filler) hold() error {
	size, used, err := f.measure()
	if err != nil {
		return err
	}
	more := size - used - space.BoundsOf(size).DrillLeaves()
	if more < fillUnit && more > -fillUnit {
		return nil
	}
	return f.resize(f.path, more)
}

// Empty ends that, and removes the file, also that of an agent before.
func (f *filler) Empty() error {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if f.stop != nil {
		f.stop()
		f.stop = nil
	}
	if err := os.Remove(f.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove what a FaultDrill has filled the volume with: %w", err)
	}
	return nil
}

func resize(path string, more int64) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("fill the volume: %w", err)
	}
	defer file.Close()
	has, err := file.Seek(0, io.SeekEnd)
	if err == nil && more < 0 {
		err = file.Truncate(max(has+more, 0))
	}
	for end := has + more; err == nil && has < end; has += fillStep {
		err = allocate(int(file.Fd()), has, min(fillStep, end-has))
	}
	if errors.Is(err, unix.EOPNOTSUPP) {
		err = errors.New("its file system can't allocate a file in advance (fallocate)")
	}
	if err != nil {
		return fmt.Errorf("fill the volume: %w", err)
	}
	return nil
}

func allocate(file int, from, bytes int64) error {
	for {
		if err := unix.Fallocate(file, 0, from, bytes); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
