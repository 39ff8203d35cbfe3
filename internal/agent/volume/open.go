package volume

import (
	"context"
	"fmt"
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

// Open locks the volume of an instance, takes over the data of a restore in place or of an upgrade where that is due,
// and reads the hard state. Where it has to wait it calls waits, with the words for whom. Until it has
// the lock it touches nothing on the volume. A lock that it has got is returned with an error too: it is to be held
// until the process ends.
func Open(
	ctx context.Context, volume, instance string, due []Due, waits func(whom string),
) (*Lock, *StateStore, error) {
	lock, err := Own(ctx, volume, waits)
	if err != nil {
		return nil, nil, err
	}
	if err := os.MkdirAll(StateFolder(volume), 0o700); err != nil {
		return lock, nil, fmt.Errorf("make the agent's folder on the volume: %w", err)
	}
	for _, d := range due {
		if err := takeOverOnce(ctx, volume, instance, d, waits); err != nil {
			return lock, nil, err
		}
	}
	memory, err := Read(volume, instance)
	return lock, memory, err
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
	return OpenStateStore(instance, StateFolder(volume), (&postgres.Server{Volume: volume}).Data())
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
