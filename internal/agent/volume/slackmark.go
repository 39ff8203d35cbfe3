package volume

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"toban.dev/internal/postgres"
)

// slackFile says, in the state folder, that the instance has promised its leader to let it be silent for longer than
// the limits, or had a moment ago.
const slackFile = "slack"

// slackSet and slackClear are what is in it.
const slackSet, slackClear = "1", "0"

// SlackMark remembers on the volume that a process has promised slack: the next one must go by that for a while, though
// it does not know how much it was.
type SlackMark struct {
	file  string
	write func(path string, content []byte, mode os.FileMode) error

	mutex sync.Mutex
	is    bool
}

// NewSlackMark reads the mark. write is nil for postgres.WriteFile.
func NewSlackMark(volume string, write func(path string, content []byte, mode os.FileMode) error) *SlackMark {
	m := &SlackMark{file: filepath.Join(StateFolder(volume), slackFile), write: write}
	if write == nil {
		m.write = postgres.WriteFile
	}
	text, err := os.ReadFile(m.file)
	m.is = err == nil && string(text) != slackClear
	return m
}

// Is says that slack has been promised.
func (m *SlackMark) Is() bool {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return m.is
}

// Put sets the mark, or takes it away, as is promised then. When it returns without an error, that is on disk.
func (m *SlackMark) Put(promised func() bool) error {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	now, text := promised(), slackClear
	if now == m.is {
		return nil
	}
	if now {
		text = slackSet
	}
	if err := m.write(m.file, []byte(text), 0o600); err != nil {
		return fmt.Errorf("remember that a leader may be silent for longer: %w", err)
	}
	m.is = now
	return nil
}
