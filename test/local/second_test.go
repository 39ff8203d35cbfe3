package local

import (
	"os"
	"path/filepath"
	"testing"

	"toban.dev/internal/archive/bucket"
	"toban.dev/internal/protocol"
)

// copyToSecond copies the archive into a second store, as the Job NAME-copy does.
func (c *cluster) copyToSecond(folder string) (result protocol.CopyResult) {
	c.Helper()
	c.must(os.MkdirAll(folder, 0o755))
	c.own(folder)
	settings := c.taking()
	settings.Second = &bucket.Config{Folder: folder}
	c.work("second", settings, &result)
	return result
}

// The archive of a cluster is copied, and its first store is lost. A restore takes the copy as it takes any archive.
// What a Pod tells of a copy is in the result, and a run that comes after it copies only what is new.
func TestAClusterIsRestoredFromTheSecondStore(t *testing.T) {
	t.Parallel()
	source, _, at := history(t)
	second := filepath.Join(source.folder, "second")
	first := source.copyToSecond(second)
	if first.Until.IsZero() || first.LSN == "" || first.Objects == 0 || first.Problem != "" || len(first.Lost) > 0 {
		t.Fatalf("it says %+v", first)
	}
	source.exec(source.leader(), "insert into kept values (50)")
	source.awaitArchived(source.leader())
	if again := source.copyToSecond(second); again.Objects == 0 || again.Objects >= first.Objects ||
		again.Until.Before(first.Until) {
		t.Errorf("of what is new it says %+v, and the first time %+v", again, first)
	}
	source.must(os.RemoveAll(filepath.Join(source.folder, "bucket")))
	c := newCluster(t, 1)
	settings := c.restoring(source, protocol.RestoreTarget{Time: at})
	settings.Bucket = bucket.Config{Folder: second}
	result, err := c.restore(settings)
	c.must(err)
	if result.Backup == "" || result.Commit.After(at) {
		t.Errorf("it says %+v", result)
	}
	c.start(c.names()...)
	c.await("db-0", "primary", primary)
	c.awaitQuery("db-0", keptRows, "1,2,3")
}
