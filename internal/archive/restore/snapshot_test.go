package restore

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestWhatOfASnapshotIsNoBaseBackup(t *testing.T) {
	data, space := t.TempDir(), t.TempDir()
	for _, file := range []string{
		"PG_VERSION", "postmaster.pid", "postmaster.opts", "backup_label.old", "tablespace_map", "standby.signal",
		"base/1/2600", "base/1/pg_internal.init", "base/1/pg_internal.init.12", "base/pgsql_tmp/pgsql_tmp1.0",
		"global/pg_control", "global/pg_internal.init", "pg_replslot/toban_archive/state", "pg_stat_tmp/global.tmp",
		"pg_subtrans/0000", "pg_notify/0000", "pg_serial/x", "pg_snapshots/x", "pg_dynshmem/x", "pg_xact/0000",
		"pg_logical/replorigin_checkpoint", "pg_wal/000000010000000000000001", "pg_wal/archive_status/x.ready",
	} {
		touch(t, filepath.Join(data, file))
	}
	touch(t, filepath.Join(space, "PG_17/5/16401"))
	touch(t, filepath.Join(space, "PG_17/pgsql_tmp/pgsql_tmp2.0"))
	if err := os.Mkdir(filepath.Join(data, "pg_tblspc"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(space, filepath.Join(data, "pg_tblspc/16400")); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := leaveOut(data); err != nil {
			t.Fatal(err)
		}
		want := []string{"PG_VERSION", "base/1/2600", "global/pg_control", "pg_logical/replorigin_checkpoint",
			"pg_tblspc/16400", "pg_xact/0000"}
		if got := files(t, data); !slices.Equal(got, want) {
			t.Errorf("the data has %v, expected %v", got, want)
		}
		if got := files(t, space); !slices.Equal(got, []string{"PG_17/5/16401"}) {
			t.Errorf("the tablespace has %v", got)
		}
	}
	for _, folder := range append(slices.Clone(leftOutContents), "pg_wal/archive_status") {
		if info, err := os.Stat(filepath.Join(data, folder)); err != nil || !info.IsDir() {
			t.Errorf("a server needs the folder %s: %v", folder, err)
		}
	}
}

func touch(t *testing.T, path string) {
	t.Helper()
	err := os.MkdirAll(filepath.Dir(path), 0o700)
	if err == nil {
		err = os.WriteFile(path, nil, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// files are all below a folder, in order.
func files(t *testing.T, folder string) (out []string) {
	t.Helper()
	err := filepath.Walk(folder, func(path string, info os.FileInfo, err error) error {
		if err == nil && !info.IsDir() {
			name, _ := filepath.Rel(folder, path)
			out = append(out, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}
