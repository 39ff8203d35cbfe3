package major

import (
	"context"
	"errors"
	"fmt"
	"os"

	"toban.dev/internal/postgres"
	"toban.dev/internal/volume"
)

// GiveUp gives the old data back where an upgrade has left something on a volume that its instance has not taken over,
// and does nothing where none has. The instance's agent calls it, which holds the volume, after it has taken over what
// it is told to and before it does anything else: an agent that starts without the new data goes on with the old.
func GiveUp(ctx context.Context, path string, waits func(whom string)) error {
	s, err := readState(path)
	if err != nil || s.ID == "" {
		return err
	}
	taken, err := volume.HasTakenOver(path, s.ID)
	if err != nil {
		return err
	}
	if !taken {
		if err := giveUp(ctx, path, s, waits); err != nil {
			return fmt.Errorf("give up the upgrade %s: %w", s.ID, err)
		}
	}
	if err := os.Remove(stateFile(path)); err != nil {
		return fmt.Errorf("remove the note of the upgrade: %w", err)
	}
	return nil
}

// GiveUpOthers gives the old data back where an upgrade of some id, to which an instance belongs, was done on another
// volume, and a try before that one has left something on this one: it was given up while the instance was away. system
// is the system identifier of the data that counts, "" where that is not known. The instance's agent calls it, which
// holds the volume, before it takes anything over: each try makes another database system, under the same id.
func GiveUpOthers(ctx context.Context, path, id, system string, waits func(whom string)) error {
	s, err := readState(path)
	if err != nil || id == "" || s.ID != id {
		return err
	}
	taken, err := volume.HasTakenOver(path, id)
	if err != nil || taken {
		return err
	}
	p, err := volume.ReadPrepared(path)
	switch {
	case err != nil:
		return err
	case p != nil && p.InPlace != id:
		return nil // a restore has made it
	case p != nil && p.Upgrade != nil && (system == "" || p.Upgrade.SystemIdentifier == system):
		return nil // it is to be taken over
	}
	return GiveUp(ctx, path, waits)
}

func giveUp(ctx context.Context, path string, s state, waits func(whom string)) error {
	lock, err := volume.AwaitRestore(ctx, path, waits)
	if err != nil {
		return err
	}
	defer lock.Release()
	old, err := majorOf(postgres.DataDirectory{Volume: path}.Path())
	if errors.Is(err, os.ErrNotExist) {
		return volume.RemoveRestore(path) // there is no old data to give back
	}
	if err != nil {
		return err
	}
	u := newUpgrade(Options{
		ID: s.ID, Volume: path, Former: postgres.Programs{Major: old}, New: postgres.Programs{Major: s.To},
		Waits: waits,
	})
	if err := u.undo(ctx); err != nil {
		return err
	}
	return postgres.SyncFileSystem(path)
}
