package backup_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"toban.dev/internal/archive/book"
	"toban.dev/internal/archive/format"
	"toban.dev/internal/archive/restore"
	"toban.dev/internal/archive/take"
	"toban.dev/internal/ha"
	"toban.dev/internal/wal"
)

// leave has another server go on with the archive, as after a restore in place: along its timeline, which began at an
// LSN, on a branch of its own.
func (a *archive) leave(to *node, timeline wal.Timeline) (fork wal.LSN) {
	a.Helper()
	name := timeline.HistoryFile()
	history, err := os.ReadFile(filepath.Join(to.Data.Path(), "pg_wal", name))
	must(a, err)
	lines := strings.Split(strings.TrimSpace(string(history)), "\n")
	fork, err = wal.ParseLSN(strings.Fields(lines[len(lines)-1])[1])
	must(a, err)
	a.source, a.term, a.timeline = to, a.term+ha.RestoreTerms+1, timeline
	a.copiedUntil = wal.SegmentAt(timeline, fork, wal.SegmentSize).Start()
	sealed, err := a.encoder.Encode(history)
	must(a, err)
	must(a, a.Put(a.Context(), format.TermFolder(a.term)+a.encoder.Name(name), sealed))
	lineage := fmt.Sprintf(`{"term": %d, "starts": [{"term": 1, "lsn": "0/0", "timeline": 1}, `+
		`{"term": %d, "lsn": "%s", "timeline": %d}]}`, a.term, a.term, fork, timeline)
	must(a, a.Put(a.Context(), format.TermFolder(a.term)+format.FileLineage, []byte(lineage)))
	return fork
}

// waitForLaterName waits until the name of a backup that begins now sorts after another's: they begin with the second.
func waitForLaterName(id string) {
	const seconds = "20060102T150405Z"
	for time.Now().UTC().Format(seconds) <= id[:len(seconds)] {
		time.Sleep(10 * time.Millisecond)
	}
}

// A backup may begin before the leader has told the archive that its term has begun: it is taken to be of the term
// before, maybe of a branch that was left, until its own WAL is there. A restore of that branch must not begin with it.
func TestABackupIsOfTheTermThatWroteItsEnd(t *testing.T) {
	a := newArchive(t, primary(t), "")
	o := a.options()
	o.Term = a.term + 6 // as the archive had it
	taken, err := take.Take(t.Context(), o)
	must(t, err)
	c, err := book.Read(t.Context(), a)
	must(t, err)
	if taken.Term != a.term || len(c.Backups) != 1 || c.Backups[0].Term != a.term {
		t.Errorf("it is of term %d, in the archive %+v, and %d wrote its WAL", taken.Term, c.Backups, a.term)
	}
}

// Who goes on after a restore in place has all terms that have begun before that place, also one without WAL: the
// leader of term 3 had taken over the term history of that of term 2, and not its WAL.
func TestARestoreGoesOnFromAWholeTermHistory(t *testing.T) {
	a := newArchive(t, primary(t), "")
	a.term = 3
	must(t, a.Put(t.Context(), format.TermFolder(a.term)+format.FileLineage, []byte(`{"term": 3, "starts": [`+
		`{"term": 1, "lsn": "0/0", "timeline": 1}, {"term": 2, "lsn": "0/900", "timeline": 1},`+
		`{"term": 3, "lsn": "0/800", "timeline": 1}]}`)))
	a.take()
	n := newNodeOf(t, a.source.Programs)
	out, err := restore.Restore(t.Context(), restore.RestoreOptions{Bucket: a, Decoder: a.decoder,
		Wanted: book.Wanted{Now: time.Now()}, Folder: n.Data.Volume, Run: n.Server.Run,
		Programs: n.Programs, Workers: 3, Log: n.log,
		Tablespaces: filepath.Join(filepath.Dir(n.Data.Volume), "spaces")})
	must(t, err)
	want := []ha.TermStart{{Term: 1, Timeline: 1}, {Term: 2, LSN: 0x900, Timeline: 1},
		{Term: 3, LSN: 0x800, Timeline: 1}}
	if !slices.Equal(out.TermHistory, want) || out.Begins.Timeline != 2 {
		t.Errorf("it goes on after %v, at %+v", out.TermHistory, out.Begins)
	}
}

// The row 1 is in the first backup, 2 is before the place where the branches part. 3 and the second backup are of the
// one that was left, 100 is of the other.
func TestTheWayBackByHandToEachBranch(t *testing.T) {
	source := primary(t)
	a := newArchive(t, source, "")
	first := a.take()
	source.do("insert into t values (2)")
	at := source.ask("select clock_timestamp()")
	lsn, err := wal.ParseLSN(source.ask("select pg_current_wal_insert_lsn()"))
	must(t, err)
	waitForLaterName(first.ID) // the backup that follows is the last by its name
	source.do("insert into t values (3)")
	second := a.take()
	a.archiveWAL()
	r := a.restore(first, book.Target{LSN: lsn})
	r.finish()
	source.stop()
	fork := a.leave(r.node, 2)
	r.do("insert into t values (100)")
	a.archiveWAL()
	if second.ID < first.ID || fork < lsn {
		t.Fatalf("the backups are %s and %s, the branches part at %s, not %s", first.ID, second.ID, fork, lsn)
	}
	for name, c := range map[string]struct {
		variables []string
		rows      string
	}{
		"the newest":                      {nil, "1,2,100"},
		"the one that was left":           {[]string{"branch=1"}, "1,2,3"},
		"a moment of it":                  {[]string{"branch=1", "until=" + at}, "1,2"},
		"the newest by its name, to then": {[]string{fmt.Sprint("branch=", a.term), "until=" + at}, "1,2"},
	} {
		t.Run(name, func(t *testing.T) {
			in := *a
			in.T = t
			n := in.byHand("", c.variables...)
			if got := n.rows(); got != c.rows {
				t.Errorf("it has the rows %s, expected %s", got, c.rows)
			}
			stop := exec.Command(filepath.Join(n.Programs.Dir, "pg_ctl"), "-D", n.Data.Path(), "-m", "immediate",
				"stop")
			must(t, stop.Run())
		})
	}
	// What the script does is what a restore does.
	c, err := book.Read(t.Context(), a)
	must(t, err)
	choice, err := c.Choose(book.Wanted{Now: time.Now()})
	if err != nil || choice.Backup.ID != first.ID || choice.Branch != a.term {
		t.Errorf("the newest begins with %s on branch %d: %v", choice.Backup.ID, choice.Branch, err)
	}
	if choice, err = c.Choose(book.Wanted{Branch: 1}); err != nil || choice.Backup.ID != second.ID {
		t.Errorf("the branch that was left begins with %s: %v", choice.Backup.ID, err)
	}
	if _, err = c.Choose(book.Wanted{Target: book.Target{LSN: fork + 0x80}}); !errors.Is(err, book.ErrSeveral) {
		t.Errorf("an LSN of both is %v", err)
	}
}
