package volume

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"toban.dev/internal/postgres"
)

// A write that fails at its end may have written: only what is surely on disk is not written again.
func TestAMarkOfWhichNothingIsSureIsWrittenAgain(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(StateFolder(dir), 0o700); err != nil {
		t.Fatal(err)
	}
	fails := error(nil)
	m := NewSlackMark(dir, func(path string, content []byte, mode os.FileMode) error {
		return errors.Join(postgres.WriteFile(path, content, mode), fails)
	})
	if err := m.Put(true); err != nil {
		t.Fatal(err)
	}
	fails = errors.New("sync: input/output error")
	if m.Put(false) == nil {
		t.Fatal("it is taken away though that is not sure")
	}
	fails = nil
	if err := m.Put(true); err != nil || !NewSlackMark(dir, nil).Is() {
		t.Errorf("slack is promised, and the next process does not know it: %v", err)
	}
}

// One that could not be read may be set, and may be none.
func TestAMarkThatCouldNotBeReadIsWritten(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(StateFolder(dir), slackFile)
	if err := os.MkdirAll(file, 0o700); err != nil {
		t.Fatal(err)
	}
	m := NewSlackMark(dir, nil)
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if err := m.Put(true); err != nil || !NewSlackMark(dir, nil).Is() {
		t.Errorf("slack is promised, and the next process does not know it: %v", err)
	}
}
