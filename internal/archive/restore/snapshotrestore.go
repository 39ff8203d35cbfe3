package restore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"toban.dev/internal/archive/book"
	"toban.dev/internal/postgres"
)

// ErrUsedUp says that a volume that was made of a snapshot is neither that any more nor a database.
var ErrUsedUp = errors.New("the WAL was replayed in part by a Pod before this one: the volume is neither the " +
	"snapshot any more nor the database. Delete its PersistentVolumeClaim, and it is made of the snapshot again")

// fileReplayed notes, beside the data of a restore from a snapshot, that a server has begun to replay WAL there. It
// does not sync (scratch.configure), and may have been promoted: nothing can begin with that data once more.
const fileReplayed = "replayed"

// What of a data directory is not in a base backup (PostgreSQL 17 documentation, 25.3.4): files, folders of which
// nothing is, and the beginnings of the names of files anywhere.
var (
	leftOutFiles = []string{"postmaster.pid", "postmaster.opts", "backup_label.old", "tablespace_map",
		"tablespace_map.old", "backup_manifest", "standby.signal", "recovery.signal", "current_logfiles",
		"postgresql.auto.conf.tmp"}
	leftOutContents = []string{"pg_dynshmem", "pg_notify", "pg_replslot", "pg_serial", "pg_snapshots", "pg_stat_tmp",
		"pg_subtrans"}
	leftOutPrefixes = []string{"pg_internal.init", "pgsql_tmp"}
)

const backupLabel = "backup_label"

// prepareSnapshot makes a base backup of the data of a snapshot. It may be interrupted anywhere and be called again,
// until a server has begun to replay.
func (r *restoring) prepareSnapshot(ctx context.Context) error {
	if _, err := os.Stat(filepath.Join(r.Folder, fileReplayed)); !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(ErrUsedUp, err)
	}
	data := r.server.Data.Path()
	control, err := r.server.Control(ctx)
	if err != nil {
		return fmt.Errorf("look at the data of the snapshot: %w", err)
	}
	if want := r.Present.SystemIdentifier; want != "" && control.SystemIdentifier != want {
		return fmt.Errorf("%w: the snapshot has data of the database system %s, and the backup is of %s",
			book.ErrOutside,
			control.SystemIdentifier, want)
	}
	if err := leaveOut(data); err != nil {
		return fmt.Errorf("make a base backup of the data of the snapshot: %w", err)
	}
	if err := postgres.WriteFile(filepath.Join(data, backupLabel), []byte(r.Present.BackupLabel), 0o600); err != nil {
		return err
	}
	return r.server.Data.MoveWAL(data)
}

// noteReplay notes that a server begins to replay.
func (r *restoring) noteReplay() error {
	return postgres.WriteFile(filepath.Join(r.Folder, fileReplayed), nil, 0o600)
}

// leaveOut removes from a data directory what a base backup does not have.
func leaveOut(data string) error {
	if err := postgres.DropWAL(data); err != nil {
		return err
	}
	wal := filepath.Join(data, "pg_wal")
	if err := os.RemoveAll(wal); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(wal, "archive_status"), 0o700); err != nil {
		return err
	}
	for _, name := range leftOutFiles {
		if err := os.RemoveAll(filepath.Join(data, name)); err != nil {
			return err
		}
	}
	for _, folder := range leftOutContents {
		if err := empty(filepath.Join(data, folder)); err != nil {
			return err
		}
	}
	return leaveOutAnywhere(data)
}

// empty removes what is in a folder, which must be there for a server.
func empty(folder string) error {
	if err := os.RemoveAll(folder); err != nil {
		return err
	}
	return os.Mkdir(folder, 0o700)
}

// leaveOutAnywhere removes what a server makes anew, in all folders, also those of tablespaces.
func leaveOutAnywhere(data string) error {
	roots := []string{data}
	spaces, err := os.ReadDir(filepath.Join(data, "pg_tblspc"))
	if err != nil {
		return err
	}
	for _, space := range spaces {
		roots = append(roots, filepath.Join(data, "pg_tblspc", space.Name())+string(filepath.Separator))
	}
	for _, root := range roots {
		if err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			left := func(prefix string) bool { return strings.HasPrefix(entry.Name(), prefix) }
			if err != nil || !slices.ContainsFunc(leftOutPrefixes, left) {
				return err
			}
			if err := os.RemoveAll(path); err != nil { //nolint:gosec // nobody else works on the volume: it is locked
				return err
			}
			if entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		}); err != nil {
			return err
		}
	}
	return nil
}
