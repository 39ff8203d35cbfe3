package volume

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"toban.dev/internal/postgres"
)

// ErrNoSnapshot says that what ought to be the snapshot of an instance's volume has no data.
var ErrNoSnapshot = errors.New("the volume has no data directory: what it was made of is no snapshot of an " +
	"instance's volume, or its driver has made an empty volume")

// snapshotFile notes on a volume that was made of a snapshot which one that was, when nothing of its instance is there
// any more.
func snapshotFile(volume string) string { return filepath.Join(volume, "snapshot") }

// TakeUpSnapshot makes of a volume that was made of the snapshot of an id, and was not used since, one on which a
// restore has put the data into RestoreFolder: what else its instance had there is removed, such as its votes. It may
// be interrupted anywhere and be called again; once it is done it does nothing. Neither a server nor an agent may run.
func TakeUpSnapshot(volume, id string) error {
	text, err := os.ReadFile(snapshotFile(volume))
	if err == nil && strings.TrimSpace(string(text)) == id {
		return nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("see which snapshot the volume was made of: %w", err)
	}
	if err := takeUp(volume); err != nil {
		return fmt.Errorf("take up the snapshot %s: %w", id, err)
	}
	return postgres.WriteFile(snapshotFile(volume), []byte(id+"\n"), 0o600)
}

func takeUp(volume string) error {
	data := postgres.DataDirectory{Volume: volume}.Path()
	_, err := os.Lstat(filepath.Join(data, "PG_VERSION"))
	if errors.Is(err, fs.ErrNotExist) {
		// A process before this one may have moved it: then nothing else was left.
		if _, moved := os.Lstat(filepath.Join(restoredData(volume), "PG_VERSION")); moved == nil {
			return nil
		}
		return ErrNoSnapshot
	}
	if err != nil {
		return err
	}
	if err := removeBeside(volume, data); err != nil {
		return err
	}
	if err := os.Mkdir(RestoreFolder(volume), 0o700); err != nil {
		return err
	}
	if err := os.Rename(data, restoredData(volume)); err != nil {
		return err
	}
	return postgres.SyncFileSystem(volume)
}

// removeBeside removes from a volume all but the data directory, the locks, and the folders that tablespaces are in.
func removeBeside(volume, data string) error {
	keep := map[string]bool{filepath.Base(data): true, folderLocks: true, "lost+found": true}
	spaces, err := os.ReadDir(filepath.Join(data, "pg_tblspc"))
	if err != nil {
		return err
	}
	for _, space := range spaces {
		target, err := os.Readlink(filepath.Join(data, "pg_tblspc", space.Name()))
		if err != nil {
			return err
		}
		if inside, err := filepath.Rel(volume, target); err == nil {
			top, _, _ := strings.Cut(inside, string(filepath.Separator))
			keep[top] = true
		}
	}
	entries, err := os.ReadDir(volume)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if keep[entry.Name()] {
			continue
		}
		if err := os.RemoveAll(filepath.Join(volume, entry.Name())); err != nil {
			return err
		}
	}
	return nil
}
