package volume

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"toban.dev/internal/ha"
	"toban.dev/internal/postgres"
)

// memoryFile lies in the folder of the agent's state.
const memoryFile = "memory.json"

// lineageFile lies in the data directory, because it is about the WAL there: a
// copy of the data brings the term history of where it was copied from.
const lineageFile = "toban_lineage.json"

// StateStore keeps an instance's promises. They outlive the data directory, since a
// term must never be forgotten; only the term history lies with the data.
type StateStore struct {
	file, data string
	// write replaces a file.
	write func(path string, content []byte, mode os.FileMode) error

	mutex   sync.Mutex
	current ha.HardState
	// torn says that a term history is on disk, and the rest that it belongs to is not.
	torn bool
	// text is what the file has, unless unsure: a write of it has failed, and nobody knows how far that came.
	text   []byte
	unsure bool
}

// OpenStateStore reads the hard state, or begins a new one: that of a new voter.
func OpenStateStore(instance, folder, data string) (*StateStore, error) {
	m := &StateStore{file: filepath.Join(folder, memoryFile), data: data, write: postgres.WriteFile}
	text, err := os.ReadFile(m.file)
	switch {
	case errors.Is(err, os.ErrNotExist):
		identity := make([]byte, 4)
		_, _ = rand.Read(identity) // it never fails (package crypto/rand)
		m.current.Voter = ha.NewVoter(instance, hex.EncodeToString(identity))
		if err := m.store(m.current); err != nil {
			return nil, err
		}
	case err != nil:
		return nil, fmt.Errorf("read the instance's hard state: %w", err)
	default:
		if m.current, err = DecodeHardState(text); err != nil {
			return nil, fmt.Errorf("understand the instance's hard state in %s: %w", m.file, err)
		}
		m.text = text
	}
	return m, m.ReloadTermHistory()
}

// WriteBy has the files replaced by another function than postgres.WriteFile, unless it is nil: when that returns, the
// new file is on disk.
func (m *StateStore) WriteBy(write func(path string, content []byte, mode os.FileMode) error) {
	if write != nil {
		m.write = write
	}
}

// Get is the hard state as it is on disk.
func (m *StateStore) Get() ha.HardState {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return m.current
}

// Change changes the hard state; when it returns, the change is on disk. The change
// is given up when change says no.
func (m *StateStore) Change(change func(*ha.HardState) bool) (ha.HardState, error) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	next := m.current
	if !change(&next) {
		return m.current, nil
	}
	if err := m.store(next); err != nil {
		return m.current, err
	}
	m.current = next
	return next, nil
}

// store replaces the file, unless it has just that: an instance that only learns a term history follows its new leader
// a moment earlier, and commits wait for that.
func (m *StateStore) store(hardState ha.HardState) error {
	hardState.TermHistory = nil
	text, err := EncodeHardState(m.text, hardState)
	if err != nil {
		return fmt.Errorf("encode the instance's hard state: %w", err)
	}
	if bytes.Equal(text, m.text) && !m.unsure {
		return nil
	}
	m.unsure = true
	if err := m.write(m.file, text, 0o600); err != nil {
		return err
	}
	m.text, m.unsure = text, false
	return nil
}

// Put makes a hard state durable, its term history before the rest. A term history that is not to change is left alone:
// the data, and with it its term history, may be replaced while the rest is on its way to the disk.
func (m *StateStore) Put(next ha.HardState, history bool) error {
	if history || m.isTorn() {
		if err := m.SetTermHistory(next.TermHistory); err != nil {
			return err
		}
	}
	if err := m.store(next); err != nil {
		return err
	}
	m.mutex.Lock()
	defer m.mutex.Unlock()
	next.TermHistory, m.torn = m.current.TermHistory, false
	m.current = next
	return nil
}

func (m *StateStore) isTorn() bool {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return m.torn
}

// SetTermHistory changes the term history; when it returns, the change is on disk. Nobody waits for the disk meanwhile.
func (m *StateStore) SetTermHistory(history []ha.TermStart) error {
	text, err := json.Marshal(history)
	if err != nil {
		return fmt.Errorf("encode the term history: %w", err)
	}
	if err := m.write(filepath.Join(m.data, lineageFile), text, 0o600); err != nil {
		return err
	}
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.current.TermHistory, m.torn = history, true
	return nil
}

// ReloadTermHistory reads the term history that lies with the data, after that was replaced.
func (m *StateStore) ReloadTermHistory() error {
	var history []ha.TermStart
	text, err := os.ReadFile(filepath.Join(m.data, lineageFile))
	switch {
	case errors.Is(err, os.ErrNotExist):
	case err != nil:
		return fmt.Errorf("read the term history: %w", err)
	default:
		if err := json.Unmarshal(text, &history); err != nil {
			return fmt.Errorf("understand the term history: %w", err)
		}
	}
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.current.TermHistory, m.torn = history, false
	return nil
}

// memoryFormat is the newest format of a hard state that is understood here. A release writes a higher one,
// as the member "format", when those before must not work with what it writes. What they may simply not
// know needs none: it is kept.
const memoryFormat = 0

// DecodeHardState understands the hard state of a voter or of the witness, and refuses one of a newer format.
func DecodeHardState(text []byte) (m ha.HardState, err error) {
	var head struct {
		Format int `json:"format"`
	}
	if err := json.Unmarshal(text, &head); err != nil {
		return m, err
	}
	if head.Format > memoryFormat {
		return m, fmt.Errorf("it has the format %d, of a newer release of Toban, and this one knows none after %d: "+
			"run that release or a newer one", head.Format, memoryFormat)
	}
	return m, json.Unmarshal(text, &m)
}

// EncodeHardState is a hard state as it is to be written in place of a text, nil for none. What that has and a newer
// release has written is kept: members that are not known here, and also such within one that has not changed. Within
// one that has, they were about what it said before.
func EncodeHardState(before []byte, m ha.HardState) ([]byte, error) {
	next, err := json.Marshal(m)
	if err != nil || len(before) == 0 {
		return next, err
	}
	understood, err := DecodeHardState(before)
	if err != nil {
		return nil, err
	}
	known, err := json.Marshal(understood)
	if err != nil {
		return nil, err
	}
	return keepUnknown(before, known, next)
}

// keepUnknown is the JSON object next with what another had that is not in known, which is what was understood of that
// one.
func keepUnknown(before, known, next []byte) ([]byte, error) {
	var was, understood, is map[string]json.RawMessage
	err := errors.Join(json.Unmarshal(before, &was), json.Unmarshal(known, &understood), json.Unmarshal(next, &is))
	if err != nil {
		return nil, err
	}
	for name, value := range was {
		now, there := is[name]
		same, ours := understood[name]
		if !ours && !there || ours && bytes.Equal(same, now) {
			is[name] = value
		}
	}
	return json.Marshal(is)
}
