package local

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"toban.dev/internal/archive/book"
	"toban.dev/internal/archive/bucket"
)

// damage changes a byte in the first page of a table on one instance.
func (c *cluster) damage(name, table string) (file string) {
	c.Helper()
	path, err := c.query(name, "select pg_relation_filepath('"+table+"')")
	c.must(err)
	f, err := os.OpenFile(filepath.Join(c.folder, name, "volume/data", path), os.O_RDWR, 0)
	c.must(err)
	defer f.Close()
	_, err = f.WriteAt([]byte("damaged"), 8000)
	c.must(err)
	return path
}

// A corrupt page on a standby costs no backup: another standby is copied, or the primary, and the file, the block and
// the instance are named. Where all are damaged, there is none.
func TestACorruptPageFailsNoBackup(t *testing.T) {
	t.Parallel()
	c := formed(t, 3)
	folder := c.archiveHere()
	leader := c.leader()
	c.exec(leader, "create table kept with (autovacuum_enabled = off) as select generate_series(1, 1000) n")
	c.awaitArchived(leader)
	c.settle()
	damaged := map[string]bool{}
	expect := func(when string) (copied string) {
		t.Helper()
		result := c.takeBackup()
		for _, name := range c.names() {
			if c.copied(name) {
				copied = name
			}
		}
		if damaged[copied] || copied == "" || copied == leader != (len(damaged) == 2) {
			t.Errorf("%s, %s is copied", when, copied)
		}
		if n := strings.Count(result.Warning, "could not be copied: "); n != len(damaged) {
			t.Errorf("%s, it speaks of %d: %q", when, n, result.Warning)
		}
		return copied
	}
	first := expect("with none damaged") // the one that is preferred
	file := c.damage(first, "kept")
	damaged[first] = true
	second := expect("with a damaged standby")
	c.damage(second, "kept")
	damaged[second] = true
	expect("with two damaged standbys")
	c.damage(leader, "kept")
	result, err := c.tryBackup(c.taking())
	page := "checksum verification failed in file \"./" + file + "\", block 0"
	for _, words := range []string{c.host(0), c.host(1), c.host(2), page} {
		if err == nil || !strings.Contains(result.Error, words) {
			t.Errorf("with all damaged, it does not speak of %s: %v, %q", words, err, result.Error)
		}
	}
	catalogue, err := book.Read(t.Context(), bucket.OpenFolder(folder))
	c.must(err)
	if len(catalogue.Backups) != 3 || len(catalogue.Unfinished) != 0 {
		t.Errorf("there are %d backups, and what is left of %v", len(catalogue.Backups), catalogue.Unfinished)
	}
}
