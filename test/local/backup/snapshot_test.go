package backup_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"toban.dev/internal/archive/book"
	"toban.dev/internal/archive/format"
	"toban.dev/internal/archive/restore"
	"toban.dev/internal/archive/take"
	"toban.dev/internal/archive/transfer"
	"toban.dev/internal/wal"
)

// cut copies a volume while its server writes, one file after the other: what a snapshot may be like at worst.
func cut(t *testing.T, from, to string) {
	t.Helper()
	must(t, os.MkdirAll(to, 0o700))
	out, err := exec.CommandContext(t.Context(), "bash", "-c",
		`set -o pipefail; tar -C "$1" -cf - . | tar -C "$2" -xf -`, "cut", from, to).CombinedOutput()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 1 { // files have changed or gone meanwhile
		return
	}
	if err != nil {
		t.Fatalf("copy the volume: %v\n%s", err, out)
	}
}

// write inserts rows into the table loaded, each in a transaction, until it is stopped, and says how many.
func (n *node) write() (stop func() int) {
	n.Helper()
	n.do("create table loaded (i int primary key, filler text)")
	ctx, cancel := context.WithCancel(n.Context())
	done := make(chan int)
	conn := n.dial()
	go func() {
		count := 0
		for ctx.Err() == nil {
			_, err := conn.Exec(context.Background(),
				"insert into loaded values ($1::int, repeat(md5($1::int::text), 30))", count)
			if err != nil {
				n.Errorf("write: %v", err)
				break
			}
			count++
		}
		_ = conn.Close(context.Background())
		done <- count
	}()
	return func() int { cancel(); return <-done }
}

// snapshot is one of a source that writes all the while.
func (a *archive) snapshot(to string) (s format.Snapshot, rows int) {
	a.Helper()
	stop := a.source.write()
	session, err := take.BeginSession(a.Context(), take.SessionOptions{
		Server: a.replication(), Term: a.term, Volume: a.source.Data.Volume,
	})
	must(a, err)
	defer session.Close()
	a.source.do("update big set b = md5(b)") // of pages that are copied before and after
	cut(a.T, a.source.Data.Volume, to)
	a.source.do("update big set b = md5(b); checkpoint")
	must(a, session.Holds(a.Context()))
	s, err = session.Stop(a.Context())
	must(a, err)
	return s, stop()
}

// ofSnapshot restores a node whose volume has the data of a snapshot.
func (a *archive) ofSnapshot(
	ctx context.Context, n *node, s format.Snapshot, target book.Target, progress func(string, transfer.Progress),
) (restore.Restored, error) {
	return restore.Restore(ctx, restore.RestoreOptions{Bucket: a, Decoder: a.decoder, Present: &s,
		Wanted: book.Wanted{Now: time.Now(), Target: target}, Folder: n.Data.Volume, Run: n.Server.Run,
		Programs: n.Programs, Workers: 3, Log: n.log, Progress: progress})
}

func (n *node) startAfterRestore() {
	n.Helper()
	n.configure(nil)
	n.begin()
	n.ready()
}

func (n *node) whole() {
	n.Helper()
	n.do("create extension if not exists amcheck")
	n.do("select bt_index_check(c.oid, true) from pg_class c join pg_am a on a.oid = c.relam " +
		"where a.amname = 'btree' and c.relpersistence = 'p'")
}

// A snapshot that is cut while clients write leads, with the WAL of the archive, to the moment at which it ended and to
// any later one. Tablespaces that are elsewhere are refused.
func TestASnapshotOfAVolumeLeadsToAnyLaterMoment(t *testing.T) {
	source := primary(t)
	a := newArchive(t, source, newKey(t))
	_, err := take.BeginSession(t.Context(),
		take.SessionOptions{Server: a.replication(), Volume: source.Data.Volume})
	if err == nil || !strings.Contains(err.Error(), "/space") {
		t.Errorf("of a tablespace elsewhere is said: %v", err)
	}
	source.do("drop table elsewhere")
	source.do("drop tablespace fast")
	volumes := newNodeOf(t, source.Programs).Data.Volume
	s, rows := a.snapshot(filepath.Join(volumes, "cut"))
	if !strings.Contains(s.BackupLabel, "START WAL LOCATION") || s.StartTimeline != 1 || s.StopLSN <= s.StartLSN {
		t.Errorf("the snapshot is %+v", s)
	}
	source.do("insert into t values (2)")
	lsn, err := wal.ParseLSN(source.ask("select pg_current_wal_insert_lsn()"))
	must(t, err)
	source.do("insert into t values (3); select pg_switch_wal()")
	a.archiveWAL()
	for name, c := range map[string]struct {
		target book.Target
		rows   string
	}{
		"to where it ended": {book.Target{Immediate: true}, "1"},
		"to a position":     {book.Target{LSN: lsn}, "1,2"},
		"to the end":        {book.Target{}, "1,2,3"},
	} {
		t.Run(name, func(t *testing.T) {
			in := *a
			in.T = t
			n := newNodeOf(t, source.Programs)
			cut(t, filepath.Join(volumes, "cut"), n.Data.Volume)
			restored, err := in.ofSnapshot(t.Context(), n, s, c.target, nil)
			must(t, err)
			if restored.Choice.Backup.ID != s.ID || restored.Reached.LSN < s.StopLSN {
				t.Errorf("restored %+v", restored)
			}
			n.startAfterRestore()
			if got := n.rows(); got != c.rows {
				t.Errorf("it has rows %s, expected %s", got, c.rows)
			}
			// What was committed before the session ended is there: all that is read is one prefix of what was written.
			loaded := n.ask("select count(*) || ' ' || max(i) + 1 from loaded")
			if full := fmt.Sprintf("%d %d", rows, rows); !c.target.Immediate && loaded != full {
				t.Errorf("it has of the load %s, expected %s", loaded, full)
			}
			if count, last, _ := strings.Cut(loaded, " "); count != last || count == "0" {
				t.Errorf("it has %s of the first %s rows of the load", count, last)
			}
			n.whole()
		})
	}
}

// A volume on which WAL was replayed is not taken for the snapshot once more.
func TestASnapshotIsUsedOnce(t *testing.T) {
	source := primary(t)
	source.do("drop table elsewhere")
	source.do("drop tablespace fast")
	a := newArchive(t, source, "")
	n := newNodeOf(t, source.Programs)
	s, _ := a.snapshot(n.Data.Volume)
	a.archiveWAL()
	other := s
	other.SystemIdentifier = "1"
	if _, err := a.ofSnapshot(t.Context(), n, other, book.Target{}, nil); !errors.Is(err, book.ErrOutside) {
		t.Errorf("of the data of another database system is said: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if _, err := a.ofSnapshot(ctx, n, s, book.Target{}, func(step string, _ transfer.Progress) {
		if step == restore.StepRecover {
			cancel()
		}
	}); err == nil {
		t.Fatal("it was not cut off")
	}
	if _, err := a.ofSnapshot(t.Context(), n, s, book.Target{}, nil); !errors.Is(err, restore.ErrUsedUp) {
		t.Errorf("it goes on: %v", err)
	}
}

// PostgreSQL ends a backup with the session in which it began: what is cut after that counts for nothing.
func TestASessionThatEndsLeavesNothing(t *testing.T) {
	source := primary(t)
	a := newArchive(t, source, "")
	session, err := take.BeginSession(t.Context(), take.SessionOptions{Server: a.replication(), Term: a.term})
	must(t, err)
	defer session.Close()
	must(t, session.Holds(t.Context()))
	source.do("select pg_terminate_backend(pid) from pg_stat_activity where query like '%pg_is_in_recovery%' " +
		"and pid <> pg_backend_pid()")
	if err := session.Holds(t.Context()); err == nil {
		t.Error("the session holds")
	}
	if _, err := session.Stop(t.Context()); err == nil {
		t.Error("the backup was stopped in no session")
	}
}
