package volume

import (
	"context"
	"fmt"
	"strings"
	"testing"
)

// openAndLeave opens a volume, and leaves it again.
func openAndLeave(ctx context.Context, volume string, waits func(whom string)) error {
	lock, memory, err := Open(ctx, Opening{Volume: volume, Instance: "db-0", Due: []Due{{ID: "oops"}}, Waits: waits})
	if err != nil {
		return err
	}
	defer lock.Release()
	if memory.Get().Voter.Instance() != "db-0" {
		return fmt.Errorf("it has read %+v", memory.Get())
	}
	return nil
}

// A restore in place is taken over when no restore works on the volume any more. Later ones delay no start.
func TestARestoreIsTakenOverWhenItHasEnded(t *testing.T) {
	volume := volume(t, true)
	for _, due := range []bool{true, false} {
		t.Run(fmt.Sprintf("due: %t", due), func(t *testing.T) {
			restore, err := tryLock(volume, lockRestore)
			if err != nil {
				t.Fatal(err)
			}
			defer restore.Release()
			ctx, cancel := context.WithTimeout(t.Context(), longDeadline)
			defer cancel()
			opened := make(chan error, 1)
			waits := make(chan string, 10)
			go func() { opened <- openAndLeave(ctx, volume, func(whom string) { waits <- whom }) }()
			if due {
				select {
				case whom := <-waits:
					if !strings.Contains(whom, "a restore") {
						t.Errorf("it waits for %q", whom)
					}
				case err := <-opened:
					t.Fatalf("it did not wait: %v", err)
				}
				if content(volume, "data/PG_VERSION") != "old" {
					t.Error("it was taken over before it had ended")
				}
				restore.Release()
			}
			if err := <-opened; err != nil {
				t.Fatal(err)
			}
			checkTakenOver(t, volume)
		})
	}
}
