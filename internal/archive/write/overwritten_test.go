package write

import (
	"encoding/binary"
	"fmt"
	"testing"

	"toban.dev/internal/archive/format"
	"toban.dev/internal/wal"
)

// cutOff writes a record of a size that a crash cuts off at the end of a page, the so many-th on which it is, and goes
// on as a server does that has recovered: on a page that overwrites the rest (CreateOverwriteContrecordRecord in
// PostgreSQL's xlog.c).
func (s *server) cutOff(size int, pages wal.LSN) {
	at := (s.at/wal.PageSize + pages) * wal.PageSize
	s.insert(size)
	segment := format.SegmentAt(1, at)
	clear(s.segments[segment.Number][at-segment.Start():])
	for number := range s.segments {
		if number > segment.Number {
			delete(s.segments, number)
		}
	}
	s.at = at
	s.record(0, managerXLOG, 0xD0, make([]byte, 18))
	const overwrites = 8
	page := s.segments[segment.Number][at-segment.Start():]
	binary.LittleEndian.PutUint16(page[2:], binary.LittleEndian.Uint16(page[2:])|overwrites)
}

func TestWhatFollowsARecordThatWasCutOffIsLookedAt(t *testing.T) {
	for name, write := range map[string]func(s *server){
		"one that would have ended behind":  func(s *server) { s.cutOff(200000, 2) },
		"one that would have ended before":  func(s *server) { s.cutOff(2*wal.PageSize, 1) },
		"one that would have ended just so": func(s *server) { s.cutOff(wal.PageSize, 1) },
		"two of them":                       func(s *server) { s.cutOff(30000, 1); s.cutOff(200000, 3) },
	} {
		// A page has all of the record's header, or as little as its length.
		for before := wal.LSN(8); before < 200; before += 16 {
			s := newServer(2 * wal.SegmentSize)
			s.proveWrite()
			to := 2*wal.SegmentSize + 2*wal.PageSize - before
			s.record(0, managerXLOG, 0x10, make([]byte, to-s.at-wal.PageHeader-recordHeader))
			write(s)
			s.proveWrite()
			name := fmt.Sprintf("%s, %d bytes before a page ends", name, before)
			checkIdle(t, name, s, 2*wal.SegmentSize, true)
			s.commit(s.insert(100))
			checkIdle(t, name+", and a commit", s, 2*wal.SegmentSize, false)
			if t.Failed() {
				return
			}
		}
	}
}

func TestASwitchOfSegmentsIsFoundBehindARecordThatWasCutOff(t *testing.T) {
	const start = 2 * wal.SegmentSize
	for name, write := range map[string]func(s *server){
		"one that would have ended behind": func(s *server) { s.cutOff(1<<20, 2) },
		"one that would have ended before": func(s *server) { s.cutOff(20000, 1) },
		"one that would have ended in the next segment": func(s *server) {
			s.cutOff(2*wal.SegmentSize, 2)
		},
		"one that was begun in the segment before": func(s *server) {
			s.at = start - 3*wal.PageSize + 800
			s.cutOff(1<<20, 5)
		},
		"one of which only the segment before has something": func(s *server) {
			s.at = start - wal.PageSize + 800
			s.cutOff(1<<20, 1)
		},
	} {
		for _, switched := range []bool{true, false} {
			s := newServer(start)
			write(s)
			s.insert(20000)
			if switched {
				s.record(0, managerXLOG, switchRecord, nil)
			}
			content := make([]byte, wal.SegmentSize)
			copy(content, s.segments[2])
			const from = 96 * wal.PageSize
			junk(content, from)
			if ok := switchedBefore(content, format.SegmentOf(1, 2), from); ok != switched {
				t.Errorf("%s: switched %t, not %t", name, ok, switched)
			}
		}
	}
}
