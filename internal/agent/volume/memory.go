package volume

import (
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
// copy of the data brings the lineage of where it was copied from.
const lineageFile = "toban_lineage.json"

// Memory keeps an instance's promises. They outlive the data directory, since a
// term must never be forgotten; only the lineage lies with the data.
type Memory struct {
	file, data string
	// write replaces a file.
	write func(path string, content []byte, mode os.FileMode) error

	mutex   sync.Mutex
	current ha.Memory
	// torn says that a lineage is on disk, and the rest that it belongs to is not.
	torn bool
	// text is what the file has.
	text []byte
}

// OpenMemory reads the memory, or begins a new one: that of a new voter.
func OpenMemory(instance, folder, data string) (*Memory, error) {
	m := &Memory{file: filepath.Join(folder, memoryFile), data: data, write: postgres.WriteFile}
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
		return nil, fmt.Errorf("read the instance's memory: %w", err)
	default:
		if m.current, err = DecodeMemory(text); err != nil {
			return nil, fmt.Errorf("understand the instance's memory in %s: %w", m.file, err)
		}
		m.text = text
	}
	return m, m.ReloadLineage()
}

// WriteBy has the files replaced by another function than postgres.WriteFile, unless it is nil: when that returns, the
// new file is on disk.
func (m *Memory) WriteBy(write func(path string, content []byte, mode os.FileMode) error) {
	if write != nil {
		m.write = write
	}
}

// Get is the memory as it is on disk.
func (m *Memory) Get() ha.Memory {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return m.current
}

// Change changes the memory; when it returns, the change is on disk. The change
// is given up when change says no.
func (m *Memory) Change(change func(*ha.Memory) bool) (ha.Memory, error) {
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

func (m *Memory) store(memory ha.Memory) error {
	memory.Lineage = nil
	text, err := EncodeMemory(m.text, memory)
	if err != nil {
		return fmt.Errorf("encode the instance's memory: %w", err)
	}
	if err := m.write(m.file, text, 0o600); err != nil {
		return err
	}
	m.text = text
	return nil
}

// Put makes a memory durable, its lineage before the rest. A lineage that is not to change is left alone: the data, and
// with it its lineage, may be replaced while the rest is on its way to the disk.
func (m *Memory) Put(next ha.Memory, lineage bool) error {
	if lineage || m.isTorn() {
		if err := m.SetLineage(next.Lineage); err != nil {
			return err
		}
	}
	if err := m.store(next); err != nil {
		return err
	}
	m.mutex.Lock()
	defer m.mutex.Unlock()
	next.Lineage, m.torn = m.current.Lineage, false
	m.current = next
	return nil
}

func (m *Memory) isTorn() bool {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return m.torn
}

// SetLineage changes the lineage; when it returns, the change is on disk. Nobody waits for the disk meanwhile.
func (m *Memory) SetLineage(lineage []ha.Start) error {
	text, err := json.Marshal(lineage)
	if err != nil {
		return fmt.Errorf("encode the lineage: %w", err)
	}
	if err := m.write(filepath.Join(m.data, lineageFile), text, 0o600); err != nil {
		return err
	}
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.current.Lineage, m.torn = lineage, true
	return nil
}

// ReloadLineage reads the lineage that lies with the data, after that was replaced.
func (m *Memory) ReloadLineage() error {
	var lineage []ha.Start
	text, err := os.ReadFile(filepath.Join(m.data, lineageFile))
	switch {
	case errors.Is(err, os.ErrNotExist):
	case err != nil:
		return fmt.Errorf("read the lineage: %w", err)
	default:
		if err := json.Unmarshal(text, &lineage); err != nil {
			return fmt.Errorf("understand the lineage: %w", err)
		}
	}
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.current.Lineage, m.torn = lineage, false
	return nil
}
