package backup_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"toban.dev/internal/archive/book"
	"toban.dev/internal/archive/restore"
	"toban.dev/internal/wal"
)

// A tablespace that is made after the backup has the folder that its record names, wherever that is replayed.
func TestATablespaceOfTheWAL(t *testing.T) {
	source := primary(t)
	a := newArchive(t, source, "")
	a.take()
	source.do("insert into t values (2)")
	source.do("select pg_switch_wal()")
	before, err := wal.ParseLSN(source.ask("pg_current_wal_lsn()"))
	must(t, err)
	source.do("insert into t values (3)")
	folder := filepath.Join(filepath.Dir(source.Data.Volume), "later")
	must(t, os.Mkdir(folder, 0o700))
	source.do("create tablespace later location '" + folder + "'")
	source.do("create table there tablespace later as select generate_series(1, 1000) i")
	source.do("checkpoint")
	source.do("update there set i = -i")
	source.do("select pg_switch_wal()")
	source.do("update there set i = i - 1 where i < -500")
	source.do("checkpoint")
	source.do("select pg_switch_wal()")
	for range 40 { // more than is put there ahead of the replay
		source.do("insert into t select max(i) + 1 from t")
		source.do("select pg_switch_wal()")
	}
	a.archiveWAL()
	restored := func(beside bool, target book.Target) (*node, error) {
		n := newNodeOf(t, source.Programs)
		_, err := restore.Restore(t.Context(), restore.RestoreOptions{
			Bucket: a, Decoder: a.decoder, Wanted: book.Wanted{Target: target, Now: time.Now()},
			Folder: n.Data.Volume, Beside: beside, Run: n.Server.Run, Programs: n.Programs, Workers: 3, Log: n.log,
			Tablespaces: filepath.Join(filepath.Dir(n.Data.Volume), "spaces"),
		})
		return n, err
	}

	t.Run("beside the server that has it", func(t *testing.T) {
		written := contentOf(t, folder)
		var refused *restore.TablespaceError
		if n, err := restored(true, book.Target{}); !errors.As(err, &refused) || refused.Folder != folder {
			t.Fatalf("the restore ends with %v\n%s", err, n.log)
		}
		if now := contentOf(t, folder); now != written {
			t.Errorf("the folder of the server that runs has\n%s\nand had\n%s", now, written)
		}
		if sum := source.ask("select sum(i) from there"); sum != "-501000" {
			t.Errorf("the server that runs has %s", sum)
		}
	})
	t.Run("beside it, to a moment before", func(t *testing.T) {
		n, err := restored(true, book.Target{LSN: before})
		must(t, err)
		n.configure(nil)
		n.begin()
		n.ready()
		if rows := n.rows(); !strings.HasPrefix(rows, "1,2") {
			t.Errorf("it has rows %s", rows)
		}
	})
	t.Run("beside it, to the position that is named", func(t *testing.T) {
		_, err := restored(true, book.Target{})
		var refused *restore.TablespaceError
		if !errors.As(err, &refused) {
			t.Fatal(err)
		}
		n, err := restored(true, book.Target{LSN: refused.Before})
		must(t, err)
		n.configure(nil)
		n.begin()
		n.ready()
		if rows := n.rows(); rows != "1,2,3" {
			t.Errorf("it has rows %s", rows)
		}
	})
	t.Run("elsewhere", func(t *testing.T) {
		source.stop()
		must(t, os.Rename(folder, folder+"-gone"))
		n, err := restored(false, book.Target{})
		must(t, err)
		n.configure(nil)
		n.begin()
		n.ready()
		if sum := n.ask("select sum(i) from there"); sum != "-501000" {
			t.Errorf("it has %s", sum)
		}
	})
}

// contentOf is what files a folder has, with their sizes and times.
func contentOf(t *testing.T, folder string) string {
	t.Helper()
	var all []string
	must(t, filepath.Walk(folder, func(path string, info os.FileInfo, err error) error {
		if err == nil && !info.IsDir() {
			all = append(all, path+" "+info.ModTime().String())
		}
		return err
	}))
	return strings.Join(all, "\n")
}
