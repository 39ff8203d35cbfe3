package postgres

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// What an earlier server has left is ended before its data goes: it may still write what it had begun to write.
func TestNothingWorksOnDataThatGoes(t *testing.T) {
	d := DataDirectory{Volume: t.TempDir()}
	if err := os.MkdirAll(d.Path(), 0o700); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), "postgres")
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(sleep, program); err != nil {
		t.Fatal(err)
	}
	left := exec.Command(program, "600")
	left.Dir = d.Path()
	if err := left.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		_ = left.Wait() // it was killed
		close(ended)
	}()
	enough := errors.New("enough")
	err = d.grow(t.Context(), func() error {
		select {
		case <-ended:
		default:
			t.Error("it is there")
		}
		return enough
	})
	_ = left.Process.Kill() // where the test has failed
	if !errors.Is(err, enough) {
		t.Error(err)
	}
}
