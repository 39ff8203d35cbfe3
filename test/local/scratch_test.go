package local

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// fillWhen takes all room of a volume but some MB when a file is there, until the returned function is called.
func (c *cluster) fillWhen(volume, there string, leave int64) (stop func()) {
	done := make(chan struct{})
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-done:
				return
			default:
			}
			if _, err := os.Stat(filepath.Join(volume, there)); err == nil {
				break
			}
			time.Sleep(time.Millisecond)
		}
		file, err := os.Create(filepath.Join(volume, "filling"))
		if err != nil {
			c.Errorf("fill the volume: %v", err)
			return
		}
		defer file.Close()
		for err = unix.ENOSPC; errors.Is(err, unix.ENOSPC); { // others take room too
			var stat unix.Statfs_t
			if err = unix.Statfs(volume, &stat); err != nil {
				break
			}
			room := int64(stat.Bavail)*stat.Bsize - leave<<20
			if room <= 0 {
				return
			}
			err = unix.Fallocate(int(file.Fd()), 0, 0, room)
		}
		if err != nil {
			c.Errorf("fill the volume: %v", err)
		}
	}()
	return func() { close(done); <-stopped }
}

// A scratch volume without room, from the beginning or after a while: the verification says that it is the
// volume, and not the archive.
func TestLongAScratchVolumeWithoutRoom(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("it takes root to make a small volume")
	}
	t.Parallel()
	c, _ := archived(t)
	leader := c.leader()
	c.fillTable(12000) // 100 MB
	c.awaitArchived(leader)
	taken := c.takeBackup()
	for range 4 { // what is replayed goes when the server that has written it had a checkpoint
		c.exec(leader, fmt.Sprintf(noise, 6000), "checkpoint")
	}
	c.awaitArchived(leader)
	// The system's words, PostgreSQL's for it, or PostgreSQL's for a page of which only a part had room.
	const full = `[nN]o space left on device|wrote only \d+ of \d+ bytes`
	for name, v := range map[string]struct {
		size, when, want string
	}{
		"from the beginning":     {"100m", "", "the volume has no room for the data: "},
		"while it is fetched":    {"480m", "scratch/data/backup_label", full},
		"while WAL is replayed":  {"480m", "scratch/data/postmaster.pid", full},
		"with room for all that": {"480m", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			in := *c
			in.T = t
			volume := filepath.Join(c.folder, strings.ReplaceAll(name, " ", "-"))
			in.smallVolume(volume, v.size)
			in.own(volume)
			stop := func() {}
			if v.when != "" {
				stop = in.fillWhen(volume, v.when, 2)
			}
			result, err := in.verifyBackup(taken.ID, volume)
			stop()
			if (err == nil) != (v.want == "") || !regexp.MustCompile(v.want).MatchString(result.Error) ||
				len(result.Objects) > 0 {
				t.Errorf("%v: %+v", err, result)
			}
			t.Log(result.Error)
			if v.size == "100m" && !strings.Contains(result.Error, "enlarge it (spec.backup.verification.size)") {
				t.Error("it does not say what to do")
			}
		})
	}
	// The archive goes on meanwhile, and nothing in it has changed.
	c.awaitArchived(leader)
	if s := c.archiveStatus(leader); s.Reason != "" || s.Gap != "" {
		t.Errorf("the archive is %+v", s)
	}
}
