package restore

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"toban.dev/internal/archive/book"
	"toban.dev/internal/archive/format"
	"toban.dev/internal/wal"
)

// Whether a recovery is over where the server waits is read from the records that it was given.
func TestWhetherARecordFollows(t *testing.T) {
	const segment, page = wal.SegmentSize, wal.PageSize
	const start, at = 5 * segment, 6*segment - 2*page + 800
	const end = 6*segment + 4096 // of the plan
	const room = 2*page - 800 - wal.PageHeader + 4096 - wal.SegmentHeader
	for name, c := range map[string]struct {
		at     wal.LSN
		length uint32  // of the record there
		page   wal.LSN // the one that overwrites it, 0 for none
		next   uint32  // the length of the record on that
		want   bool
	}{
		"nothing":                           {at, 0, 0, 0, false},
		"a record":                          {at, 100, 0, 0, true},
		"one up to the end of the plan":     {at, room, 0, 0, true},
		"one that goes beyond it":           {at, room + 1, 0, 0, false},
		"one that goes far beyond it":       {at, 1 << 29, 0, 0, false},
		"the end of the plan":               {end, 0, 0, 0, false},
		"what is not in the plan":           {end + segment, 0, 0, 0, false},
		"a page that nothing is written on": {6*segment - page, 0, 0, 0, false},
		"one that was cut off, and another": {at, 1 << 20, 6 * segment, 48, true},
		"another in the same segment":       {at, 1 << 20, at - 800 + page, 48, true},
		"another that is not complete":      {at, 1 << 20, 6 * segment, 1 << 19, false},
		"one that was cut off, and nothing": {at, 1 << 20, 6 * segment, 0, false},
		"what the server has removed":       {start - segment, 0, 0, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			content := make([]byte, 2*segment)
			put := func(at wal.LSN, value uint32) { binary.LittleEndian.PutUint32(content[at-start:], value) }
			if c.length > 0 {
				put(c.at, c.length)
			}
			if c.page > 0 {
				const magic, overwrites = 0xD110, 8
				put(c.page, magic|overwrites<<16)
				put(format.Pages.Record(c.page), c.next)
			}
			r := &Recovery{RecoverOptions: RecoverOptions{WAL: t.TempDir()}}
			for i, to := range []uint32{segment, segment, end - 6*segment} {
				s := format.SegmentOf(1, uint64(4+i))
				r.Plan.Segments = append(r.Plan.Segments, book.PlannedSegment{Segment: s, File: s.String(),
					Objects: []book.PlannedObject{{Piece: format.WholeSegment(s), To: to}}})
				if i == 0 {
					continue // it was removed
				}
				file := filepath.Join(r.WAL, s.String())
				if err := os.WriteFile(file, content[(i-1)*segment:][:segment], 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if more, err := r.more(c.at); more != c.want || err != nil {
				t.Errorf("more %t, not %t: %v", more, c.want, err)
			}
		})
	}
}
