package volume

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"toban.dev/internal/ha"
	"toban.dev/internal/postgres"
	"toban.dev/internal/protocol"
)

// folderState is where an agent keeps what outlives its data, in the volume.
const folderState = "toban"

// Prepared is what a restore notes on a volume when its data, in RestoreFolder, is whole.
type Prepared struct {
	// InPlace is the id of a restore in place, "" for the first data of a new SampleDB.
	InPlace string `json:"inPlace,omitempty"`
	// TermHistory are the terms whose WAL it goes on with in the same archive; none where it has an archive of its own.
	// Begins is where its own WAL begins; its term is a later one than Newest.
	TermHistory []ha.TermStart         `json:"lineage,omitempty"`
	Begins      ha.TermStart           `json:"begins"`
	Newest      uint64                 `json:"newest,omitempty"`
	Result      protocol.RestoreResult `json:"result"`
	// Upgrade is set where the data is that of another major version: what the upgrade has left.
	Upgrade *protocol.UpgradeResult `json:"upgrade,omitempty"`
}

// RestoreFolder is where a restore makes the data on a volume.
func RestoreFolder(volume string) string { return filepath.Join(volume, "restore") }

// restoredData is the data directory in it.
func restoredData(volume string) string {
	return postgres.DataDirectory{Volume: RestoreFolder(volume)}.Path()
}

func preparedFile(volume string) string { return filepath.Join(volume, "restored.json") }

// ReadPrepared reads the note, nil where there is none.
func ReadPrepared(volume string) (*Prepared, error) {
	text, err := os.ReadFile(preparedFile(volume))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil //nolint:nilnil // nothing has been restored yet
	}
	p := &Prepared{}
	if err == nil {
		err = json.Unmarshal(text, p)
	}
	if err != nil {
		return nil, fmt.Errorf("see what has been restored: %w", err)
	}
	return p, nil
}

// Write notes it on the volume.
func (p Prepared) Write(volume string) error {
	text, err := json.Marshal(p)
	if err != nil {
		return fmt.Errorf("encode what has been restored: %w", err)
	}
	return postgres.WriteFile(preparedFile(volume), text, 0o600)
}

// RemovePrepared removes the note that a restore's data is whole.
func RemovePrepared(volume string) error {
	if err := os.RemoveAll(preparedFile(volume)); err != nil {
		return fmt.Errorf("remove the note of what has been restored: %w", err)
	}
	return nil
}

// RemoveRestore removes what a restore has left on a volume: the note first, which must not promise data that is gone.
func RemoveRestore(volume string) error {
	err := RemovePrepared(volume)
	if err == nil {
		err = postgres.RemoveData(restoredData(volume))
	}
	if err == nil {
		err = os.RemoveAll(RestoreFolder(volume))
	}
	if err != nil {
		return fmt.Errorf("remove what a restore has left: %w", err)
	}
	return nil
}

// Adopt puts restored data in the place of an instance's, which has none, and makes the instance the leader of
// a new term, in which it is the only voter. It may be interrupted anywhere and be called again. Neither a
// server nor an agent may run.
func Adopt(volume, instance string, p Prepared) error {
	data := postgres.DataDirectory{Volume: volume}
	if err := os.MkdirAll(filepath.Join(volume, folderState), 0o700); err != nil {
		return fmt.Errorf("make a place for the instance's hard state: %w", err)
	}
	m, err := OpenStateStore(instance, filepath.Join(volume, folderState), data.Path())
	if err != nil {
		return err
	}
	p.Begins.Term = max(m.current.Ballot.Term, p.Newest) + 1
	if err := moveIn(data, restoredData(volume), append(p.TermHistory, p.Begins)); err != nil {
		return fmt.Errorf("adopt the restored data: %w", err)
	}
	if err := m.ReloadTermHistory(); err != nil {
		return err
	}
	history := m.current.TermHistory
	if len(history) == 0 {
		return errors.New("adopt the restored data: nobody knows whose WAL it has")
	}
	_, err = m.Change(func(m *ha.HardState) bool {
		*m = ha.LeadAlone(*m, history[len(history)-1].Term)
		return true
	})
	return err
}

// moveIn notes the term history with the data and gives that its place. Where it has it already, nothing is left to do.
func moveIn(data postgres.DataDirectory, restored string, history []ha.TermStart) error {
	if _, err := os.Stat(restored); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	text, err := json.Marshal(history)
	if err != nil {
		return err
	}
	if err := postgres.WriteFile(filepath.Join(restored, lineageFile), text, 0o600); err != nil {
		return err
	}
	return data.MoveIn(restored)
}
