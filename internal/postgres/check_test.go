package postgres

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A program that was ended before it said anything has refused nothing.
func TestNoAnswerIsNoRefusal(t *testing.T) {
	for name, c := range map[string]struct {
		program  string
		patience time.Duration
		refused  bool
	}{
		"it is taken":           {"exit 0", time.Minute, false},
		"it is refused":         {"echo 'FATAL: no' >&2; exit 1", time.Minute, true},
		"refused without words": {"exit 1", time.Minute, true},
		"the time is over":      {"exec sleep 60", 50 * time.Millisecond, false},
		"a signal ends it":      {"kill -9 $$", time.Minute, false},
	} {
		// It is written while nobody begins a process, which would have it open: then it could not be run.
		dir := t.TempDir()
		script := "#!/bin/sh\n" + c.program + "\n"
		if err := os.WriteFile(filepath.Join(dir, "postgres"), []byte(script), 0o700); err != nil {
			t.Fatal(err)
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := example(17)
			server.Programs.Dir, server.Run = dir, dir
			ctx, cancel := context.WithTimeout(t.Context(), c.patience)
			defer cancel()
			err := server.Check(ctx, Settings{})
			var rejected *RejectedError
			if refused := errors.As(err, &rejected); refused != c.refused {
				t.Errorf("refused: %v (%v)", refused, err)
			}
			if c.refused && rejected != nil && rejected.Words == "" {
				t.Error("a refusal without a reason")
			}
			if taken := err == nil; taken != (c.program == "exit 0") {
				t.Errorf("taken: %v (%v)", taken, err)
			}
		})
	}
}
