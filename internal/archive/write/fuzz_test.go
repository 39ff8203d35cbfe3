package write

import (
	"bytes"
	"encoding/binary"
	"testing"

	"toban.dev/internal/archive/format"
	"toban.dev/internal/wal"
)

// WAL that nobody ever wrote is read to an end, and never behind it.
func FuzzWAL(f *testing.F) {
	s := format.SegmentOf(2, 4)
	content := written(s, 70, true, 50, 60, 9000, 24)
	f.Add(content[:2*wal.PageSize], uint16(0), uint16(100))
	f.Add(content[wal.PageSize:3*wal.PageSize], uint16(1), uint16(0))
	f.Add(bytes.Repeat([]byte{0xFF}, wal.PageSize), uint16(2047), uint16(8191))
	f.Fuzz(func(t *testing.T, content []byte, page, from uint16) {
		first := uint32(page) % (wal.SegmentSize / wal.PageSize) * wal.PageSize
		content = content[:min(len(content), int(wal.SegmentSize-first))]
		p := format.Piece{Segment: s, From: first, To: first + uint32(len(content))}
		if foreign := format.ForeignPage(content, p); foreign >= len(content) {
			t.Errorf("a page that is another's begins at %d of %d", foreign, len(content))
		}
		_ = format.CheckPage(content, p, "7")
		onlyIdle(content, p, first+min(uint32(from), uint32(len(content))))
		if whole := len(content) / wal.PageSize * wal.PageSize; first == 0 && whole > 0 {
			switchedBefore(content, s, whole)
		}
		if len(content) >= 4 {
			begin, length := s.Start()+wal.LSN(from), binary.LittleEndian.Uint32(content)
			if end := format.Pages.RecordEnd(begin, length); end < begin+wal.LSN(length) {
				t.Errorf("a record of %d bytes at %s ends at %s", length, begin, end)
			}
		}
	})
}
