package write

import (
	"encoding/binary"
	"strings"
	"time"

	"toban.dev/internal/archive/format"
	"toban.dev/internal/wal"
)

const (
	// idleLag is for how long idle WAL may wait, where commits may not wait for longer.
	idleLag = 5 * time.Minute
	// idleMost is how much WAL may be idle, in bytes: what is more is not looked through.
	idleMost = 256 << 10
)

// wait is what is known of the WAL that waits in the last segment.
type wait struct {
	since time.Time // when idle WAL was first seen, zero if none was
	more  bool      // some of it is not idle
}

// due says whether a part is to be written now: WAL without a commit can wait.
func (a *Archiver) due(p format.Piece) (bool, error) {
	if a.MaxLag <= 0 {
		return true, nil
	}
	if !a.wait.more {
		idle, err := a.idle(p)
		if err != nil {
			return false, err
		}
		a.wait.more = !idle
	}
	now := a.Now()
	if a.wait.more {
		return now.Sub(a.waitsSince()) >= a.MaxLag, nil
	}
	if a.wait.since.IsZero() {
		a.wait.since = now
	}
	a.nothingWaits(p.Segment.Start().Add(uint64(p.To)))
	return now.Sub(a.wait.since) >= max(idleLag, a.MaxLag), nil
}

// idle says whether WAL is nothing but idle. What can't be understood is not.
func (f *termFolder) idle(p format.Piece) (bool, error) {
	from := p.From
	p.From = from / wal.PageSize * wal.PageSize // a page says where its first record begins
	if p.To-p.From > idleMost {
		return false, nil
	}
	content, err := f.readWAL(p)
	if err != nil {
		return false, err
	}
	return onlyIdle(content, p, from), nil
}

// onlyIdle says whether the records of a piece, which begins with a page, are idle as far as they end behind an offset
// in the segment. One that is not complete is looked at when it is.
func onlyIdle(content []byte, p format.Piece, from uint32) bool {
	begin, end := p.Segment.Start().Add(uint64(p.From)), p.Segment.Start().Add(uint64(p.To))
	w := records{stretch{content, begin}, map[uint32]bool{}}
	behind := p.Segment.Start().Add(uint64(from))
	begin = format.Pages.Record(begin)
	if len(content) < wal.PageHeader {
		return true
	}
	if binary.LittleEndian.Uint16(content[2:])&continued != 0 {
		rest := format.Pages.RecordEnd(begin, binary.LittleEndian.Uint32(content[remainder:]))
		if rest > behind {
			return false // its beginning is not here
		}
		begin = alignRecord(rest)
	}
	for {
		begin = format.Pages.Record(begin)
		if begin+recordHeader > end {
			return true
		}
		head := w.read(begin, recordLooked, end)
		length := binary.LittleEndian.Uint32(head)
		if length < recordHeader {
			return false
		}
		next, whole := w.recordEnd(begin, length)
		switch {
		case next > end:
			return true
		case whole && next > behind && !w.idle(head[:min(len(head), int(length))]):
			return false
		}
		begin = alignRecord(next)
	}
}

// What of a record says what it is (PostgreSQL 15 to 18: xlogrecord.h, rmgrlist.h, pg_control.h, xact.h, message.h).
const (
	recordHeader = 24
	// recordLooked is how much of a record is looked at, in bytes: up to the prefix of a message.
	recordLooked   = 64
	managerXact    = 1
	managerMessage = 21 // the last that there is
	opMask         = 0x70
	commitRecord   = 0x00
	prepareRecord  = 0x10
	commitPrepared = 0x30
	abortPrepared  = 0x40
	backupEnd      = 0x50
	restorePoint   = 0x70
	shortData      = 255 // what follows the header is the record's own data, with a length of one byte
	messagePrefix  = 50  // where in a message's record its prefix begins
)

// idlePrefix is that of the messages by which an agent proves that writes work (postgres.Session.ProveWrite), as
// PostgreSQL writes it.
const idlePrefix = "toban\x00"

// records reads a stretch of WAL.
type records struct {
	stretch
	// ours are the transactions that have written one of our messages.
	ours map[uint32]bool
}

// read is the part of a record that there is up to an LSN, without the headers of pages, at most so many bytes.
func (r records) read(begin wal.LSN, most int, end wal.LSN) []byte {
	var out []byte
	for len(out) < most && begin < end {
		left := uint64(most - len(out)) //nolint:gosec // the loop ends before it is negative
		upTo := min(end, begin-begin%wal.PageSize+wal.PageSize, begin.Add(left))
		out = append(out, r.content[begin-r.at:upTo-r.at]...)
		begin = format.Pages.Record(upTo)
	}
	return out
}

// idle says whether a record can wait: nobody was told that something is done when it was written, but an agent that
// proves that writes work.
func (r records) idle(head []byte) bool {
	transaction, info, manager := binary.LittleEndian.Uint32(head[4:]), head[recordInfo], head[recordInfo+1]
	switch {
	case manager == managerXLOG:
		return info&infoMask != backupEnd && info&infoMask != restorePoint
	case manager == managerXact:
		switch info & opMask {
		case commitRecord:
			return r.ours[transaction]
		case prepareRecord, commitPrepared, abortPrepared:
			return false
		}
		return true
	case manager < managerMessage:
		return true // changes, of use when they are committed
	case manager == managerMessage:
		if len(head) > messagePrefix && head[recordHeader] == shortData &&
			strings.HasPrefix(string(head[messagePrefix:]), idlePrefix) {
			r.ours[transaction] = true
			return true
		}
	}
	return false // an extension's, or one that is not known
}
