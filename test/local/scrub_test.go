package local

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"toban.dev/internal/protocol"
)

// scrubbing verifies a backup, and has the rest of the archive read again from where the last has stopped.
func (c *cluster) scrubbing(id, key string, last protocol.ScrubState) protocol.VerifyResult {
	c.Helper()
	settings := c.taking()
	settings.Verify = protocol.Verification{
		Major: c.config.Major, Encrypted: true, Scrub: &protocol.Scrub{Days: 1, Last: last},
	}
	volume := c.volume("scratch")
	var result protocol.VerifyResult
	c.work("verify", settings, &result, "--volume", volume, "--backup", id, "--key", key)
	c.must(os.RemoveAll(volume))
	if result.Scrub == nil || result.Scrub.Error != "" || result.Error != "" {
		c.Fatalf("it says %+v", result)
	}
	return result
}

// wholeSegments writes until there are so many segments, or more, that were archived in one piece, and returns them. On
// a machine that is slow to fill a segment, it is archived in parts.
func (c *cluster) wholeSegments(folder string, want int) (segments []string) {
	c.Helper()
	for end := time.Now().Add(deadline); len(segments) < want; {
		if time.Now().After(end) {
			c.Fatalf("there are %v, want %d", segments, want)
		}
		// Segments that are left early have zeros behind.
		c.exec("db-0", "create table if not exists t (n int)", "insert into t select generate_series(1, 1000)",
			"select pg_switch_wal()")
		c.awaitArchived("db-0")
		var err error
		segments, err = filepath.Glob(filepath.Join(folder, "wal/*/????????????????????????.zst.age"))
		c.must(err)
	}
	return segments
}

// What a real server has written is read as what it wrote, also by its stamps; what is changed in an older backup, and
// WAL in the place of other WAL from before the newest, is found, and the newest backup is verified all the same.
func TestAVerificationReadsTheRestOfTheArchive(t *testing.T) {
	t.Parallel()
	c := formed(t, 1)
	folder := c.archiveHere()
	key, recipient := c.key()
	c.config.Archive.Recipient = recipient
	c.sync()
	c.awaitArchived("db-0")
	first := c.takeBackup()
	segments := c.wholeSegments(folder, 2)
	second := c.takeBackup()
	result := c.scrubbing(second.ID, key, protocol.ScrubState{})
	if s := result.Scrub; len(s.Broken) > 0 || s.Objects < 6 || s.Bytes != s.Total || s.Whole.IsZero() {
		t.Fatalf("of a whole archive it says %+v", s)
	}
	piece := filepath.Join(folder, "base", first.ID, "base.tar.00000.zst.age")
	text, err := os.ReadFile(piece)
	c.must(err)
	text[len(text)/2] ^= 1
	c.must(os.WriteFile(piece, text, 0o600))
	text, err = os.ReadFile(segments[0])
	c.must(err)
	c.must(os.WriteFile(segments[1], text, 0o600))
	for _, name := range []string{piece, segments[1]} {
		c.own(name)
	}
	last := *result.Scrub
	last.At = last.At.AddDate(0, 0, -1) // so that all of it is due again
	result = c.scrubbing(second.ID, key, last)
	var found []string
	for _, o := range result.Scrub.Broken {
		found = append(found, filepath.Join(folder, o.Name))
		if o.Newest || !strings.HasPrefix(o.Problem, "altered") {
			t.Errorf("it says %+v", o)
		}
	}
	if len(found) != 2 || found[0] == found[1] || !strings.Contains(strings.Join(found, " "), piece) ||
		!strings.Contains(strings.Join(found, " "), segments[1]) {
		t.Errorf("it has found %+v", result.Scrub.Broken)
	}
}
