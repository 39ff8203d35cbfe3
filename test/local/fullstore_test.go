package local

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"filippo.io/age"
	"golang.org/x/sys/unix"

	"toban.dev/internal/archive/book"
	"toban.dev/internal/archive/bucket"
	"toban.dev/internal/naming"
	"toban.dev/internal/protocol"
	"toban.dev/internal/work/find"
)

// fillUp leaves so many bytes on a volume at most.
func (c *cluster) fillUp(path string, left uint64) {
	c.Helper()
	var stat unix.Statfs_t
	c.must(unix.Statfs(path, &stat))
	free := stat.Bavail * uint64(stat.Bsize)
	if free <= left {
		return
	}
	filler, err := os.CreateTemp(path, "filler")
	c.must(err)
	c.must(unix.Fallocate(int(filler.Fd()), 0, 0, int64(free-left)))
	c.must(filler.Close())
}

// retain makes room, as the Job NAME-retention does.
func (c *cluster) retain(count int) (result protocol.BackupResult) {
	c.Helper()
	settings := c.taking()
	settings.Keep.Count = count
	c.work("retain", settings, &result)
	return result
}

// A store fills up: the archive says so, a backup that fails leaves nothing in the way, what is not to be kept is
// removed though no backup can be taken, and then all goes on without a gap.
func TestAStoreThatIsFull(t *testing.T) {
	t.Parallel()
	c := formed(t, 3)
	store := filepath.Join(c.folder, "bucket")
	c.smallVolume(store, "256m")
	c.own(store)
	c.config.Archive = &protocol.Archive{Bucket: bucket.Config{Folder: store}, Path: "test/db", Owner: "uid-1"}
	c.sync()
	leader := c.leader()
	c.exec(leader, "create table load (n int, noise bytea) with (autovacuum_enabled = off)",
		"alter table load alter noise set storage external")
	c.awaitArchived(leader)
	first, second, third := c.takeBackup(), c.takeBackup(), c.takeBackup()
	c.fillUp(store, 1<<20)
	c.exec(leader, fmt.Sprintf(noise, 300))
	c.await(leader, "out of room", func(s protocol.Status) bool {
		return s.Archive != nil && s.Archive.Reason == protocol.ArchiveFull
	})
	archive := bucket.OpenFolder(filepath.Join(store, "test/db"))
	if failed, err := c.tryBackup(c.taking()); err == nil || !strings.Contains(failed.Error, "no space left") {
		t.Errorf("a backup ends with %v: %+v", err, failed)
	}
	catalogue, err := book.Read(t.Context(), archive)
	c.must(err)
	if len(catalogue.Backups) != 3 || len(catalogue.Unfinished) > 0 {
		t.Errorf("there are %d backups, and what is left of %v", len(catalogue.Backups), catalogue.Unfinished)
	}
	if kept := c.retain(7); len(kept.Removed) > 0 {
		t.Errorf("removed is what is to be kept: %v", kept.Removed)
	}
	if made := c.retain(2); len(made.Removed) != 1 || made.Removed[0] != first.ID {
		t.Errorf("removed is %v, want %s", made.Removed, first.ID)
	}
	c.awaitArchived(leader)
	// Where there is room for half a backup at most, the next one makes the rest by itself.
	c.fillUp(store, uint64(third.Stored)/2)
	settings := c.taking()
	settings.Keep.Count = 1
	last, err := c.tryBackup(settings)
	if err != nil || !slices.Equal(last.Removed, []string{second.ID, third.ID}) {
		t.Fatalf("the next backup ends with %v: %+v", err, last)
	}
	c.awaitArchived(leader)
	catalogue, err = book.Read(t.Context(), archive)
	c.must(err)
	if w, ok := catalogue.Window(catalogue.NewestTermHistory()); !ok || len(w.Backups) != 1 ||
		w.Backups[0].ID != last.ID || w.Missing != nil {
		t.Errorf("what can be restored is %+v", w)
	}
}

// The last backup of a SampleDB counts when it was read with the key. One that does not fit is found before the copy.
func TestTheLastBackupIsReadWithTheKey(t *testing.T) {
	t.Parallel()
	c := formed(t, 1)
	c.archiveHere()
	key, recipient := c.key()
	c.config.Archive.Recipient = recipient
	c.sync()
	c.awaitArchived("db-0")
	last := func(key string) (protocol.BackupResult, error) {
		return c.tryBackup(c.taking(),
			"--from-primary", "--full", "--prove", "--trigger", naming.TriggerFinal, "--key", key)
	}
	wrong, err := age.GenerateX25519Identity()
	c.must(err)
	other := c.volume("another")
	file := filepath.Join(other, naming.KeyAge)
	c.must(os.WriteFile(file, []byte(wrong.String()+"\n"), 0o600))
	c.own(file)
	for name, folder := range map[string]string{"another key": other, "no key": c.volume("none")} {
		result, err := last(folder)
		if err == nil || !strings.Contains(result.Error, "the key of the archive") || result.Instance != "" {
			t.Errorf("with %s: %v, %+v", name, err, result)
		}
	}
	result, err := last(key)
	if err != nil || result.ID == "" {
		t.Errorf("with the key: %v, %+v", err, result)
	}
	archive := bucket.OpenFolder(filepath.Join(c.config.Archive.Bucket.Folder, "test/db"))
	catalogue, err := book.Read(t.Context(), archive)
	c.must(err)
	if len(catalogue.Backups) != 1 || catalogue.Backups[0].ID != result.ID {
		t.Errorf("there are the backups %v", catalogue.Backups)
	}
	// Who has nothing but the store and the key finds it there, with what brings the SampleDB back.
	settings, err := json.Marshal(protocol.FindSettings{
		Bucket: c.config.Archive.Bucket, Folder: "test", Encrypted: true,
	})
	c.must(err)
	var told bytes.Buffer
	c.must(find.Run(t.Context(), find.Options{Settings: string(settings), Key: key, Out: &told}))
	if text := told.String(); !strings.Contains(text, `"path":"test/db","id":"`+result.ID+`"`) ||
		!strings.Contains(text, `"sampledb":{"kind":"SampleDB"}`) || !strings.HasSuffix(text, `{"end":true}`+"\n") {
		t.Errorf("found is\n%s", text)
	}
}
