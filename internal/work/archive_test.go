package work

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"toban.dev/internal/agent/agenttest"
	"toban.dev/internal/archive/book"
	"toban.dev/internal/archive/bucket"
	"toban.dev/internal/archive/format"
	"toban.dev/internal/archive/keep"
	"toban.dev/internal/archive/take"
	"toban.dev/internal/ha"
	"toban.dev/internal/naming"
	"toban.dev/internal/wal"
	"toban.dev/internal/work/pod"
)

// openVolume opens the archive's server as somebody with an identity does.
func openVolume(t *testing.T, authority, address, identity string) bucket.Bucket {
	t.Helper()
	own, err := pod.NewIssuer(authority, identity)
	if err != nil {
		t.Fatal(err)
	}
	ca, err := os.ReadFile(filepath.Join(authority, naming.KeyCA))
	if err != nil {
		t.Fatal(err)
	}
	config, err := pod.StoreConfig(t.Context(), bucket.Config{
		Volume: &bucket.Volume{URL: "https://" + address, Identity: naming.IdentityArchive}, CA: string(ca),
	}, own, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	b, err := bucket.Open(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// An instance and a backup write to the SampleDB's own archive, and only read what else lies on the volume.
func TestTheServerOfAVolumeLetsItsOwnWriteToTheirArchive(t *testing.T) {
	authority := agenttest.Folder(t, agenttest.NewAuthority(t))
	address, probe, folder := agenttest.FreeAddress(t), agenttest.FreeAddress(t), t.TempDir()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- ServeArchive(ctx, ArchiveOptions{
			Folder: folder, Authority: authority, Path: "shop/x-0b5c", Listen: address, Probe: probe,
		})
	}()
	waitReady(t, "http://"+probe+"/readyz")
	instance := openVolume(t, authority, address, naming.IdentityInstance)
	if err := instance.Create(t.Context(), "shop/x-0b5c/archive.json", []byte("{}")); err != nil {
		t.Fatal(err)
	}
	if err := instance.Put(t.Context(), "shop/x-0b5d/archive.json", []byte("{}")); !errors.Is(err, bucket.ErrDenied) {
		t.Errorf("writing to another archive: %v", err)
	}
	for path, mine := range map[string]bool{
		"shop/x-0b5c-pg18/archive.json": true, "shop/x-0b5d-pg18/archive.json": false, "shop/x-0b5c-pgx/a": false,
		"shop/x-0b5c-old/a": false, "shop/y/x-0b5c-pg18/a": false,
	} {
		if err := instance.Put(t.Context(), path, []byte("{}")); errors.Is(err, bucket.ErrDenied) == mine {
			t.Errorf("writing %s: %v, expected that it may: %v", path, err, mine)
		}
	}
	if err := os.MkdirAll(filepath.Join(folder, "shop/x-0aaa"), 0o700); err != nil {
		t.Fatal(err)
	}
	backup := openVolume(t, authority, address, naming.IdentityBackup)
	r, err := backup.Get(t.Context(), "shop/x-0b5c/archive.json")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if text, err := io.ReadAll(r); err != nil || string(text) != "{}" {
		t.Errorf("it reads %q, %v", text, err)
	}
	if _, err := backup.Get(t.Context(), "shop/x-0aaa/archive.json"); !errors.Is(err, bucket.ErrNotExist) {
		t.Errorf("reading what a former SampleDB has left: %v", err)
	}
	if _, err := openVolume(t, authority, address, naming.IdentityInit).Get(t.Context(),
		"shop/x-0b5c/archive.json"); !errors.Is(err, bucket.ErrDenied) {
		t.Errorf("the init Job reads: %v", err)
	}
	stop()
	if err := <-ended; err != nil {
		t.Errorf("it ends with %v", err)
	}
}

func waitReady(t *testing.T, url string) {
	t.Helper()
	for range 100 {
		answer, err := http.Get(url) //nolint:noctx // of a test
		if err == nil {
			_ = answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				return
			}
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatal("the server does not become ready")
}

// As long as a backup.json is there, all of its backup must be: it goes before the rest, and alone.
func TestObjectsAreDeletedInTheirOrder(t *testing.T) {
	names := []string{
		"base/a/backup.json", "base/a/1", "base/a/2", "base/b/backup.json", "base/b/1", "wal/00000001/x",
		"wal/00000001/lineage.json",
	}
	want := [][]string{{names[0]}, {names[1], names[2]}, {names[3]}, {names[4]}, {names[5]}, {names[6]}}
	if got := keep.Batches(names); !slices.EqualFunc(got, want, slices.Equal[[]string]) {
		t.Errorf("got %v", got)
	}
	many := slices.Repeat([]string{"wal/x"}, 2*keep.DeleteBatch+1)
	if got := keep.Batches(many); len(got) != 3 || len(slices.Concat(got...)) != len(many) {
		t.Errorf("%d batches", len(got))
	}
	if got := keep.Batches(nil); got != nil {
		t.Errorf("got %v", got)
	}
}

func TestABackupMustEndOnTheTimelineThatIsArchived(t *testing.T) {
	history := []ha.TermStart{{Term: 1, LSN: 0, Timeline: 1}, {Term: 5, LSN: 1000, Timeline: 2}}
	for name, c := range map[string]struct {
		lsn      wal.LSN
		timeline wal.Timeline
		term     uint64
	}{
		"before the switch":                  {900, 1, 1},
		"at the switch, on the old one":      {1000, 1, 1},
		"behind the switch":                  {1001, 2, 5},
		"behind the switch, on the old one":  {1001, 1, 0},
		"on a timeline that nobody has seen": {1001, 3, 0},
	} {
		t.Run(name, func(t *testing.T) {
			if term, err := termOf(history, c.lsn, c.timeline); term != c.term || (err == nil) != (c.term != 0) {
				t.Errorf("it says %d, %v", term, err)
			}
		})
	}
}

// A parent is chosen when a backup begins, which may be before the archive knows that the database was restored in
// place.
func TestAParentOfTheBranchThatWasLeftIsNone(t *testing.T) {
	first := ha.TermStart{Term: 1, Timeline: 1}
	history := []ha.TermStart{first, {Term: 1002, LSN: 1000, Timeline: 2}}
	c := book.Catalogue{Terms: map[uint64]*book.Term{
		1: {TermHistory: []ha.TermStart{first}}, 1002: {TermHistory: history},
	}}
	for name, b := range map[string]*format.Backup{
		"a full backup":           nil,
		"from before they parted": {Term: 1, StopLSN: 900, StopTimeline: 1},
		"of this branch":          {Term: 1002, StopLSN: 1100, StopTimeline: 2},
	} {
		if err := mayContinue(c, b, history); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	other := &format.Backup{ID: "other", Term: 1, StopLSN: 1100, StopTimeline: 1}
	if err := mayContinue(c, other, history); !errors.Is(err, take.ErrNoIncrement) {
		t.Errorf("of the branch that was left: %v", err)
	}
}

// A database was restored in place twice, to the same moment. The branch that was left has a timeline of the same
// number as the one in use, and WAL beyond the end of the backup. That is none of the backup's.
func TestABackupAwaitsTheWALOfItsOwnBranch(t *testing.T) {
	archive := bucket.OpenFolder(t.TempDir())
	fork, end := wal.LSN(wal.SegmentSize+0x100), wal.LSN(wal.SegmentSize+0x900)
	put := func(name, content string) {
		t.Helper()
		if err := archive.Put(t.Context(), name, []byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	segment := wal.SegmentAt(2, fork, wal.SegmentSize).String() + ".zst"
	for _, term := range []uint64{1002, 2003} {
		put(format.TermFolder(term)+format.FileLineage, fmt.Sprintf(`{"term": %d, "starts": [{"term": 1, "lsn": "0/0",
			"timeline": 1}, {"term": %[1]d, "lsn": %q, "timeline": 2}]}`, term, fork))
	}
	put(format.TermFolder(1002)+segment, "WAL")
	run := &taking{Pod: pod.Pod{Log: slog.New(slog.DiscardHandler)}, archive: archive}
	const found = "and it is not known that the primary does" // nobody can be asked
	for _, archived := range []bool{false, true} {
		if archived {
			put(format.TermFolder(2003)+segment, "WAL")
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		term, err := run.awaitWAL(ctx, nil, 2, end)
		cancel()
		if step := run.Progress.Get().Step; err == nil || strings.Contains(step, found) != archived {
			t.Errorf("its WAL is archived: %v; it says term %d, %v; %s", archived, term, err, step)
		}
	}
}

// Where a copy was in vain, because its parent was of the branch that was left, the primary is not copied in vain too:
// no instance is asked for anything.
func TestNothingIsCopiedThatCanNotContinueItsParent(t *testing.T) {
	archive := bucket.OpenFolder(t.TempDir())
	fill(t, archive, 1)
	run := &taking{archive: archive}
	catalogue, err := book.Read(t.Context(), archive)
	if err != nil {
		t.Fatal(err)
	}
	parent := &catalogue.Backups[0]
	if _, err := run.take(t.Context(), true, parent); err == nil || errors.Is(err, take.ErrNoIncrement) {
		t.Errorf("on the parent's branch: %v", err) // there is no instance
	}
	fork, folder := parent.StopLSN-1, format.TermFolder(1002)
	for name, content := range map[string]string{
		format.FileLineage: fmt.Sprintf(`{"term": 1002, "starts": [{"term": 1, "lsn": "0/0", "timeline": 1},
			{"term": 1002, "lsn": %q, "timeline": 2}]}`, fork),
		wal.SegmentAt(2, fork, wal.SegmentSize).String() + ".zst": "WAL",
	} {
		if err := archive.Put(t.Context(), folder+name, []byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := run.take(t.Context(), true, parent); !errors.Is(err, take.ErrNoIncrement) {
		t.Errorf("on another branch: %v", err)
	}
}
