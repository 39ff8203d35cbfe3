package keep

import (
	"strings"
	"testing"

	"toban.dev/internal/archive/archivetest"
	"toban.dev/internal/archive/format"
	"toban.dev/internal/wal"
)

// A snapshot of a volume of day 3 keeps the WAL of that day, and nothing else: it takes no backup's place.
func TestRetentionKeepsTheWALOfASnapshotAndCountsOnNone(t *testing.T) {
	lsn := wal.LSN(3) * wal.SegmentSize
	snapshot := format.Backup{
		ID: "s3", Type: format.TypeSnapshot, Term: 1, StartLSN: lsn + 0x28, StopLSN: lsn + 0x100,
		Stopped: archivetest.Day(3),
	}
	young := snapshot
	young.ID, young.StartLSN, young.StopLSN, young.Stopped = "s10", lsn*3+0x28, lsn*3+0x100, archivetest.Day(9)
	for name, c := range map[string]struct {
		snapshots    []format.Backup
		backups, wal string
	}{
		"none":      {nil, "b2 b4", "1 2 3 4 5"},
		"an old":    {[]format.Backup{snapshot}, "b2 b4", "1 2 4 5"},
		"a younger": {[]format.Backup{young}, "b2 b4", "1 2 3 4 5"},
	} {
		archive := aMonth(10, 2, 4, 6, 8, 10)
		d := byRules(t, archive, Policy{Count: 3, Now: archivetest.Day(11), Snapshots: c.snapshots})
		backups, segments := gone(d)
		if strings.Join(backups, " ") != c.backups || strings.Join(segments, " ") != c.wal {
			t.Errorf("%s: it removes %v and WAL of %v, expected %s and %s", name, backups, segments, c.backups, c.wal)
		}
	}
}
