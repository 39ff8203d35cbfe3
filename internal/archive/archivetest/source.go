// Package archivetest has what tests of archives share: the WAL of a leader that never was, keys, and objects that are
// put into an archive as if a backup had been taken. It knows the format, and none of the packages that are tested with
// it.
package archivetest

import (
	"context"
	"fmt"
	"io"
	"io/fs"

	"toban.dev/internal/archive/format"
	"toban.dev/internal/ha"
	"toban.dev/internal/wal"
)

// WriteWAL writes what a term history's WAL is from an LSN on: each byte depends on its place and
// the term it was written in.
func WriteWAL(history []ha.TermStart, at wal.LSN, into []byte) {
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
				into[i] = byte(page >> (8 * (in - 8))) //nolint:gosec // one byte of it
			default:
				into[i] = byte(lsn>>4) ^ byte(term*41) //nolint:gosec // whatever it is
			}
		}
	}
}

// Source is a leader's pg_wal.
type Source struct {
	Terms      []ha.TermStart
	End, Begin wal.LSN
	// Lost is from where on the WAL is another since the volume went back in time, 0 for nowhere.
	Lost wal.LSN
}

// Flushed is where the WAL ends.
func (s *Source) Flushed(context.Context) (wal.LSN, error) { return s.End, nil }

// Oldest is where the WAL begins.
func (s *Source) Oldest(context.Context) (wal.LSN, error) { return s.Begin, nil }

// Open opens a segment.
func (s *Source) Open(name string) (File, error) {
	segment, ok := wal.ParseSegment(name, format.SegmentSize)
	if !ok || segment.Start() < s.Begin || segment.Timeline != s.TimelineOf(segment) {
		return nil, fmt.Errorf("open %s: %w", name, fs.ErrNotExist)
	}
	return &SourceFile{s, segment}, nil
}

// TimelineOf is that of the last byte of a segment: of the last term that begins before it.
func (s *Source) TimelineOf(segment wal.Segment) wal.Timeline {
	timeline := wal.Timeline(0)
	for _, start := range s.Terms {
		if start.LSN <= segment.End()-1 {
			timeline = start.Timeline
		}
	}
	return timeline
}

// History is something that differs from leader to leader.
func (s *Source) History(timeline wal.Timeline) ([]byte, error) {
	return fmt.Appendf(nil, "history of %d in %v", timeline, s.Terms[len(s.Terms)-1].Term), nil
}

// File is what an archiver reads a segment from.
type File = interface {
	io.ReaderAt
	io.Closer
}

// SourceFile is a segment of a Source.
type SourceFile struct {
	*Source
	Segment wal.Segment
}

// ReadAt implements io.ReaderAt.
func (f *SourceFile) ReadAt(p []byte, off int64) (int, error) {
	at := f.Segment.Start() + wal.LSN(off) //nolint:gosec // an offset
	WriteWAL(f.Terms, at, p)
	for i := range p {
		lsn := at + wal.LSN(i)
		if f.Lost != 0 && lsn >= f.Lost && lsn%wal.PageSize/8 != 1 { // the address of a page is the same
			p[i] ^= 0x5A
		}
		if lsn >= f.End {
			p[i] = 0xEE // not written yet
		}
	}
	return len(p), nil
}

// Close implements io.Closer.
func (f *SourceFile) Close() error { return nil }
