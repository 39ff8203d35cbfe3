package volume

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"toban.dev/internal/postgres"
)

// StateFolder is where an agent keeps what outlives its data, in the volume.
func StateFolder(volume string) string { return filepath.Join(volume, folderState) }

// Due is data that an instance is to have taken over: that of a restore in place or of an upgrade, by its id.
type Due struct {
	ID string
	// Survivor says that the instance goes on with the data that it has, and the others do with its.
	Survivor bool
}

// Opening says what is opened: the volume of an instance, with the one that its WAL is on, "" for the same.
type Opening struct {
	Volume, WALVolume, Instance string
	// Before is called with the lock, before anything is taken over; it may be nil. Due is the data that is to be.
	Before func() error
	Due    []Due
	// Waits is called with the words for whom it has to wait.
	Waits func(whom string)
	Log   *slog.Logger
}

// Open locks the volume of an instance, takes over the data of a restore in place or of an upgrade where that is due,
// sees to it that the WAL is where it belongs, and reads the hard state. Until it has the lock it touches nothing on
// the volume. A lock that it has got is returned with an error too: it is to be held until the process ends.
func Open(ctx context.Context, o Opening) (*Lock, *StateStore, error) {
	lock, err := Own(ctx, o.Volume, o.Waits)
	if err != nil {
		return nil, nil, err
	}
	for _, volume := range []string{o.Volume, o.WALVolume} {
		if volume == "" {
			continue
		}
		if err := os.MkdirAll(StateFolder(volume), 0o700); err != nil {
			return lock, nil, fmt.Errorf("make the agent's folder on the volume: %w", err)
		}
	}
	if o.Before != nil {
		if err := o.Before(); err != nil {
			return lock, nil, err
		}
	}
	for _, d := range o.Due {
		if err := takeOverOnce(ctx, o.Volume, o.Instance, d, o.Waits); err != nil {
			return lock, nil, err
		}
	}
	if err := o.settleWAL(); err != nil {
		return lock, nil, err
	}
	memory, err := Read(o.Volume, o.Instance)
	return lock, memory, err
}

// lostWAL ends the name of the hard state of who has lost its WAL.
const lostWAL = "lost-wal"

// settleWAL sees to it that the WAL is where it belongs. Who has lost it may have acknowledged commits that it does not
// have any more: it is another voter from now on.
func (o Opening) settleWAL() error {
	data := postgres.DataDirectory{Volume: o.Volume, WALVolume: o.WALVolume}
	lost, err := data.SettleWAL(func() error { return forget(o.Volume, lostWAL) })
	if lost && err == nil {
		o.Log.Warn("the WAL volume is not the one that the data had: the instance has no vote by what it was, and " +
			"copies all data anew")
	}
	return err
}

// takeOverOnce takes data over where that is due, when nobody works on it any more.
func takeOverOnce(ctx context.Context, volume, instance string, d Due, waits func(whom string)) error {
	due, err := takeOverDue(volume, d.ID)
	if err != nil || !due {
		return err
	}
	restore, err := awaitLock(ctx, volume, lockRestore, waits)
	if err != nil {
		return err
	}
	defer restore.Release()
	return takeOver(volume, instance, d)
}

// TakeOver is Open for who has the lock from the program before, by its descriptors. That one has taken over what there
// was to take over.
func TakeOver(volume, instance string, descriptors [2]int) (*Lock, *StateStore, error) {
	states, err := Read(volume, instance)
	return taken(descriptors), states, err
}

// Read reads the hard state of an instance. Who does not have the lock must not write it.
func Read(volume, instance string) (*StateStore, error) {
	return OpenStateStore(instance, StateFolder(volume), postgres.DataDirectory{Volume: volume}.Path())
}

// Check says why the hard state on a volume could not be read. Nothing is written.
func Check(volume string) error {
	text, err := os.ReadFile(filepath.Join(StateFolder(volume), memoryFile))
	if err == nil {
		_, err = DecodeHardState(text)
	}
	if err != nil {
		return fmt.Errorf("read the instance's hard state: %w", err)
	}
	return nil
}
