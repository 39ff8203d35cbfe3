package backup_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"toban.dev/internal/archive/book"
	"toban.dev/internal/archive/restore"
	"toban.dev/internal/archive/take"
)

// The clock of the Pod that took the second backup was behind that of the server: a transaction was committed while it
// was taken, and by the server's clock it stopped later than it says.
func TestABackupThatIsTooYoungIsNotTried(t *testing.T) {
	source := primary(t)
	a := newArchive(t, source, "")
	first := a.take()
	waitForLaterName(first.ID)
	var at time.Time
	o := a.options()
	o.At = func(point string) error {
		if point == "started" {
			at = source.clock()
			source.do("insert into t values (2)")
		}
		return nil
	}
	second, err := take.Take(t.Context(), o)
	must(t, err)
	source.do("insert into t values (3)")
	a.archiveWAL()
	second.Stopped = at.Add(-time.Millisecond)
	a.announce(second)

	restore := func(b string) (*node, []string, error) {
		n, chosen := newNodeOf(t, source.Programs), []string(nil)
		_, err := restore.Restore(t.Context(), restore.RestoreOptions{Bucket: a, Decoder: a.decoder,
			Wanted: book.Wanted{Target: book.Target{Time: at}, Backup: b, Now: time.Now()}, Folder: n.Data.Volume,
			Run: n.Server.Run, Programs: n.Programs, Workers: 3, Log: n.log,
			Tablespaces: filepath.Join(filepath.Dir(n.Data.Volume), "spaces"),
			Chosen:      func(c book.Choice) { chosen = append(chosen, c.Backup.ID) }})
		return n, chosen, err
	}
	n, chosen, err := restore("")
	if err != nil || len(chosen) != 2 || chosen[0] != second.ID || chosen[1] != first.ID {
		t.Fatalf("it has chosen %v: %v", chosen, err)
	}
	n.configure(nil)
	n.begin()
	n.ready()
	if rows := n.rows(); rows != "1" {
		t.Errorf("it has rows %s", rows)
	}
	if _, chosen, err = restore(second.ID); !errors.Is(err, book.ErrOutside) || len(chosen) != 1 {
		t.Errorf("where it is named, %v is chosen, and %v", chosen, err)
	}
}

// When a backup stopped is the later time of both clocks: nothing in it was committed after that.
func TestWhenABackupStoppedIsByTheServersClock(t *testing.T) {
	source := primary(t)
	a := newArchive(t, source, "")
	for name, c := range map[string]struct {
		ahead time.Duration
		err   error
		later bool
	}{
		"the server's is ahead": {time.Hour, nil, true}, "it is behind": {-time.Hour, nil, false},
		"it does not answer": {time.Hour, errors.New("no connection"), false},
	} {
		o := a.options()
		o.Clock = func(context.Context) (time.Time, error) { return time.Now().Add(c.ahead), c.err }
		b, err := take.Take(t.Context(), o)
		must(t, err)
		later := b.Stopped.After(time.Now().Add(time.Minute))
		if later != c.later || time.Since(b.Stopped) > time.Minute {
			t.Errorf("%s: it stopped at %s", name, b.Stopped)
		}
	}
	if at := source.clock(); time.Since(at).Abs() > time.Minute {
		t.Errorf("the server's clock is read as %s", at)
	}
}
