package volume

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"toban.dev/internal/postgres"
)

// slackFile says, in the state folder, that the instance has promised its leader to let it be silent for longer than
// the limits, or had a moment ago.
const slackFile = "slack"

// slackSet and slackClear are what is in it.
const slackSet, slackClear = "1", "0"

// SlackMark remembers on the volume that a process has promised slack: the next one must go by that for a while, though
// it does not know how much it was. It is not safe for concurrent use.
type SlackMark struct {
	file  string
	write func(path string, content []byte, mode os.FileMode) error
	// is says that it may be set, known that this is surely what is on disk.
	is, known bool
}

// NewSlackMark reads the mark. write is nil for postgres.WriteFile. One that can't be read may be set.
func NewSlackMark(volume string, write func(path string, content []byte, mode os.FileMode) error) *SlackMark {
	m := &SlackMark{file: filepath.Join(StateFolder(volume), slackFile), write: write}
	if write == nil {
		m.write = postgres.WriteFile
	}
	text, err := os.ReadFile(m.file)
	m.is = !errors.Is(err, fs.ErrNotExist) && (err != nil || string(text) != slackClear)
	m.known = err == nil || !m.is
	return m
}

// Is says that slack has been promised.
func (m *SlackMark) Is() bool { return m.is }

// Put sets the mark or takes it away. When it returns without an error, that is on disk.
func (m *SlackMark) Put(promised bool) error {
	if m.known && promised == m.is {
		return nil
	}
	text := slackClear
	if promised {
		text = slackSet
	}
	m.known = false // what fails may have been written, in part or whole
	if err := m.write(m.file, []byte(text), 0o600); err != nil {
		return fmt.Errorf("remember that a leader may be silent for longer: %w", err)
	}
	m.is, m.known = promised, true
	return nil
}
