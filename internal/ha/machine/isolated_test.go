package machine

import (
	"testing"
	"time"
)

// Who reaches nobody, neither the others nor the witness, goes on asking, and puts nothing on disk for that: without a
// majority that would vote it promises nothing.
func TestWhoReachesNobodyPutsNothingOnDisk(t *testing.T) {
	t.Parallel()
	for name, made := range map[string]func(*testing.T) *rig{
		"a leader":  served,
		"a standby": standby,
		"one that comes back": func(t *testing.T) *rig {
			t.Helper()
			return newRig(t, memoryOf("db-0.a", 4, "db-0"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := made(t)
			r.away = true
			r.pass(time.Minute) // it finds that it is alone
			before, polls := len(wants[Store](r)), len(wants[Command](r))
			r.pass(10 * time.Minute)
			if stored := len(wants[Store](r)) - before; stored > 0 {
				t.Errorf("it has stored %d hard states in ten minutes: %s", stored, r)
			}
			if again := len(wants[Command](r)) - polls; again > 0 {
				t.Errorf("it was told to do %d things", again)
			}
		})
	}
}
