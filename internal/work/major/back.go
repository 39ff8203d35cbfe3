package major

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"toban.dev/internal/postgres"
	"toban.dev/internal/protocol"
	"toban.dev/internal/volume"
)

// disabled is what pg_upgrade calls the control file of old data that shares its files with the new data, so that no
// server starts on it by mistake (pg_upgrade, disable_old_cluster).
func disabled(data string) string { return controlFile(data) + ".old" }

func controlFile(data string) string { return filepath.Join(data, "global", "pg_control") }

// Back gives the old data back as it was before an upgrade, whatever that has done. It may be called again. Once the
// new data has been taken over it refuses: the new server may have written to the files of the old data.
func Back(ctx context.Context, o Options) (protocol.UpgradeBack, error) {
	var result protocol.UpgradeBack
	u := newUpgrade(o)
	defer u.release()
	if err := u.lock(ctx); err != nil {
		return result, err
	}
	if err := u.undo(ctx); err != nil {
		return result, err
	}
	if err := os.RemoveAll(stateFile(u.Volume)); err != nil {
		return result, fmt.Errorf("remove the note of the upgrade: %w", err)
	}
	var err error
	if result.Forked, err = (postgres.DataDirectory{Volume: u.Volume}).Forked(); err != nil {
		return result, err
	}
	return result, postgres.SyncFileSystem(u.Volume)
}

// undo removes what was made for the new data, and gives the old data its control file back, last of all: without it no
// server starts there.
func (u *upgrade) undo(ctx context.Context) error {
	taken, err := volume.HasTakenOver(u.Volume, u.ID)
	if err != nil {
		return err
	}
	if taken {
		return fmt.Errorf("%w: there is no way back, the instance has taken the new data over, and its server may "+
			"have written to files of the old data. What was there before is in the backup that was taken before the "+
			"upgrade", ErrRefused)
	}
	s, err := readState(u.Volume)
	if err != nil {
		return err
	}
	gone, err := u.swapped(s)
	if err != nil {
		return err
	}
	if gone {
		return fmt.Errorf("%w: there is no way on or back, with the method %q the old data is gone when "+
			"pg_upgrade has begun. Restore the backup that was taken before the upgrade", ErrRefused,
			protocol.MethodSwap)
	}
	u.result.Recovered = s.Recovered && s.ID == u.ID
	if err := (postgres.DataDirectory{Volume: volume.RestoreFolder(u.Volume)}).EndOrphans(ctx); err != nil {
		return err
	}
	if err := volume.RemovePrepared(u.Volume); err != nil {
		return err
	}
	u.At("note removed")
	if err := u.removeTablespaces(); err != nil {
		return err
	}
	if err := volume.RemoveRestore(u.Volume); err != nil {
		return err
	}
	u.At("new data removed")
	return enable(u.old.data)
}

// enable gives old data its control file back.
func enable(data string) error {
	err := os.Rename(disabled(data), controlFile(data))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("give the old data its control file back: %w", err)
	}
	return nil
}

// removeTablespaces removes what the new server has in the tablespaces, which are folders of both: in each has either a
// folder of its own, by its version (PG_15_202209061).
func (u *upgrade) removeTablespaces() error {
	if err := u.matches(); err != nil {
		return err
	}
	folders, err := tablespaces(u.old.data)
	if err != nil {
		return err
	}
	for _, folder := range folders {
		made, err := filepath.Glob(filepath.Join(folder, fmt.Sprintf("PG_%d_*", u.New.Major)))
		if err != nil {
			return fmt.Errorf("look into a tablespace: %w", err)
		}
		for _, path := range made {
			if err := os.RemoveAll(path); err != nil {
				return fmt.Errorf("remove the new data of a tablespace: %w", err)
			}
		}
	}
	return nil
}

// tablespaces are the folders that a data directory has tablespaces in.
func tablespaces(data string) (folders []string, err error) {
	links, err := os.ReadDir(filepath.Join(data, "pg_tblspc"))
	if err != nil {
		return nil, fmt.Errorf("look for tablespaces: %w", err)
	}
	for _, link := range links {
		folder, err := filepath.EvalSymlinks(filepath.Join(data, "pg_tblspc", link.Name()))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("look for tablespaces: %w", err)
		}
		folders = append(folders, folder)
	}
	return folders, nil
}

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
