package backup_test

import (
	"context"
	"errors"
	"iter"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"toban.dev/internal/archive/book"
	"toban.dev/internal/archive/bucket"
	"toban.dev/internal/archive/format"
	"toban.dev/internal/archive/restore"
)

// copiedLater is an archive as another's program has copied it: all objects got there at one time.
type copiedLater struct {
	*memory
	at time.Time
}

func (c copiedLater) List(ctx context.Context, prefix string) iter.Seq2[bucket.Object, error] {
	return c.ListAfter(ctx, prefix, "")
}

func (c copiedLater) ListAfter(ctx context.Context, prefix, after string) iter.Seq2[bucket.Object, error] {
	return func(yield func(bucket.Object, error) bool) {
		for o, err := range c.memory.ListAfter(ctx, prefix, after) {
			o.Modified = c.at
			if !yield(o, err) {
				return
			}
		}
	}
}

// The archive has lost the row 4, and no leader has noted when its WAL was written. By its times a copy has WAL up to
// then; what was replayed last says that it has not.
func TestAMomentInAGapIsNotRestoredFromACopy(t *testing.T) {
	source := primary(t)
	a := newArchive(t, source, "")
	a.take()
	source.do("insert into t values (2)")
	before := source.clock()
	source.do("insert into t values (3)")
	source.do("select pg_switch_wal()")
	a.archiveWAL()
	source.do("insert into t values (4)")
	lost, in := source.ask("select pg_walfile_name(pg_current_wal_lsn())"), source.clock()
	for _, statement := range []string{"select pg_switch_wal()", "insert into t values (5)", "select pg_switch_wal()"} {
		source.do(statement)
	}
	a.archiveWAL()
	must(t, a.Delete(t.Context(), slices.DeleteFunc(a.names(format.FolderWAL),
		func(name string) bool { return !strings.Contains(name, lost) })...))

	restore := func(at time.Time) (*node, bool, error) {
		n, chosen := newNodeOf(t, source.Programs), false
		_, err := restore.Restore(t.Context(), restore.RestoreOptions{
			Bucket: copiedLater{a.memory, time.Now().Add(time.Hour)}, Decoder: a.decoder,
			Wanted: book.Wanted{Target: book.Target{Time: at}, Now: time.Now()}, Folder: n.Data.Volume,
			Run: n.Server.Run, Programs: n.Programs, Workers: 3, Log: n.log,
			Tablespaces: filepath.Join(filepath.Dir(n.Data.Volume), "spaces"),
			Chosen:      func(c book.Choice) { chosen = c.Window.Missing != nil }})
		return n, chosen, err
	}
	if _, chosen, err := restore(in); !chosen || !errors.Is(err, book.ErrOutside) ||
		!strings.Contains(err.Error(), "the archive has no WAL from") {
		t.Errorf("a moment in the gap (chosen %v): %v", chosen, err)
	}
	n, chosen, err := restore(before)
	if err != nil || !chosen {
		t.Fatalf("a moment before it (chosen %v): %v", chosen, err)
	}
	n.configure(nil)
	n.begin()
	n.ready()
	if rows := n.rows(); rows != "1,2" {
		t.Errorf("a moment before it has rows %s", rows)
	}
}
