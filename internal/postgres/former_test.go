package postgres

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// Data of another major version is as good as none, and makes way for a copy: also in tablespaces, and nobody else's.
func TestDataOfAnotherMajorVersion(t *testing.T) {
	s := &Server{Data: DataDirectory{Volume: t.TempDir()}, Programs: Programs{Major: 18}}
	space := filepath.Join(s.Data.Volume, "tablespaces/fast")
	if err := errors.Join(os.MkdirAll(filepath.Join(s.Data.Path(), "pg_tblspc"), 0o700),
		os.MkdirAll(filepath.Join(space, "PG_15_1/5"), 0o700), os.MkdirAll(filepath.Join(space, "PG_18_1"), 0o700),
		os.Symlink(space, filepath.Join(s.Data.Path(), "pg_tblspc/16384")),
		os.WriteFile(filepath.Join(s.Data.Path(), "PG_VERSION"), []byte("15\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	for major, want := range map[int]bool{18: true, 15: false, 0: false} {
		s.Programs.Major = major
		if got, err := s.Incomplete(); err != nil || got != want {
			t.Errorf("for programs of %d it is incomplete: %v, %v", major, got, err)
		}
	}
	for _, c := range []struct {
		major     int
		remaining bool
	}{{15, true}, {18, false}} {
		s.Programs.Major = c.major
		if err := s.clearFormer(); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(filepath.Join(space, "PG_15_1")); (err == nil) != c.remaining {
			t.Errorf("for programs of %d its tablespace is there: %v", c.major, err == nil)
		}
	}
	if _, err := os.Stat(filepath.Join(space, "PG_18_1")); err != nil {
		t.Error("another version's tablespace is gone")
	}
}
