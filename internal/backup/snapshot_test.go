package backup

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"toban.dev/internal/archive/archivetest"
	"toban.dev/internal/archive/format"
	"toban.dev/internal/wal"
)

// A snapshot of a volume of day 3 keeps the WAL of that day, and nothing else: it takes no backup's place.
func TestRetentionKeepsTheWALOfASnapshotAndCountsOnNone(t *testing.T) {
	lsn := wal.LSN(3) * wal.SegmentSize
	snapshot := format.Backup{
		ID: "s3", Type: format.TypeSnapshot, Term: 1, StartLSN: lsn + 0x28, StopLSN: lsn + 0x100, Stopped: archivetest.Day(3),
	}
	young := snapshot
	young.ID, young.StartLSN, young.StopLSN, young.Stopped = "s10", lsn*3+0x28, lsn*3+0x100, archivetest.Day(9)
	for name, c := range map[string]struct {
		snapshots    []format.Backup
		backups, wal string
	}{
		"none":      {nil, "b2 b4", "1 2 3 4 5"},
		"an old":    {[]format.Backup{snapshot}, "b2 b4", "1 2 4 5"},
		"a younger": {[]format.Backup{young}, "b2 b4", "1 2 3 4 5"},
	} {
		archive := aMonth(10, 2, 4, 6, 8, 10)
		d := byRules(t, archive, Policy{Count: 3, Now: archivetest.Day(11), Snapshots: c.snapshots})
		backups, segments := gone(d)
		if strings.Join(backups, " ") != c.backups || strings.Join(segments, " ") != c.wal {
			t.Errorf("%s: it removes %v and WAL of %v, expected %s and %s", name, backups, segments, c.backups, c.wal)
		}
	}
}

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
