package agent

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"
)

// Who stops an agent waits for the end of an exchange that has begun, and has none begin any more.
func TestBeforeAStopAnExchangeEnds(t *testing.T) {
	run := t.TempDir()
	begun := filepath.Join(run, handoverFile)
	synctest.Test(t, func(t *testing.T) {
		if err := os.WriteFile(begun, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(3*time.Second, func() { _ = os.Remove(begun) })
		began := time.Now()
		if err := BeforeStop(t.Context(), run); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took < 3*time.Second || took > 4*time.Second {
			t.Errorf("it has waited %s", took)
		}
	})
	if !stops(run) {
		t.Error("the agent does not know that it is going to be told to stop")
	}
	forgetExchange(run) // the container starts again
	if stops(run) {
		t.Error("the next container's agent is told to stop, too")
	}
	synctest.Test(t, func(t *testing.T) {
		if err := os.WriteFile(begun, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := BeforeStop(context.Background(), run); err == nil {
			t.Error("it does not say that the exchange has not ended")
		}
	})
}
