package work

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"toban.dev/internal/archive/book"
	"toban.dev/internal/archive/bucket"
	"toban.dev/internal/archive/format"
	"toban.dev/internal/ha"
	"toban.dev/internal/protocol"
	"toban.dev/internal/wal"
	"toban.dev/internal/work/pod"
)

// A database was restored in place: the branch that was left had WAL of two segments, the other has the third.
func TestWhatABackupSaysCanBeRestored(t *testing.T) {
	at := time.Date(2026, 11, 20, 3, 0, 0, 500, time.UTC)
	left := []ha.TermStart{{Term: 1, Timeline: 1}}
	fork := wal.LSN(2*wal.SegmentSize + 0x100)
	c := book.Catalogue{Terms: map[uint64]*book.Term{
		1:    {TermHistory: left},
		1002: {TermHistory: append(slices.Clone(left), ha.TermStart{Term: 1002, LSN: fork, Timeline: 2})},
	}, Backups: []format.Backup{{
		ID: "b", Type: format.TypeFull, Term: 1, StartLSN: wal.SegmentSize + 0x28,
		StopLSN: wal.SegmentSize + 0x100, Stopped: at,
	}}}
	for _, w := range []struct {
		term   uint64
		number uint64
	}{{1, 1}, {1, 2}, {1002, 2}, {1002, 3}} {
		timeline := map[uint64]wal.Timeline{1: 1, 1002: 2}[w.term]
		s := wal.Segment{Timeline: timeline, Number: w.number, Size: wal.SegmentSize}
		term := c.Terms[w.term]
		term.WAL = append(term.WAL, book.WAL{
			Piece:  format.Piece{Segment: s, To: wal.SegmentSize},
			Object: bucket.Object{Name: s.String(), Modified: at.Add(time.Duration(w.term) * time.Hour)},
		})
	}
	got := windows(c)
	if len(got) != 2 || got[0].Branch != 1002 || got[1].Branch != 1 {
		t.Fatalf("it says %+v", got)
	}
	// What is shown must be there: the first second begins after the backup ended, the last ends before the WAL does.
	if w := got[1]; w.Earliest.Format(time.RFC3339Nano) != "2026-11-20T03:00:01Z" || w.LatestLSN != "0/3000000" ||
		w.Latest.Format(time.RFC3339Nano) != "2026-11-20T04:00:00Z" || w.EarliestLSN != "0/1000100" {
		t.Errorf("of the branch that was left it says %+v", w)
	}
	if w := got[0]; w.EarliestLSN != fork.String() || !w.Latest.IsZero() || w.LatestLSN != "" ||
		w.Earliest.Before(at.Add(1002*time.Hour)) {
		t.Errorf("of the one that goes on it says %+v", w)
	}
}

// settingsFile is a file with the settings of a backup's Pod.
func settingsFile(t *testing.T, settings protocol.BackupSettings) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "backup.json")
	text, err := json.Marshal(settings)
	if err == nil {
		err = os.WriteFile(file, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// The settings may have changed since the backup began.
func TestRetentionGoesByTheSettingsAsTheyAre(t *testing.T) {
	file := settingsFile(t, protocol.BackupSettings{
		Keep: protocol.Retention{Count: 3, Days: 2, Pinned: []string{"a"}, InUse: []string{"b"}},
	})
	run := &taking{Pod: pod.Pod{Options: pod.Options{Settings: file}}}
	p, _, err := run.policy()
	if err != nil || p.Count != 3 || p.Age != 48*time.Hour || !slices.Equal(p.Pinned, []string{"a"}) ||
		!slices.Equal(p.InUse, []string{"b"}) || p.Now.IsZero() {
		t.Errorf("the policy is %+v, %v", p, err)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if p, _, err := run.policy(); err == nil {
		t.Errorf("without settings the policy is %+v", p)
	}
}

// What is said of former major versions fits too.
func TestAResultWithFormerArchivesFitsIntoItsMessage(t *testing.T) {
	long, id := strings.Repeat("retention has removed nothing. ", 200), "20261120T031500Z-3f2a"
	window := protocol.Window{
		Branch: 1<<40 + 1, Earliest: time.Now().UTC().Truncate(time.Second), EarliestLSN: "FFFFFFFF/FFFFFFFF",
		Latest: time.Now().UTC().Truncate(time.Second), LatestLSN: "FFFFFFFF/FFFFFFFF",
	}
	run := &taking{}
	run.result = protocol.BackupResult{
		Warning: long, Held: long, Refused: long, ID: id, Removed: slices.Repeat([]string{id}, mostRemoved),
		Windows: slices.Repeat([]protocol.Window{window}, mostWindows/2),
	}
	for n := range mostFormer {
		run.result.Former = append(run.result.Former, protocol.FormerResult{
			Path: strings.Repeat("p", 100), Major: 17, Held: long,
			Removed: slices.Repeat([]string{id}, mostFormerRemoved),
			Windows: slices.Repeat([]protocol.Window{window}, max(1, mostFormerWindows-n)),
		})
	}
	file := filepath.Join(t.TempDir(), "message")
	if err := pod.Leave(file, &run.result, run.words(&run.result.Error, &run.result.Warning)...); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil || len(text) > pod.MaxTermination || !json.Valid(text) {
		t.Errorf("it has %d bytes: %v", len(text), err)
	}
}

// However much there is to say, the kubelet keeps it whole.
func TestTheResultOfABackupFitsIntoItsMessage(t *testing.T) {
	long := strings.Repeat("retention has removed nothing. ", 200)
	result := protocol.BackupResult{Warning: long, Held: long, Refused: long, ID: "20261120T031500Z-3f2a"}
	for range mostRemoved {
		result.Removed = append(result.Removed, result.ID)
	}
	for range mostWindows {
		result.Windows = append(result.Windows, protocol.Window{
			Branch: 1<<40 + 1, Earliest: time.Now().UTC().Truncate(time.Second), EarliestLSN: "FFFFFFFF/FFFFFFFF",
			Latest: time.Now().UTC().Truncate(time.Second), LatestLSN: "FFFFFFFF/FFFFFFFF",
		})
	}
	file := filepath.Join(t.TempDir(), "message")
	if err := pod.Leave(file, &result, &result.Error, &result.Warning, &result.Held, &result.Refused); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	var got protocol.BackupResult
	if err == nil {
		err = json.Unmarshal(text, &got)
	}
	if err != nil || len(text) > pod.MaxTermination || len(got.Windows) != mostWindows ||
		!strings.HasSuffix(got.Held, "…") {
		t.Errorf("of %d bytes it keeps %+v: %v", len(text), got, err)
	}
}
