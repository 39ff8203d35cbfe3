package wal

import (
	"encoding/binary"
	"hash/crc32"
	"sort"
)

// What a page's header says of how it begins (xlp_info in xlog_internal.h), and how long the header of a record is
// (SizeOfXLogRecord in xlogrecord.h).
const (
	pageContinues = 0x1
	// pageOverwrites is set where what began on the page before was never continued: something else follows. From
	// PostgreSQL 19 on it is another bit.
	pageOverwrites, pageOverwrites19 = 0x8, 0x4
	magic19                          = 0xD119
	recordHeader                     = 24
	// longestRecord is more than any record has (XLogRecordMaxSize).
	longestRecord = 1 << 30
)

// readAtOnce is how much is read in one go.
const readAtOnce = 256 << 10

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Records reads the records of WAL as a server does that replays it, and comes to the same end: a record counts that is
// there with all of its bytes, by its checksum (XLogDecodeNextRecord in xlogreader.c, PostgreSQL 15 to 19).
type Records struct {
	Pages Pages
	// Read reads that much from a position on, all of it in one segment; less, or nothing, where there is no more.
	Read func(at LSN, length uint64) ([]byte, error)

	// chunk is what was read last, from a position on; last is where the last record begins, 0 where that is not known;
	// timeline is that of the last page whose records were read, 0 where that is not known.
	chunk    []byte
	from     LSN
	last     LSN
	timeline Timeline
}

// Near is the last position at or before flushed, and after low, at which a record is seen to end without reading all
// in between; low where there is none. One ends at low, and everything up to flushed is there.
func (r *Records) Near(low, flushed LSN) (LSN, error) {
	// whole is up to where records count: one that goes on over a page that overwrites it does not.
	for limit, whole := flushed, flushed; limit > low; {
		page, err := r.lastPage(low, r.Pages.start(limit-1))
		if err != nil || page <= low {
			return low, err
		}
		head, err := r.head(page)
		if err != nil {
			return low, err
		}
		if !head.valid {
			return low, nil
		}
		switch end := head.continuesTo(r.Pages, page); {
		case end == 0 && head.overwrites():
			limit, whole = page, page // what began before is not whole, wherever it would have ended
		case end > 0 && head.remaining < recordHeader:
			limit = page // where what goes on here ended its segment, it counts up to the end of that
		case end <= whole:
			return max(low, page, end), nil
		default: // what goes on here is not whole: it begins on the page before the first on which it goes on
			first, err := r.firstPage(low, page, end)
			if err != nil {
				return low, err
			}
			limit = first
		}
	}
	return low, nil
}

// After is where the last whole record ends of those that follow a position, at which one ends; none that ends after
// the limit counts. After so many bytes it stops, and says that it has not come to the end.
func (r *Records) After(at, limit LSN, most uint64) (end LSN, whole bool, err error) {
	r.last, r.chunk, r.timeline = 0, nil, 0 // what was read before may be different by now
	before, err := r.lastPage(0, r.Pages.start(max(at, 1)-1))
	if err == nil {
		err = r.approach(before, at)
	}
	if err == nil {
		_, err = r.follow(before)
	}
	if err != nil {
		return at, false, err
	}
	for began := at; at.Since(began) < most; {
		next, ok, err := r.next(at)
		if err != nil || !ok || next > limit {
			return at, err == nil, err
		}
		at = next
	}
	return at, false, nil
}

// approach reads the records that lead to a position, at which one ends on a page, so that it is known where the last
// of them begins: what follows counts only if it says so. That is not known where what is before is not there any more.
func (r *Records) approach(page, at LSN) error {
	place, err := r.before(page, at)
	for place < at && err == nil {
		next, ok, failed := r.next(place)
		if err = failed; !ok || next > at {
			r.last, r.timeline = 0, 0
			break
		}
		place = next
	}
	return err
}

// before is where a record begins before a position, at which one ends on a page; that position where none is found.
func (r *Records) before(page, at LSN) (LSN, error) {
	head, err := r.head(page)
	if err != nil || !head.valid || !head.continues() {
		return page, err
	}
	end := head.continuesTo(r.Pages, page)
	if end != at {
		return min(end, at), nil
	}
	first, err := r.firstPage(page-min(page, LSN(r.Pages.Segment)), page, end)
	if err != nil || first < LSN(r.Pages.Page) {
		return at, err
	}
	page = first - LSN(r.Pages.Page)
	if head, err = r.head(page); err != nil || !head.valid || !head.continues() {
		return page, err
	}
	return min(head.continuesTo(r.Pages, page), at), nil
}

// next is where the record ends that follows a position; false where it is not there, or not whole.
func (r *Records) next(at LSN) (end LSN, ok bool, err error) {
	begin := r.Pages.Record(at)
	head, err := r.follow(r.Pages.start(begin))
	first := begin == r.Pages.Record(r.Pages.start(begin))
	if err != nil || !head.valid || first && head.continues() {
		return 0, false, err
	}
	length := binary.LittleEndian.Uint32(head.rest(r.Pages, begin))
	if !isLength(length) {
		return 0, false, nil
	}
	s := record{}
	for place, left := begin, uint64(length); ; {
		part := head.rest(r.Pages, place)
		part = part[:min(left, uint64(len(part)))]
		if s.add(part); !s.follows(begin, r.last) {
			return 0, false, nil
		}
		if left -= uint64(len(part)); left == 0 {
			end = place.Add(uint64(len(part)))
			break
		}
		page := place.Add(uint64(len(part)))
		head, err = r.follow(page)
		switch {
		case err != nil || !head.valid:
			return 0, false, err
		case head.overwrites():
			return r.next(page)
		case !head.continues() || uint64(head.remaining) != left:
			return 0, false, nil
		}
		place = r.Pages.Record(page)
	}
	if !s.whole() {
		return 0, false, nil
	}
	r.last = begin
	end = end.Add(-uint64(end) % 8)
	if s.switches() {
		end = end.Add(-uint64(end) % r.Pages.Segment)
	}
	return end, true, nil
}

// follow is head for the next page whose records are read. None follows that is of an earlier timeline than the one
// before it (XLogReaderValidatePageHeader in xlogreader.c): where a standby has received the last segment of a new
// timeline, the next one of the timeline before may be there still.
func (r *Records) follow(page LSN) (head, error) {
	head, err := r.head(page)
	if head.valid = head.valid && head.timeline >= r.timeline; head.valid {
		r.timeline = head.timeline
	}
	return head, err
}

// isLength says that a record may be that long.
func isLength(bytes uint32) bool { return bytes >= recordHeader && bytes <= longestRecord }

// lastPage is the last page up to one, and after low, that has a header: behind a record that ends its segment early
// there is nothing but zeros. It is low where none has.
func (r *Records) lastPage(low, page LSN) (LSN, error) {
	var failed error
	begin := max(r.Pages.start(low), page-LSN(uint64(page)%r.Pages.Segment))
	count := int(page.Since(begin)/r.Pages.Page) + 1 //nolint:gosec // there are at most 131072 in a segment
	if head, err := r.head(page); err != nil || head.valid {
		return page, err
	}
	without := sort.Search(count, func(n int) bool {
		head, err := r.head(begin.Add(uint64(n) * r.Pages.Page)) //nolint:gosec // it is a number of pages
		if err != nil {
			failed = err
		}
		return !head.valid
	})
	if without == 0 || failed != nil {
		return low, failed
	}
	return begin.Add(uint64(without-1) * r.Pages.Page), nil //nolint:gosec // it is a number of pages
}

// firstPage is the first page after low on which the record goes on that goes on at a page, and would end at end.
func (r *Records) firstPage(low, page, end LSN) (LSN, error) {
	var failed error
	begin := r.Pages.start(low)
	count := int(page.Since(begin) / r.Pages.Page) //nolint:gosec // a machine has fewer
	first := sort.Search(count, func(n int) bool {
		at := begin.Add(uint64(n) * r.Pages.Page) //nolint:gosec // it is a number of pages
		head, err := r.head(at)
		if err != nil {
			failed = err
		}
		return head.valid && head.continuesTo(r.Pages, at) == end
	})
	return begin.Add(uint64(first) * r.Pages.Page), failed //nolint:gosec // it is a number of pages
}

// head is the page that begins at a position.
func (r *Records) head(page LSN) (head, error) {
	if page < r.from || page.Add(r.Pages.Page) > r.from.Add(uint64(len(r.chunk))) {
		// Of pages that are looked at one here and one there no more is read.
		length := r.Pages.Page
		if page == r.from.Add(uint64(len(r.chunk))) || r.chunk == nil {
			length = min(readAtOnce, r.Pages.Segment-uint64(page)%r.Pages.Segment)
		}
		read, err := r.Read(page, length)
		if err != nil {
			return head{}, err
		}
		r.chunk, r.from = read, page
	}
	bytes := r.chunk[page.Since(r.from):]
	if uint64(len(bytes)) < r.Pages.Page {
		return head{}, nil
	}
	bytes = bytes[:r.Pages.Page]
	remaining := binary.LittleEndian.Uint32(bytes[16:])
	return head{
		valid: binary.LittleEndian.Uint64(bytes[8:]) == uint64(page) && bytes[1] == magic19>>8 &&
			remaining <= longestRecord,
		info:     binary.LittleEndian.Uint16(bytes[2:]),
		timeline: Timeline(binary.LittleEndian.Uint32(bytes[4:])), remaining: remaining, page: bytes,
	}, nil
}

// head is a page with what its header says: valid that it is the header of this page, remaining how much there is of
// the record that goes on here.
type head struct {
	valid     bool
	info      uint16
	timeline  Timeline
	remaining uint32
	page      []byte
}

func (h head) continues() bool { return h.info&pageContinues != 0 }

func (h head) overwrites() bool { return overwrites(h.page) }

// continuesTo is where the record ends that goes on here, 0 where none does.
func (h head) continuesTo(p Pages, page LSN) LSN {
	if !h.continues() {
		return 0
	}
	end := p.RecordEnd(p.Record(page), h.remaining)
	return end.Add(-uint64(end) % 8)
}

// rest is the page from a position on.
func (h head) rest(p Pages, at LSN) []byte { return h.page[uint64(at)%p.Page:] }

// record is one that is read piece by piece.
type record struct {
	header []byte
	sum    uint32
}

// add takes in some more.
func (s *record) add(part []byte) {
	n := min(recordHeader-len(s.header), len(part))
	s.header = append(s.header, part[:n]...)
	s.sum = crc32.Update(s.sum, castagnoli, part[n:])
}

// follows says that it may be the record after one: it says where that begins. What is there from an earlier use of the
// file is not read on.
func (s *record) follows(begin, last LSN) bool {
	if len(s.header) < recordHeader {
		return true
	}
	before := LSN(binary.LittleEndian.Uint64(s.header[8:]))
	return before < begin && (last == 0 || before == last)
}

// whole says that all of its bytes are those that were written: the sum is over the data, and then over the header.
func (s *record) whole() bool {
	return crc32.Update(s.sum, castagnoli, s.header[:20]) == binary.LittleEndian.Uint32(s.header[20:])
}

// switches says that the rest of the segment has nothing any more (XLOG_SWITCH of RM_XLOG_ID).
func (s *record) switches() bool { return s.header[17] == 0 && s.header[16]&0xF0 == 0x40 }
