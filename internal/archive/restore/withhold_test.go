package restore

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"

	"toban.dev/internal/archive/format"
	"toban.dev/internal/wal"
)

// tablespaceSegment is a segment whose first record makes a tablespace.
func tablespaceSegment(start wal.LSN) []byte {
	content := make([]byte, format.SegmentSize)
	binary.LittleEndian.PutUint16(content, 0xD110)
	binary.LittleEndian.PutUint64(content[8:], uint64(start))
	header := [24]byte{17: 5}
	record := append(header[:], 255, 9, 1, 2, 3, 4)
	record = append(record, "/ts\x00\x00"...)
	binary.LittleEndian.PutUint32(record, uint32(len(record)))
	copy(content[wal.SegmentHeader:], record)
	return content
}

// What was made before the backup began is not replayed, and what a server needs before it is consistent can't be
// withheld from it.
func TestWhatIsWithheld(t *testing.T) {
	start := wal.LSN(3 * format.SegmentSize)
	begin, refused := start.Add(wal.SegmentHeader), errors.New("refused")
	for name, c := range map[string]struct {
		starts, stops wal.LSN
		put           uint64
		err           error
	}{
		"made before the backup began": {begin.Add(8), begin.Add(16), format.SegmentSize, nil},
		"made during the backup":       {start, begin.Add(8), 0, refused},
		"made after the backup":        {start, begin, wal.SegmentHeader, nil},
	} {
		r := NewRecovery(RecoverOptions{
			Backup:     format.Backup{StartLSN: c.starts, StopLSN: c.stops},
			Tablespace: func(wal.Tablespace) error { return refused },
		})
		want := tablespaceSegment(start)
		got, err := r.withhold(start, tablespaceSegment(start))
		clear(want[c.put:])
		if !errors.Is(err, c.err) || err == nil && !bytes.Equal(got, want) {
			t.Errorf("%s: %v, or it is not put as far as %d", name, err, c.put)
		}
		if withheld := c.err == nil && c.put < format.SegmentSize; withheld != (r.isWithheld() != nil) {
			t.Errorf("%s: withheld is %v", name, r.isWithheld())
		}
	}
}
