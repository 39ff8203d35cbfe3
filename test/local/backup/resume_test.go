package backup_test

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"toban.dev/internal/archive/book"
	"toban.dev/internal/archive/bucket"
	"toban.dev/internal/archive/format"
	"toban.dev/internal/archive/restore"
	"toban.dev/internal/archive/transfer"
)

// counting is a bucket that counts what is read of it by the names of the objects, and has each read seen before.
type counting struct {
	bucket.Bucket
	before func(ctx context.Context, name string) error
	mutex  sync.Mutex
	bytes  map[string]int64
}

func (c *counting) Get(ctx context.Context, name string) (io.ReadCloser, error) {
	if c.before != nil {
		if err := c.before(ctx, name); err != nil {
			return nil, err
		}
	}
	r, err := c.Bucket.Get(ctx, name)
	if err != nil {
		return nil, err
	}
	content, err := io.ReadAll(r)
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.bytes[name] += int64(len(content))
	return io.NopCloser(bytes.NewReader(content)), err
}

// read is how many bytes were read of a backup's pieces.
func (c *counting) read(b format.Backup) (sum int64) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	for _, p := range b.Pieces {
		sum += c.bytes[format.FolderBase+b.ID+"/"+p.Name]
	}
	return sum
}

// restoreInto is a whole restore into the volume of a node.
func (a *archive) restoreInto(
	ctx context.Context, n *node, from bucket.Bucket, progress func(string, transfer.Progress),
) error {
	_, err := restore.Restore(ctx, restore.RestoreOptions{Bucket: from, Decoder: a.decoder,
		Wanted: book.Wanted{Now: time.Now()}, Folder: n.Data.Volume, Run: n.Server.Run, Programs: n.Programs,
		Tablespaces: filepath.Join(filepath.Dir(n.Data.Volume), "spaces"), Workers: 3, Log: n.log, Progress: progress})
	return err
}

// A restore that is cut off, while it fetches and while it replays, goes on where it was: pieces that are on the volume
// as they were are not read again. That another backup was taken meanwhile changes nothing.
func TestARestoreThatIsCutOffGoesOn(t *testing.T) {
	source := primary(t)
	a := newArchive(t, source, newKey(t))
	b := a.take()
	source.do("insert into t values (2); create table later as select generate_series(1, 1000) i; " +
		"select pg_switch_wal()")
	a.archiveWAL()
	n := newNodeOf(t, source.Programs)

	first := a.cutOffUnpacking(n, b)
	source.do("drop table later; insert into t values (3); select pg_switch_wal()")
	a.take()
	second := a.cutOffReplaying(n)
	third := &counting{Bucket: a, bytes: map[string]int64{}}
	must(t, a.restoreInto(t.Context(), n, third, nil))

	all := int64(0)
	for _, p := range b.Pieces {
		all += p.Size
	}
	t.Logf("of %d bytes, %d were read until it was cut off, then %d, and %d after the replay was", all, first.read(b),
		second.read(b), third.read(b))
	if read := first.read(b) + second.read(b); first.read(b) == 0 || second.read(b) == 0 || read != all {
		t.Errorf("of %d bytes it has read %d and %d", all, first.read(b), second.read(b))
	}
	if read := third.read(b); read == 0 || read >= all { // the server has changed some
		t.Errorf("of %d bytes it has read %d after it was cut off in the replay", all, read)
	}
	want, rows := source.contents(), source.rows()
	n.configure(nil)
	n.begin()
	n.ready()
	if n.contents() != want || n.rows() != rows {
		t.Errorf("it has rows %s and %s\nexpected %s and %s", n.rows(), n.contents(), rows, want)
	}
}

// cutOffUnpacking restores until two pieces are unpacked, and no further.
func (a *archive) cutOffUnpacking(n *node, b format.Backup) *counting {
	a.Helper()
	ctx, cancel := context.WithCancel(a.Context())
	defer cancel()
	var allowed []string
	for _, p := range b.Pieces {
		if strings.HasPrefix(p.Name, "base.tar.") && len(allowed) < 2 {
			allowed = append(allowed, p.Name)
		}
	}
	from := &counting{Bucket: a, bytes: map[string]int64{}}
	from.before = func(_ context.Context, name string) error {
		if !strings.Contains(name, ".tar.") || slices.Contains(allowed, filepath.Base(name)) {
			return nil
		}
		for end := time.Now().Add(deadline); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
			noted, err := os.ReadFile(filepath.Join(n.Data.Volume, "unpacked.jsonl"))
			if err != nil || bytes.Count(noted, []byte("\n")) >= len(allowed) {
				break
			}
		}
		cancel()
		return context.Canceled
	}
	if err := a.restoreInto(ctx, n, from, nil); err == nil {
		a.Fatal("it was not cut off")
	}
	return from
}

// cutOffReplaying restores until the server replays.
func (a *archive) cutOffReplaying(n *node) *counting {
	a.Helper()
	ctx, cancel := context.WithCancel(a.Context())
	defer cancel()
	from := &counting{Bucket: a, bytes: map[string]int64{}}
	if err := a.restoreInto(ctx, n, from, func(step string, _ transfer.Progress) {
		if step == restore.StepRecover {
			cancel()
		}
	}); err == nil {
		a.Fatal("it was not cut off")
	}
	return from
}

// So does one of a chain, as far as it can: what has been put together is not what was fetched.
func TestARestoreOfAChainThatIsCutOffGoesOn(t *testing.T) {
	source := primaryOf(t, release(t, 17), map[string]string{"summarize_wal": "on"})
	a := newArchive(t, source, "")
	full := a.take()
	source.do("insert into t values (2); create table later as select generate_series(1, 1000) i; checkpoint")
	a.takeSince(&full)
	source.do("insert into t values (3); select pg_switch_wal()")
	a.archiveWAL()
	n := newNodeOf(t, source.Programs)

	first := a.cutOffUnpacking(n, full)
	second := a.cutOffReplaying(n)
	must(t, a.restoreInto(t.Context(), n, a, nil))
	all := int64(0)
	for _, p := range full.Pieces {
		all += p.Size
	}
	if first.read(full) == 0 || first.read(full)+second.read(full) != all {
		t.Errorf("of %d bytes it has read %d and %d", all, first.read(full), second.read(full))
	}
	want, rows := source.contents(), source.rows()
	n.configure(nil)
	n.begin()
	n.ready()
	if n.contents() != want || n.rows() != rows {
		t.Errorf("it has rows %s and %s\nexpected %s and %s", n.rows(), n.contents(), rows, want)
	}
}
