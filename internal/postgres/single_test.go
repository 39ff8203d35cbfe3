package postgres

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// A single-user mode that hangs, for instance at its disk, is given up with a sentence: the start goes on.
func TestASingleUserModeThatHangsIsGivenUp(t *testing.T) {
	programs, volume := t.TempDir(), t.TempDir()
	hangs := "#!/bin/sh\necho it replays\nexec sleep 20\n"
	if err := os.WriteFile(filepath.Join(programs, "postgres"), []byte(hangs), 0o700); err != nil {
		t.Fatal(err)
	}
	s := &Server{Programs: Programs{Dir: programs, Major: 17}, Data: DataDirectory{Volume: volume}, Run: t.TempDir()}
	if err := os.MkdirAll(s.Data.Path(), 0o700); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	err := s.letUsIn(t.Context(), 300*time.Millisecond)
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "given up after 300ms") ||
		!strings.Contains(err.Error(), "it replays") {
		t.Errorf("%v", err)
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("it took %s", took)
	}
}

// The single-user mode undoes what the role postgres, or its database, forbids. It can't bring a database back.
func TestWhereLettingInHelps(t *testing.T) {
	for code, want := range map[string]bool{"28000": true, "55000": true, "3D000": false, "53300": false, "": false} {
		if got := CanBeLetIn(&pgconn.PgError{Code: code}); got != want {
			t.Errorf("%q: %t", code, got)
		}
	}
}
