package backup

import (
	"context"
	"fmt"
	"io"
	"io/fs"

	"toban.dev/internal/archive/format"
	"toban.dev/internal/ha"
	"toban.dev/internal/wal"
)

// testWAL writes what a term history's WAL is from an LSN on: each byte depends on its place and
// the term it was written in.
func testWAL(history []ha.TermStart, at wal.LSN, into []byte) {
	owner := func(lsn wal.LSN) (term uint64, until wal.LSN) {
		until = ^wal.LSN(0)
		for i := range history {
			if s := history[i]; s.LSN <= lsn {
				term, until = s.Term, format.Cutoff(history, i)
			} else {
				until = min(until, s.LSN)
			}
		}
		return term, until
	}
	for i := 0; i < len(into); {
		term, until := owner(at + wal.LSN(i))
		for ; i < len(into) && at+wal.LSN(i) < until; i++ {
			lsn := uint64(at) + uint64(i)
			page := lsn / wal.PageSize * wal.PageSize
			switch in := lsn % wal.PageSize; {
			case in < 8:
				into[i] = 0xD1
			case in < 16:
				into[i] = byte(page >> (8 * (in - 8)))
			default:
				into[i] = byte(lsn>>4) ^ byte(term*41)
			}
		}
	}
}

// testSource is a leader's pg_wal.
type testSource struct {
	history         []ha.TermStart
	flushed, oldest wal.LSN
	// lost is from where on the WAL is another since the volume went back in time, 0 for nowhere.
	lost wal.LSN
}

func (s *testSource) Flushed(context.Context) (wal.LSN, error) { return s.flushed, nil }
func (s *testSource) Oldest(context.Context) (wal.LSN, error)  { return s.oldest, nil }

func (s *testSource) Open(name string) (segmentFile, error) {
	segment, ok := wal.ParseSegment(name, format.SegmentSize)
	if !ok || segment.Start() < s.oldest || segment.Timeline != s.timeline(segment) {
		return nil, fmt.Errorf("open %s: %w", name, fs.ErrNotExist)
	}
	return &testFile{s, segment}, nil
}

// timeline is that of the last byte of a segment: of the last term that begins before it.
func (s *testSource) timeline(segment wal.Segment) wal.Timeline {
	timeline := wal.Timeline(0)
	for _, start := range s.history {
		if start.LSN <= segment.End()-1 {
			timeline = start.Timeline
		}
	}
	return timeline
}

func (s *testSource) History(timeline wal.Timeline) ([]byte, error) {
	return fmt.Appendf(nil, "history of %d in %v", timeline, s.history[len(s.history)-1].Term), nil
}

// segmentFile is what an archiver reads a segment from.
type segmentFile = interface {
	io.ReaderAt
	io.Closer
}

type testFile struct {
	*testSource
	segment wal.Segment
}

func (f *testFile) ReadAt(p []byte, off int64) (int, error) {
	at := f.segment.Start() + wal.LSN(off)
	testWAL(f.history, at, p)
	for i := range p {
		lsn := at + wal.LSN(i)
		if f.lost != 0 && lsn >= f.lost && lsn%wal.PageSize/8 != 1 { // the address of a page is the same
			p[i] ^= 0x5A
		}
		if lsn >= f.flushed {
			p[i] = 0xEE // not written yet
		}
	}
	return len(p), nil
}

func (f *testFile) Close() error { return nil }
