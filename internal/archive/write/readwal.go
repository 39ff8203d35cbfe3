package write

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"toban.dev/internal/archive/format"
	"toban.dev/internal/wal"
)

// errRecycled says that a file is not the segment it was opened as.
var errRecycled = errors.New("the file has been put to another use while it was read")

// readWAL reads a piece from pg_wal. A segment that no slot keeps may be given another name
// and be written over under our hands, so each page has to say that it is of this place.
func (f *termFolder) readWAL(p format.Piece) ([]byte, error) {
	file, err := f.Source.Open(p.Segment.String())
	if err != nil {
		return nil, err
	}
	defer file.Close()
	content := make([]byte, p.To-p.From)
	if _, err := file.ReadAt(content, int64(p.From)); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	} else if err != nil {
		return nil, io.ErrUnexpectedEOF
	}
	foreign := format.ForeignPage(content, p)
	if foreign < 0 {
		return content, nil
	}
	if uint64(p.To) == format.SegmentSize && p.From > 0 {
		// Whether the segment was left early, its records say from its beginning on.
		whole, err := f.readWAL(format.Piece{Segment: p.Segment, From: 0, To: p.To})
		if err != nil {
			return nil, err
		}
		return whole[p.From:], nil
	}
	if p.Whole() && switchedBefore(content, p.Segment, foreign) {
		clear(content[foreign:])
		return content, nil
	}
	address := wal.LSN(binary.LittleEndian.Uint64(content[foreign+8:]))
	return nil, fmt.Errorf("%w: a page of %s is where that of %s should be",
		errRecycled, address, p.Segment.Start().Add(uint64(p.From))+wal.LSN(foreign))
}

// What tells a record by which a segment is left early (PostgreSQL 15 to 18: xlogrecord.h, rmgrlist.h, pg_control.h).
const (
	recordInfo   = 16 // where in a record's header its flags are, in bytes; then comes the resource manager
	managerXLOG  = 0
	switchRecord = 0x40
	infoMask     = 0xF0
	recordAlign  = 8
	continued    = 1  // a flag of a page that begins with the rest of a record
	remainder    = 16 // where in a page's header the length of that rest is, in bytes
)

// switchedBefore says whether the records of a segment, in front of an offset, end with one by which the segment was
// left. What follows such a record is of no meaning. The one who wrote it fills that with zeros; but who has received
// the record, and then lost its primary, goes on at the next segment with whatever was in the file before, and so does
// one that crashed in that moment.
func switchedBefore(content []byte, s wal.Segment, offset int) bool {
	end := s.Start().Add(uint64(offset)) //nolint:gosec // it is one of content
	w := stretch{content[:offset], s.Start()}
	begin := format.Pages.Record(s.Start())
	if binary.LittleEndian.Uint16(content[2:])&continued != 0 {
		rest, _ := w.recordEnd(begin, binary.LittleEndian.Uint32(content[remainder:]))
		begin = alignRecord(rest)
	}
	for {
		begin = format.Pages.Record(begin)
		info := format.Pages.Record(format.Pages.RecordEnd(begin, recordInfo))
		if info+2 > end {
			return false
		}
		length := binary.LittleEndian.Uint32(content[begin-s.Start():])
		if length == 0 {
			return false
		}
		next, whole := w.recordEnd(begin, length)
		flags := content[info-s.Start():]
		if whole && flags[1] == managerXLOG && flags[0]&infoMask == switchRecord {
			return true
		}
		begin = alignRecord(next)
	}
}

// alignRecord is where a record begins that follows one which ends there.
func alignRecord(end wal.LSN) wal.LSN { return (end + recordAlign - 1) / recordAlign * recordAlign }

// stretch is WAL from an LSN on, where a page begins.
type stretch struct {
	content []byte
	at      wal.LSN
}

// recordEnd is where a record of a length ends. One that a crash has cut off is not whole: it ends where the page
// begins that overwrites it, and the next record follows there.
func (w stretch) recordEnd(begin wal.LSN, length uint32) (end wal.LSN, whole bool) {
	end = format.Pages.RecordEnd(begin, length)
	last := w.at.Add(uint64(len(w.content)))
	page, _ := format.Pages.Overwritten(begin, min(end, last), func(page wal.LSN) ([]byte, error) {
		return w.content[page-w.at:], nil
	})
	if page > 0 {
		return page, false
	}
	return end, true
}
