package format

import (
	"encoding/binary"
	"fmt"
	"strconv"

	"toban.dev/internal/wal"
)

// SealedLimit is how much larger than WAL what lies in the bucket can be, in bytes.
const SealedLimit = wal.SegmentSize + 1<<20

// CheckPage looks at the first page that begins in a piece: whether it is of the place that the piece has by its name.
// An object has no checksum that is kept elsewhere; this notices one in the place of another.
func CheckPage(content []byte, p Piece, system string) error {
	at := (p.From + wal.PageSize - 1) / wal.PageSize * wal.PageSize
	if at+wal.SegmentHeader > p.To {
		return nil
	}
	page := content[at-p.From:]
	if binary.LittleEndian.Uint16(page) == 0 {
		return nil // nothing has been written there
	}
	timeline, address := binary.LittleEndian.Uint32(page[4:]), wal.LSN(binary.LittleEndian.Uint64(page[8:]))
	if want := p.Segment.Start().Add(uint64(at)); address != want || timeline > uint32(p.Segment.Timeline) {
		return fmt.Errorf("its content is of %s on timeline %d, not of %s on timeline %d",
			address, timeline, want, p.Segment.Timeline)
	}
	if at == 0 && system != "" {
		if is := strconv.FormatUint(binary.LittleEndian.Uint64(page[wal.PageHeader:]), 10); is != system {
			return fmt.Errorf("its content is of database system %s, not of %s", is, system)
		}
	}
	return nil
}

// ForeignPage is where in a piece the first page begins that does not say that it is of its place, -1 where each does.
// The ones that follow the end of a segment that was left early are zeros altogether (CopyXLogRecordToWAL in xlog.c).
func ForeignPage(content []byte, p Piece) int {
	const header = 16 // magic, flags, timeline, address (xlog_internal.h)
	for at := (p.From + wal.PageSize - 1) / wal.PageSize * wal.PageSize; at+header <= p.To; at += wal.PageSize {
		page := content[at-p.From:]
		address := wal.LSN(binary.LittleEndian.Uint64(page[8:]))
		zero := address == 0 && binary.LittleEndian.Uint64(page) == 0
		if want := p.Segment.Start().Add(uint64(at)); address != want && (at == 0 || !zero) {
			return int(at - p.From)
		}
	}
	return -1
}
