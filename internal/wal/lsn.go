// Package wal has the words of PostgreSQL's WAL that the rest of Toban is written in: positions, segments with the
// names of their files, timelines and their history files. It does no I/O.
package wal

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// LSN is a position in the WAL in bytes (PostgreSQL 17 documentation, 8.20 pg_lsn Type; XLogRecPtr in xlogdefs.h). In
// JSON it is a number.
type LSN uint64

// MaxLSN is the highest position. No server ever comes to it.
const MaxLSN = LSN(math.MaxUint64)

// ParseLSN reads PostgreSQL's notation, such as 16/B374D848 (pg_lsn_in_internal in pg_lsn.c).
func ParseLSN(text string) (LSN, error) {
	high, low, ok := strings.Cut(text, "/")
	if !ok {
		return 0, fmt.Errorf("%q is no WAL position: it has no '/'", text)
	}
	h, err := strconv.ParseUint(high, 16, 32)
	if err != nil {
		return 0, fmt.Errorf("%q is no WAL position: %w", text, err)
	}
	l, err := strconv.ParseUint(low, 16, 32)
	if err != nil {
		return 0, fmt.Errorf("%q is no WAL position: %w", text, err)
	}
	return LSN(h<<32 | l), nil
}

// String writes PostgreSQL's notation (LSN_FORMAT_ARGS in xlogdefs.h).
func (l LSN) String() string { return fmt.Sprintf("%X/%X", uint64(l)>>32, uint64(l)&0xFFFFFFFF) }

// Add is the position this many bytes later. What would go over the highest position is MaxLSN: no sum is before where
// it began, so that a number from outside can't make a later position an earlier one.
func (l LSN) Add(bytes uint64) LSN {
	if bytes > uint64(MaxLSN-l) {
		return MaxLSN
	}
	return l + LSN(bytes)
}

// Since is how many bytes of WAL there are from a position up to this one; 0 where that is a later one.
func (l LSN) Since(begin LSN) uint64 {
	if begin > l {
		return 0
	}
	return uint64(l - begin)
}
