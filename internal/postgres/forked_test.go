package postgres

import (
	"os"
	"testing"
)

func TestDataHasForkedUntilItIsReplaced(t *testing.T) {
	t.Parallel()
	s := &Server{Data: DataDirectory{Volume: t.TempDir()}}
	forked := func(want bool) {
		t.Helper()
		if is, err := s.Data.Forked(); err != nil || is != want {
			t.Errorf("it has forked: %v, %v", is, err)
		}
	}
	forked(false)
	if err := s.Data.MarkForked(); err != nil {
		t.Fatal(err)
	}
	forked(true)
	if err := s.Data.unmark(); err != nil { // a rewind that changed nothing
		t.Fatal(err)
	}
	forked(true)
	if err := os.Mkdir(s.Data.incoming(), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := s.Data.MoveIn(s.Data.incoming()); err != nil {
		t.Fatal(err)
	}
	forked(false)
}
