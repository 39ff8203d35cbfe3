package wal

import "encoding/binary"

// Sizes of WAL pages in bytes, as initdb makes them on a 64-bit machine (XLOG_BLCKSZ in pg_config.h;
// SizeOfXLogShortPHD and SizeOfXLogLongPHD in xlog_internal.h).
const (
	PageSize = 8192
	// PageHeader is the length of the header that each page begins with, but for the first of a segment.
	PageHeader = 24
	// SegmentHeader is the length of that which the first begins with.
	SegmentHeader = 40
)

// Pages are how WAL is divided up.
type Pages struct {
	Page, Segment uint64 // sizes in bytes
}

// start is where the page begins that has a position.
func (p Pages) start(at LSN) LSN { return at - LSN(uint64(at)%p.Page) }

// Record is where a record begins that would begin here: behind the header, where a page begins here.
func (p Pages) Record(at LSN) LSN {
	switch {
	case uint64(at)%p.Segment == 0:
		return at.Add(SegmentHeader)
	case uint64(at)%p.Page == 0:
		return at.Add(PageHeader)
	}
	return at
}

// Before is where the record before one ends that begins at a position, as replay tells it: before the header of the
// page, where the record begins behind that.
func (p Pages) Before(begin LSN) LSN {
	if page := p.start(begin); p.Record(page) == begin {
		return page
	}
	return begin
}

// RecordEnd is where a record of this length ends, which may go on over pages.
func (p Pages) RecordEnd(begin LSN, length uint32) LSN {
	for left := uint64(length); ; {
		room := p.Page - uint64(begin)%p.Page
		if left <= room {
			return begin.Add(left)
		}
		left -= room
		begin = p.Record(begin.Add(room))
	}
}

// Overwritten is where the page begins that overwrites a record: a crash cut that off, it was never continued, and
// other records follow there. It is 0 where no page before an end does. Head reads the first OverwritesHead bytes of a
// page, or less where there is no more.
func (p Pages) Overwritten(begin, end LSN, head func(page LSN) ([]byte, error)) (LSN, error) {
	for page := p.start(begin).Add(p.Page); page < end; page = page.Add(p.Page) {
		bytes, err := head(page)
		if err != nil {
			return 0, err
		}
		if overwrites(bytes) {
			return page, nil
		}
	}
	return 0, nil
}

// OverwritesHead is how much of a page says whether it overwrites a record, in bytes: what kind of page it is, and its
// flags.
const OverwritesHead = 4

// overwrites says that a page overwrites the rest of the record that began before it.
func overwrites(page []byte) bool {
	if len(page) < OverwritesHead {
		return false
	}
	info := binary.LittleEndian.Uint16(page[2:])
	if binary.LittleEndian.Uint16(page) >= magic19 {
		return info&pageOverwrites19 != 0
	}
	return info&pageOverwrites != 0
}
