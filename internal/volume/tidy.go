package volume

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"toban.dev/internal/pause"
	"toban.dev/internal/postgres"
	"toban.dev/internal/protocol"
)

// tidyInterval is how often it is looked whether something may be removed.
const tidyInterval = 10 * time.Second

// Tidier removes from the volume what a restore in place has left that is given up, and, when that is wanted, what was
// there before one.
type Tidier struct {
	Volume string
	Config func() protocol.Config
	Log    *slog.Logger
}

// Run tidies now and then, until ctx ends.
func (t *Tidier) Run(ctx context.Context) error {
	for pause.Every(ctx, tidyInterval) {
		if err := t.tidy(); err != nil {
			t.Log.Warn("the volume could not be tidied", "error", err.Error())
		}
	}
	return nil
}

func (t *Tidier) tidy() error {
	config := t.Config()
	if !config.Prepares {
		if err := removeGivenUp(t.Volume); err != nil {
			return err
		}
	}
	var removed []string
	var err error
	switch {
	case config.RemoveBefore:
		removed, err = removeBefore(t.Volume, "")
	case config.RemoveUpgraded != "":
		removed, err = removeBefore(t.Volume, config.RemoveUpgraded)
	}
	if len(removed) > 0 {
		t.Log.Info("removed the data that was there before", "folders", removed)
	}
	return err
}

// removeGivenUp removes what a restore has left, when none works on it any more.
func removeGivenUp(volume string) error {
	lock, err := tryLock(volume, lockRestore)
	if errors.Is(err, errInUse) {
		return nil // its Pod is about to end
	}
	if err != nil {
		return err
	}
	defer lock.Release()
	return RemoveRestore(volume)
}

// removeBefore removes the data that a restore in place or an upgrade has replaced, by its id, "" for all, and its
// tablespaces. Those go first: the data says where they are.
func removeBefore(volume, id string) (removed []string, err error) {
	entries, err := os.ReadDir(volume)
	if err != nil {
		return nil, fmt.Errorf("look for what was there before a restore: %w", err)
	}
	for _, entry := range entries {
		if id != "" && entry.Name() != beforePrefix+id || !strings.HasPrefix(entry.Name(), beforePrefix) {
			continue
		}
		before := filepath.Join(volume, entry.Name())
		err := removeTablespaces(volume, filepath.Join(before, "data"))
		if err == nil {
			err = postgres.RemoveData(filepath.Join(before, "data"))
		}
		if err == nil {
			err = os.RemoveAll(before)
		}
		if err != nil {
			return removed, fmt.Errorf("remove what was there before a restore: %w", err)
		}
		removed = append(removed, entry.Name())
	}
	return removed, nil
}

// removeTablespaces removes those of a data directory that goes, as far as they are on the volume, and the data of now
// has others. Of a folder only what PostgreSQL has made in it goes (PG_17_…, PostgreSQL 17 documentation, 65.1), and it
// itself when nothing else is in it. Data of two major versions may have the same folders, and in each a folder of its
// own: then that of the data goes.
func removeTablespaces(volume, data string) error {
	volume, err := filepath.EvalSymlinks(volume)
	if err != nil {
		return err
	}
	now, err := tablespaces(postgres.DataDirectory{Volume: volume}.Path())
	if err != nil {
		return err
	}
	old, err := tablespaces(data)
	if err != nil {
		return err
	}
	own, err := ownTablespaces(volume, data)
	if err != nil {
		return err
	}
	for _, folder := range old {
		pattern := "PG_*"
		if slices.Contains(now, folder) {
			pattern = own
		}
		if !strings.HasPrefix(folder, volume+"/") || pattern == "" {
			continue
		}
		made, err := filepath.Glob(filepath.Join(folder, pattern))
		if err != nil {
			return err
		}
		for _, path := range made {
			if err := os.RemoveAll(path); err != nil {
				return err
			}
		}
		_ = os.Remove(folder) // somebody else's things may be in it
	}
	return nil
}

// ownTablespaces is what the folders are called that data of another major version than that of now has in tablespaces
// of both, "" where it is of the same one.
func ownTablespaces(volume, data string) (string, error) {
	var versions []string
	for _, folder := range []string{data, postgres.DataDirectory{Volume: volume}.Path()} {
		text, err := os.ReadFile(filepath.Join(folder, "PG_VERSION"))
		if errors.Is(err, fs.ErrNotExist) {
			return "", nil
		}
		if err != nil {
			return "", err
		}
		versions = append(versions, strings.TrimSpace(string(text)))
	}
	if versions[0] == versions[1] || versions[0] == "" {
		return "", nil
	}
	return "PG_" + versions[0] + "_*", nil
}

// tablespaces are the folders that a data directory has tablespaces in, without links in their paths; one that is not
// there is none.
func tablespaces(data string) (folders []string, err error) {
	links, err := postgres.TablespaceLinks(data)
	if err != nil {
		return nil, err
	}
	for _, link := range links {
		folder, err := filepath.EvalSymlinks(link)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		folders = append(folders, folder)
	}
	return folders, nil
}
