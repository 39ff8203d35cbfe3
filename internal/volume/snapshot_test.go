package volume

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// aSnapshot is a volume as it is cut: data, a tablespace, and what an instance has besides.
func aSnapshot(t *testing.T) string {
	t.Helper()
	volume := t.TempDir()
	for _, file := range []string{
		"data/PG_VERSION", "data/base/1", "tablespaces/16400/PG_17/1", "toban/state.json", "locks/owner",
		"restored.json", "restore/data/PG_VERSION", "incoming/PG_VERSION", "outgoing/x", "before-1/y", "rewinding",
	} {
		path := filepath.Join(volume, file)
		err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte("s"), 0o600))
		if err != nil {
			t.Fatal(err)
		}
	}
	spaces := filepath.Join(volume, "data/pg_tblspc")
	if err := errors.Join(os.Mkdir(spaces, 0o700),
		os.Symlink(filepath.Join(volume, "tablespaces/16400"), filepath.Join(spaces, "16400"))); err != nil {
		t.Fatal(err)
	}
	return volume
}

func names(t *testing.T, folder string) (out []string) {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

func TestASnapshotIsTakenUpOnce(t *testing.T) {
	volume := aSnapshot(t)
	for range 2 { // cut off before its note, and called again
		if err := TakeUpSnapshot(volume, "one"); err != nil {
			t.Fatal(err)
		}
		if got := names(t, volume); !slices.Equal(got, []string{"locks", "restore", "snapshot", "tablespaces"}) {
			t.Fatalf("the volume has %v", got)
		}
		if got := names(t, restoredData(volume)); !slices.Equal(got, []string{"PG_VERSION", "base", "pg_tblspc"}) {
			t.Fatalf("the data has %v", got)
		}
		if err := os.Remove(snapshotFile(volume)); err != nil {
			t.Fatal(err)
		}
	}
	// Once an instance has its data there, it is its own.
	volume = aSnapshot(t)
	if err := TakeUpSnapshot(volume, "one"); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(restoredData(volume), filepath.Join(volume, "data")); err != nil {
		t.Fatal(err)
	}
	before := names(t, volume)
	if err := TakeUpSnapshot(volume, "one"); err != nil || !slices.Equal(names(t, volume), before) {
		t.Errorf("it was taken up again: %v, %v", err, names(t, volume))
	}
}

func TestAVolumeWithoutDataIsNoSnapshot(t *testing.T) {
	volume := t.TempDir()
	if err := TakeUpSnapshot(volume, "one"); !errors.Is(err, ErrNoSnapshot) {
		t.Errorf("the error is %v", err)
	}
	if got := names(t, volume); len(got) > 0 {
		t.Errorf("it has left %v", got)
	}
}
