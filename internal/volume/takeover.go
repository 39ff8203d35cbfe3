package volume

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"toban.dev/internal/ha"
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
)

// takeOverDue says that an instance has not taken a restore in place over yet.
func takeOverDue(volume, id string) (bool, error) {
	if id == "" {
		return false, nil
	}
	done, err := readTakenOver(takenOverFile(volume))
	return err == nil && !slices.Contains(done.IDs, id), err
}

// HasTakenOver says whether an instance has begun to take a restore in place over.
func HasTakenOver(volume, id string) (bool, error) {
	for _, folder := range []string{beforePrefix + id, beforePrefix + id + unfinished} {
		if _, err := os.Stat(filepath.Join(volume, folder)); err == nil {
			return true, nil
		} else if !errors.Is(err, fs.ErrNotExist) {
			return false, fmt.Errorf("see whether the data has been taken over: %w", err)
		}
	}
	due, err := takeOverDue(volume, id)
	return !due && id != "", err
}

func takenOverFile(volume string) string { return filepath.Join(volume, folderState, "restores.json") }

// takeOver has an instance begin with a restore in place, once, before its agent does anything (docs/restore.md, "In
// place"). The one whose volume has the restored data puts that in the place of its own, which it keeps, and leads; the
// survivor has its own, and elects itself. The others forget what they have promised: they have no vote, and follow. It
// may be interrupted anywhere.
func takeOver(volume, instance string, d Due) error {
	id, file := d.ID, takenOverFile(volume)
	done, err := readTakenOver(file)
	if err != nil || id == "" || slices.Contains(done.IDs, id) {
		return err
	}
	prepared, err := ReadPrepared(volume)
	if err != nil {
		return err
	}
	switch {
	case prepared != nil && prepared.InPlace == id:
		err = replace(volume, instance, *prepared)
	case d.Survivor:
		err = survive(volume, instance, id)
	default:
		err = forget(volume, id)
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

// replace sets the data and the hard state of an instance aside, and adopts the restored data.
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

// setAside moves the data and the hard state into a folder, which has its name when both are in it. That the new term
// is a later one than any that the hard state knows of is noted first.
func setAside(volume, instance, before string, p *Prepared) error {
	data := postgres.DataDirectory{Volume: volume}
	state := filepath.Join(volume, folderState)
	if err := os.MkdirAll(before+unfinished, 0o700); err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(state, memoryFile)); err == nil {
		m, err := OpenStateStore(instance, state, data.Path())
		if err != nil {
			return err
		}
		p.Newest = max(p.Newest, m.current.Ballot.Term+ha.RestoreTerms)
		if err := p.Write(volume); err != nil {
			return err
		}
	}
	for from, to := range map[string]string{data.Path(): "data", filepath.Join(state, memoryFile): memoryFile} {
		if err := move(from, filepath.Join(before+unfinished, to)); err != nil {
			return err
		}
	}
	return move(before+unfinished, before)
}

// forget sets the hard state of an instance aside: it is another voter from now on, and no quorum knows that one.
func forget(volume, id string) error {
	memory := filepath.Join(volume, folderState, memoryFile)
	return move(memory, memory+"."+beforePrefix+id)
}

// survive makes the instance the only voter of a new quorum, as another voter than it was. It elects itself when it has
// replayed all its WAL, in a term that no election of the former quorum may have used. A volume without a hard state is
// a new one of that instance, which has survived nothing.
func survive(volume, instance, id string) error {
	state := filepath.Join(volume, folderState)
	aside := filepath.Join(state, memoryFile+"."+beforePrefix+id)
	if _, err := os.Stat(aside); errors.Is(err, fs.ErrNotExist) {
		if err := forget(volume, id); err != nil {
			return err
		}
	}
	text, err := os.ReadFile(aside)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the former hard state: %w", err)
	}
	former, err := DecodeHardState(text)
	if err != nil {
		return err
	}
	m, err := OpenStateStore(instance, state, postgres.DataDirectory{Volume: volume}.Path())
	if err != nil {
		return err
	}
	_, err = m.Change(func(m *ha.HardState) bool {
		*m = ha.OnlyVoter(*m, former.Ballot.Term+ha.RestoreTerms)
		return true
	})
	return err
}

// move renames what is there.
func move(from, to string) error {
	if err := os.Rename(from, to); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
