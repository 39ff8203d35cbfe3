package agent

import (
	"errors"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"toban.dev/internal/ha"
	"toban.dev/internal/ha/machine"
	"toban.dev/internal/volume"
)

// A disk that takes no hard state is not asked again at once: the machine would want the same without end.
func TestAHardStateThatCouldNotBeWrittenWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		folder := t.TempDir()
		states, err := volume.OpenStateStore("db-0", folder, folder)
		if err != nil {
			t.Fatal(err)
		}
		a := &Agent{states: states, electing: electing{life: t.Context()}}
		for term, want := range []time.Duration{0, storePause} {
			full := want > 0
			states.WriteBy(func(string, []byte, os.FileMode) error {
				if full {
					return errors.New("no space left on device")
				}
				return nil
			})
			began := time.Now()
			a.store(machine.Store{ID: 1, HardState: ha.HardState{Voter: "db-0.a", Won: uint64(term + 1)}})
			if took := time.Since(began); took != want {
				t.Errorf("full %t: the machine hears of it after %s, want %s", full, took, want)
			}
		}
	})
}
