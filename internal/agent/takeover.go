package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"toban.dev/internal/postgres"
)

// takenOver are the restores in place that an instance has taken over, by id.
type takenOver struct {
	IDs []string `json:"ids"`
}

const (
	// beforePrefix begins the name of the folder with the data that a restore in place has replaced.
	beforePrefix = "before-"
	// unfinished ends it until all is in it.
	unfinished = ".unfinished"
	// laterTerms is by how many terms a restore in place goes ahead of the latest that its instance and the archive know
	// of: no election since may have used them.
	laterTerms = 1000
)

// takeOverDue says that an instance has not taken a restore in place over yet.
func takeOverDue(volume, id string) (bool, error) {
	if id == "" {
		return false, nil
	}
	done, err := readTakenOver(takenOverFile(volume))
	return err == nil && !slices.Contains(done.IDs, id), err
}

func takenOverFile(volume string) string { return filepath.Join(volume, folderState, "restores.json") }

// takeOver has an instance begin with a restore in place, once, before its agent does anything (docs/backup.md, "In place").
// The one whose volume has the restored data puts that in the place of its own, which it keeps, and leads.
// The others forget what they have promised: they have no vote, and follow. It may be interrupted anywhere.
func takeOver(volume, instance, id string) error {
	file := takenOverFile(volume)
	done, err := readTakenOver(file)
	if err != nil || id == "" || slices.Contains(done.IDs, id) {
		return err
	}
	prepared, err := ReadPrepared(volume)
	if err != nil {
		return err
	}
	memory := filepath.Join(volume, folderState, memoryFile)
	if prepared != nil && prepared.InPlace == id {
		err = replace(volume, instance, *prepared)
	} else {
		err = move(memory, memory+"."+beforePrefix+id)
	}
	if err != nil {
		return fmt.Errorf("take over the restore %s: %w", id, err)
	}
	done.IDs = append(done.IDs, id)
	text, err := json.Marshal(done)
	if err != nil {
		return err
	}
	return postgres.WriteFile(file, text, 0o600)
}

func readTakenOver(file string) (takenOver, error) {
	var done takenOver
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return done, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &done)
	}
	if err != nil {
		return done, fmt.Errorf("see which restores have been taken over: %w", err)
	}
	return done, nil
}

// replace sets the data and the memory of an instance aside, and adopts the restored data.
func replace(volume, instance string, p Prepared) error {
	before := filepath.Join(volume, beforePrefix+p.InPlace)
	if _, err := os.Stat(before); errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Stat(restoredData(volume)); err != nil {
			return fmt.Errorf("the restored data can't be seen, so the data stays where it is: %w", err)
		}
		if err := setAside(volume, instance, before, &p); err != nil {
			return err
		}
	}
	return Adopt(volume, instance, p)
}

// setAside moves the data and the memory into a folder, which has its name when both are in it. That the new term is a later one
// than any that the memory knows of is noted first.
func setAside(volume, instance, before string, p *Prepared) error {
	server := &postgres.Server{Volume: volume}
	state := filepath.Join(volume, folderState)
	if err := os.MkdirAll(before+unfinished, 0o700); err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(state, memoryFile)); err == nil {
		m, err := openMemory(instance, state, server.Data())
		if err != nil {
			return err
		}
		p.Newest = max(p.Newest, m.current.Ballot.Term+laterTerms)
		if err := p.Write(volume); err != nil {
			return err
		}
	}
	for from, to := range map[string]string{server.Data(): "data", filepath.Join(state, memoryFile): memoryFile} {
		if err := move(from, filepath.Join(before+unfinished, to)); err != nil {
			return err
		}
	}
	return move(before+unfinished, before)
}

// move renames what is there.
func move(from, to string) error {
	if err := os.Rename(from, to); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// tidyInterval is how often it is looked whether something may be removed.
const tidyInterval = 10 * time.Second

// tidyLoop removes from the volume what a restore in place has left that is given up, and, when that is wanted, what was
// there before one.
func (a *Agent) tidyLoop(ctx context.Context) error {
	for sleep(ctx, tidyInterval) {
		if err := a.tidy(); err != nil {
			a.Log.Warn("the volume could not be tidied", "error", err.Error())
		}
	}
	return nil
}

func (a *Agent) tidy() error {
	config := a.currentConfig()
	if !config.Prepares {
		if err := a.removeGivenUp(); err != nil {
			return err
		}
	}
	if !config.RemoveBefore {
		return nil
	}
	removed, err := removeBefore(a.Volume)
	if len(removed) > 0 {
		a.Log.Info("removed what was there before a restore", "folders", removed)
	}
	return err
}

// removeGivenUp removes what a restore has left, when none works on it any more.
func (a *Agent) removeGivenUp() error {
	lock, err := tryLock(a.Volume, lockRestore)
	if errors.Is(err, errInUse) {
		return nil // its Pod is about to end
	}
	if err != nil {
		return err
	}
	defer lock.release()
	return RemoveRestore(a.Volume)
}

// removeBefore removes the data that restores in place have replaced, and its tablespaces. Those go first: the data says where they are.
func removeBefore(volume string) (removed []string, err error) {
	entries, err := os.ReadDir(volume)
	if err != nil {
		return nil, fmt.Errorf("look for what was there before a restore: %w", err)
	}
	for _, entry := range entries {
		if !strings.HasPrefix(entry.Name(), beforePrefix) {
			continue
		}
		before := filepath.Join(volume, entry.Name())
		err := removeTablespaces(volume, filepath.Join(before, "data"))
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

// removeTablespaces removes those of a data directory that goes, as far as they are on the volume, and the data of now has others. Of a
// folder only what PostgreSQL has made in it goes (PG_17_…, PostgreSQL 17 documentation, 65.1), and it itself when nothing else is in it.
func removeTablespaces(volume, data string) error {
	volume, err := filepath.EvalSymlinks(volume)
	if err != nil {
		return err
	}
	now, err := tablespaces((&postgres.Server{Volume: volume}).Data())
	if err != nil {
		return err
	}
	old, err := tablespaces(data)
	if err != nil {
		return err
	}
	for _, folder := range old {
		if !strings.HasPrefix(folder, volume+"/") || slices.Contains(now, folder) {
			continue
		}
		made, err := filepath.Glob(filepath.Join(folder, "PG_*"))
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

// tablespaces are the folders that a data directory has tablespaces in; one that is not there is none.
func tablespaces(data string) (folders []string, err error) {
	links, err := os.ReadDir(filepath.Join(data, "pg_tblspc"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for _, link := range links {
		folder, err := filepath.EvalSymlinks(filepath.Join(data, "pg_tblspc", link.Name()))
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
