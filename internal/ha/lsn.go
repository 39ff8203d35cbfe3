package ha

import (
	"fmt"
	"strconv"
	"strings"
)

// LSN is a position in the WAL in bytes (PostgreSQL 17 documentation, 8.20 pg_lsn Type).
type LSN uint64

// ParseLSN reads PostgreSQL's notation, such as 16/B374D848.
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

// String writes PostgreSQL's notation.
func (l LSN) String() string { return fmt.Sprintf("%X/%X", uint64(l)>>32, uint64(l)&0xFFFFFFFF) }

// SegmentStart is where a WAL file with this name starts. Segments are size
// bytes long; the name is timeline, high and low part, eight hexadecimal digits
// each (PostgreSQL 17 documentation, 28.6 WAL Internals).
func SegmentStart(file string, size uint64) (LSN, error) {
	if len(file) != 24 {
		return 0, fmt.Errorf("%q is no WAL file name: it has not 24 digits", file)
	}
	high, err := strconv.ParseUint(file[8:16], 16, 32)
	if err != nil {
		return 0, fmt.Errorf("%q is no WAL file name: %w", file, err)
	}
	low, err := strconv.ParseUint(file[16:], 16, 32)
	if err != nil {
		return 0, fmt.Errorf("%q is no WAL file name: %w", file, err)
	}
	return LSN(high<<32 + low*size), nil
}
