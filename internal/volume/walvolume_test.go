package volume

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"toban.dev/internal/ha"
	"toban.dev/internal/postgres"
)

// openWithWAL opens a volume with another one for the WAL, and reads who the instance is.
func openWithWAL(t *testing.T, volume, walVolume string) (ha.HardState, error) {
	t.Helper()
	lock, states, err := Open(t.Context(), Opening{
		Volume: volume, WALVolume: walVolume, Instance: "db-0", Log: slog.New(slog.DiscardHandler),
		Waits: func(whom string) { t.Errorf("it waits for %s", whom) },
	})
	if lock != nil {
		defer lock.Release()
	}
	if err != nil {
		return ha.HardState{}, err
	}
	return states.Get(), nil
}

// Who has lost its WAL may have acknowledged what it has no more: it is another voter, without data.
func TestAnInstanceThatHasLostItsWALIsAnotherVoter(t *testing.T) {
	volume, walVolume := volume(t, false), t.TempDir()
	data := postgres.DataDirectory{Volume: volume}.Path()
	if err := os.MkdirAll(filepath.Join(data, "pg_wal"), 0o700); err != nil {
		t.Fatal(err)
	}
	now, err := openWithWAL(t, volume, walVolume)
	if err != nil || now.Voter != "db-0.a" || now.Ballot.Term != 7 {
		t.Fatalf("with its WAL moved, it is %+v, %v", now, err)
	}
	if _, err := openWithWAL(t, volume, ""); !errors.Is(err, postgres.ErrWALElsewhere) {
		t.Errorf("without its WAL volume, the error is %v", err)
	}
	folder, err := postgres.WALFolder(data)
	if err != nil || filepath.Dir(folder) != walVolume {
		t.Fatalf("its WAL is in %q, %v", folder, err)
	}
	if err := os.RemoveAll(folder); err != nil {
		t.Fatal(err)
	}
	checkAnother(t, volume, walVolume)
}

// checkAnother checks that the instance on a volume is another voter than db-0.a, without data, and stays that.
func checkAnother(t *testing.T, volume, walVolume string) {
	t.Helper()
	now, err := openWithWAL(t, volume, walVolume)
	if err != nil || now.Voter == "db-0.a" || now.Voter.Instance() != "db-0" || now.Ballot.Term != 0 {
		t.Errorf("without its WAL, it is %+v, %v", now, err)
	}
	if has, err := (postgres.DataDirectory{Volume: volume}).HasData(); err != nil || has {
		t.Errorf("it has data: %v, %v", has, err)
	}
	again, err := openWithWAL(t, volume, walVolume)
	if err != nil || again.Voter != now.Voter {
		t.Errorf("it is %q, and then %q, %v", now.Voter, again.Voter, err)
	}
}
