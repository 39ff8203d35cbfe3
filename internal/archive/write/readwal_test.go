package write

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"

	"toban.dev/internal/archive/archivetest"
	"toban.dev/internal/archive/bucket/buckettest"
	"toban.dev/internal/archive/format"
	"toban.dev/internal/ha"
	"toban.dev/internal/wal"
)

// written is a segment with records of these lengths, the last of which is one by which the segment is left if that is
// wished; it begins with so many bytes of a record of the one before.
func written(s wal.Segment, rest uint32, switched bool, lengths ...uint32) []byte {
	content := make([]byte, wal.SegmentSize)
	begin := format.Pages.Record(s.Start())
	if rest > 0 {
		binary.LittleEndian.PutUint16(content[2:], continued)
		binary.LittleEndian.PutUint32(content[remainder:], rest)
		begin = alignRecord(format.Pages.RecordEnd(begin, rest))
	}
	for i, length := range lengths {
		begin = format.Pages.Record(begin)
		binary.LittleEndian.PutUint32(content[begin-s.Start():], length)
		info := format.Pages.Record(format.Pages.RecordEnd(begin, recordInfo)) - s.Start()
		content[info], content[info+1] = 0x20, 10
		if switched && i == len(lengths)-1 {
			content[info], content[info+1] = switchRecord, managerXLOG
		}
		begin = alignRecord(format.Pages.RecordEnd(begin, length))
	}
	for at := wal.LSN(0); at < min(begin-s.Start(), wal.SegmentSize); at += wal.PageSize {
		binary.LittleEndian.PutUint64(content[at+8:], uint64(s.Start()+at))
		binary.LittleEndian.PutUint16(content[at:], 0xD110)
	}
	return content
}

// junk has all pages from one on be copies of another, as a new timeline's file has them (XLogFileCopy in
// PostgreSQL 15's xlog.c).
func junk(content []byte, from int) {
	for at := from; at < len(content); at += wal.PageSize {
		binary.LittleEndian.PutUint16(content[at:], 0xD110)
		binary.LittleEndian.PutUint64(content[at+8:], 0x4048000)
	}
}

func TestWhatFollowsASwitchOfSegmentsIsOfNoMeaning(t *testing.T) {
	s := format.SegmentOf(2, 4)
	whole := format.Piece{Segment: s, From: 0, To: wal.SegmentSize}
	for name, c := range map[string]struct {
		content []byte
		ok      bool
	}{
		"short records":      {written(s, 0, true, 50, 60, 24), true},
		"records over pages": {written(s, 0, true, 9000, 20000, 30, 24), true},
		"a header over two pages": {
			written(s, 0, true, wal.PageSize-wal.SegmentHeader-8, 100, 24), true,
		},
		"flags at the beginning of a page":          {written(s, 0, true, wal.PageSize-wal.SegmentHeader-16, 24), true},
		"the rest of a record before":               {written(s, 70001, true, 60, 24), true},
		"no switch":                                 {written(s, 0, false, 50, 60, 24), false},
		"no switch, and the rest of one":            {written(s, 300, false, 50, 60, 24), false},
		"a record that goes on where it can't be":   {written(s, 0, false, 50, 1<<20), false},
		"nothing but the rest of a record":          {written(s, 1<<23, false), false},
		"a length that goes beyond all of the file": {written(s, 0, false, 1<<30-1), false},
	} {
		t.Run(name, func(t *testing.T) {
			const from = 96 * wal.PageSize
			junk(c.content, from)
			if at := format.ForeignPage(c.content, whole); at != from {
				t.Fatalf("the first foreign page is at %d", at)
			}
			if ok := switchedBefore(c.content, s, from); ok != c.ok {
				t.Errorf("switched: %v", ok)
			}
		})
	}
}

// bytesFile is a file in memory.
type bytesFile []byte

func (f bytesFile) ReadAt(p []byte, at int64) (int, error) { return copy(p, f[at:]), nil }
func (bytesFile) Close() error                             { return nil }

// oneFile is a source whose files are all the same.
type oneFile struct {
	*archivetest.Source
	content []byte
}

func (o oneFile) Open(string) (File, error) { return bytesFile(o.content), nil }

// A standby whose primary was killed in the moment of a switch has the record of it, and an old tail behind it.
func TestATailOfASegmentThatWasLeftIsArchivedAsZeros(t *testing.T) {
	s := format.SegmentOf(2, 4)
	content := written(s, 0, true, 50, 60, 24)
	junk(content, 96*wal.PageSize)
	history := []ha.TermStart{{Term: 2, Timeline: 2}, {Term: 3, Timeline: 3, LSN: s.End()}}
	a := newTestArchiver(t, buckettest.NewMemory(),
		oneFile{&archivetest.Source{Terms: history, End: s.End()}, content}, history)
	read, err := a.readWAL(format.Piece{Segment: s, From: 0, To: wal.SegmentSize})
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range read[96*wal.PageSize:] {
		if b != 0 {
			t.Fatal("the old tail is archived")
		}
	}
	if binary.LittleEndian.Uint64(read[8:]) != uint64(s.Start()) {
		t.Error("the records are gone too")
	}
	rest, err := a.readWAL(format.Piece{Segment: s, From: 90*wal.PageSize + 77, To: wal.SegmentSize})
	if err != nil || !bytes.Equal(rest, read[90*wal.PageSize+77:]) {
		t.Errorf("the last part of it is not as the whole one is: %v", err)
	}
	if _, err := a.readWAL(format.Piece{Segment: s, From: 0, To: 200 * wal.PageSize}); !errors.Is(err, errRecycled) {
		t.Errorf("a part with an old tail: %v", err)
	}
}
