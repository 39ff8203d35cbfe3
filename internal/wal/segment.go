package wal

import (
	"fmt"
	"math/bits"
	"strconv"
)

// SegmentSize is how long a segment is in bytes: initdb's default, which Toban's servers never change (PostgreSQL 17
// documentation, 28.6 WAL Internals; DEFAULT_XLOG_SEG_SIZE in pg_config_manual.h).
const SegmentSize = 16 << 20

// Segment is the WAL of a timeline that one file has: Size bytes, from Number times Size on.
type Segment struct {
	Timeline Timeline
	Number   uint64
	// Size is SegmentSize, but for servers that are not Toban's, and tests.
	Size uint64
}

// SegmentAt is the segment of a timeline which has a position (XLByteToSeg in xlog_internal.h).
func SegmentAt(timeline Timeline, at LSN, size uint64) Segment {
	return Segment{timeline, uint64(at) / size, size}
}

// Start is the position of its first byte; MaxLSN where it would be behind that.
func (s Segment) Start() LSN {
	over, at := bits.Mul64(s.Number, s.Size)
	if over > 0 {
		return MaxLSN
	}
	return LSN(at)
}

// End is the position after its last byte; MaxLSN for the last segment of all, which has none after it.
func (s Segment) End() LSN { return s.Start().Add(s.Size) }

// String is the name of its file: timeline, high and low part, eight hexadecimal digits each (XLogFileName in
// xlog_internal.h).
func (s Segment) String() string {
	each := 1 << 32 / s.Size // XLogSegmentsPerXLogId
	return fmt.Sprintf("%08X%08X%08X", uint32(s.Timeline), s.Number/each, s.Number%each)
}

// ParseSegment reads the name of a WAL file (XLogFromFileName in xlog_internal.h); false for any other name. The size
// is that of the server's segments: it has to be a power of two of at most 1 GiB.
func ParseSegment(name string, size uint64) (Segment, bool) {
	if !isSegmentName(name) || !isSegmentSize(size) {
		return Segment{}, false
	}
	each := 1 << 32 / size
	timeline, _ := strconv.ParseUint(name[:8], 16, 32) // they are hexadecimal digits
	high, _ := strconv.ParseUint(name[8:16], 16, 32)
	low, _ := strconv.ParseUint(name[16:], 16, 32)
	return Segment{Timeline(timeline), high*each + low, size}, low < each
}

// SegmentStart is where the WAL file with this name begins.
func SegmentStart(file string, size uint64) (LSN, error) {
	s, ok := ParseSegment(file, size)
	if !ok {
		return 0, fmt.Errorf("%q is no name of a WAL file of %d bytes", file, size)
	}
	return s.Start(), nil
}

// isSegmentName is PostgreSQL's IsXLogFileName.
func isSegmentName(name string) bool { return len(name) == 24 && onlyHexDigits(name) }

// isSegmentSize is PostgreSQL's IsValidWalSegSize, but that tests may have smaller segments than 1 MiB.
func isSegmentSize(size uint64) bool { return size > 0 && size <= 1<<30 && size&(size-1) == 0 }

// onlyHexDigits is for names, in which PostgreSQL has capital letters only.
func onlyHexDigits(text string) bool {
	for _, c := range []byte(text) {
		if (c < '0' || c > '9') && (c < 'A' || c > 'F') {
			return false
		}
	}
	return true
}
