package write

import (
	"context"
	"encoding/binary"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"sync"
	"testing"

	"toban.dev/internal/archive/format"
	"toban.dev/internal/wal"
)

// server writes WAL as PostgreSQL does, as far as an archiver looks.
type server struct {
	mutex    sync.Mutex
	at       wal.LSN
	next     uint32 // the next transaction
	segments map[uint64][]byte
	random   *rand.ChaCha8
}

func newServer(at wal.LSN) *server {
	return &server{at: at, next: 700, segments: map[uint64][]byte{}, random: rand.NewChaCha8([32]byte{1})}
}

func (s *server) Flushed(context.Context) (wal.LSN, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.at, nil
}

func (s *server) Oldest(context.Context) (wal.LSN, error) { return wal.SegmentSize, nil }
func (s *server) History(wal.Timeline) ([]byte, error)    { return nil, fs.ErrNotExist }

func (s *server) Open(name string) (File, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	segment, _ := wal.ParseSegment(name, format.SegmentSize)
	if s.segments[segment.Number] == nil {
		return nil, fmt.Errorf("open %s: %w", name, fs.ErrNotExist)
	}
	return lockedFile{s, segment.Number}, nil
}

type lockedFile struct {
	*server
	number uint64
}

func (f lockedFile) ReadAt(p []byte, off int64) (int, error) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	p = p[:min(int64(len(p)), wal.SegmentSize-off)]
	written := f.segments[f.number]
	clear(p[copy(p, written[min(off, int64(len(written))):]):])
	return len(p), nil
}

func (lockedFile) Close() error { return nil }

// page is what there is of a segment, up to the end of the page that is written now at least: thousands of servers that
// write a little need no whole segments.
func (s *server) page(segment wal.Segment) []byte {
	end := int(s.at/wal.PageSize*wal.PageSize + wal.PageSize - segment.Start())
	if had := s.segments[segment.Number]; len(had) < end {
		s.segments[segment.Number] = append(had, make([]byte, min(max(end, 2*len(had)), wal.SegmentSize)-len(had))...)
	}
	return s.segments[segment.Number]
}

// put writes bytes of a record, and the header of a page before them where one begins.
func (s *server) put(data []byte, inside bool) {
	for len(data) > 0 {
		segment := format.SegmentAt(1, s.at)
		here := s.page(segment)[s.at-segment.Start():]
		if s.at%wal.PageSize == 0 {
			binary.LittleEndian.PutUint16(here, 0xD116)
			if inside {
				binary.LittleEndian.PutUint16(here[2:], continued)
				binary.LittleEndian.PutUint32(here[remainder:], uint32(len(data)))
			}
			binary.LittleEndian.PutUint32(here[4:], 1)
			binary.LittleEndian.PutUint64(here[8:], uint64(s.at))
			s.at = format.Pages.Record(s.at)
			continue
		}
		n := copy(here[:wal.PageSize-s.at%wal.PageSize], data)
		s.at, data, inside = s.at+wal.LSN(n), data[n:], true
	}
}

// record writes one.
func (s *server) record(transaction uint32, manager, info byte, data []byte) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	record := make([]byte, recordHeader, recordHeader+len(data))
	binary.LittleEndian.PutUint32(record, uint32(recordHeader+len(data)))
	binary.LittleEndian.PutUint32(record[4:], transaction)
	record[recordInfo], record[recordInfo+1] = info, manager
	s.at = alignRecord(s.at)
	s.put(append(record, data...), false)
	s.at = alignRecord(s.at)
}

// message is one in the WAL that nobody reads; its transaction is to be committed.
func (s *server) message(prefix string) (transaction uint32) {
	transaction = s.begin()
	data := binary.LittleEndian.AppendUint32([]byte{shortData, byte(24 + len(prefix) + 5)}, 5)
	data = append(data, 1, 0, 0, 0)
	data = binary.LittleEndian.AppendUint64(data, uint64(len(prefix)))
	data = binary.LittleEndian.AppendUint64(data, 5)
	s.record(transaction, managerMessage, 0, append(append(data, prefix...), "alive"...))
	return transaction
}

// begin is the number of a new transaction.
func (s *server) begin() uint32 {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.next++
	return s.next
}

func (s *server) commit(transaction uint32) {
	s.record(transaction, managerXact, 0x80, []byte{shortData, 8, 1, 2, 3, 4, 5, 6, 7, 8})
}

func (s *server) proveWrite()   { s.commit(s.message(idlePrefix)) }
func (s *server) snapshot()     { s.record(0, 8, 0x10, make([]byte, 30)) }
func (s *server) checkpoint()   { s.record(0, managerXLOG, 0x10, make([]byte, 90)) }
func (s *server) restorePoint() { s.record(0, managerXLOG, 0x70, make([]byte, 74)) }

// insert is what a user writes, of which half can't be compressed.
func (s *server) insert(size int) uint32 {
	transaction, data := s.begin(), make([]byte, size)
	_, _ = s.random.Read(data[:size/2])
	s.record(transaction, 10, 0, data)
	return transaction
}

func TestWhatIsIdle(t *testing.T) {
	for name, c := range map[string]struct {
		write func(s *server)
		want  bool
	}{
		"nothing":                                {func(*server) {}, true},
		"the proof that writes work":             {(*server).proveWrite, true},
		"a snapshot of the running transactions": {(*server).snapshot, true},
		"a checkpoint":                           {(*server).checkpoint, true},
		"what is not committed yet":              {func(s *server) { s.insert(100) }, true},
		"more of it, over many pages":            {func(s *server) { s.insert(50000) }, true},
		"more of it than can be looked through":  {func(s *server) { s.insert(idleMost) }, false},
		"an abort":                               {func(s *server) { s.record(s.next, managerXact, 0xA0, nil) }, true},
		"a commit":                               {func(s *server) { s.commit(s.insert(100)) }, false},
		"a commit of what was written before":    {func(s *server) { s.commit(5) }, false},
		"one that is prepared":                   {func(s *server) { s.record(5, managerXact, 0x90, nil) }, false},
		"a commit of what was prepared":          {func(s *server) { s.record(5, managerXact, 0xB0, nil) }, false},
		"another's message":                      {func(s *server) { s.commit(s.message("tobani\x00")) }, false},
		"a message of a backup":                  {func(s *server) { s.message("toban backup\x00") }, false},
		"a commit of ours and one of a user's":   {func(s *server) { s.proveWrite(); s.commit(5) }, false},
		"a restore point":                        {(*server).restorePoint, false},
		"the end of a backup": {
			func(s *server) { s.record(0, managerXLOG, 0x50, make([]byte, 8)) }, false,
		},
		"an extension's own":    {func(s *server) { s.record(9, 200, 0, nil) }, false},
		"one that is not known": {func(s *server) { s.record(9, 22, 0, nil) }, false},
	} {
		// From everywhere in a page, so that each record is also torn by a header.
		for before := wal.LSN(0); before < wal.PageSize; before += 56 {
			s := newServer(2*wal.SegmentSize + 9*wal.PageSize)
			s.insert(20000)
			for s.at%wal.PageSize < before {
				s.at += 8
			}
			from := s.at
			if from%wal.PageSize < wal.PageHeader {
				continue
			}
			zeroFrom(s, from)
			for range 3 {
				s.proveWrite()
			}
			c.write(s)
			s.snapshot()
			checkIdle(t, fmt.Sprintf("%s, %d bytes into a page", name, before), s, from, c.want)
			if t.Failed() {
				return
			}
		}
	}
}

// zeroFrom makes the record that ends before an LSN as long as it would have to be: the page says that it goes so far.
func zeroFrom(s *server, from wal.LSN) {
	segment := format.SegmentAt(1, from)
	page := s.segments[segment.Number][from/wal.PageSize*wal.PageSize-segment.Start():]
	binary.LittleEndian.PutUint16(page[2:], continued)
	binary.LittleEndian.PutUint32(page[remainder:], uint32(from%wal.PageSize-wal.PageHeader))
}

func checkIdle(t *testing.T, name string, s *server, from wal.LSN, want bool) {
	t.Helper()
	a := &termFolder{ArchiverOptions: &ArchiverOptions{Source: s}}
	segment := format.SegmentAt(1, from)
	piece := format.Piece{Segment: segment, From: uint32(from - segment.Start()), To: uint32(s.at - segment.Start())}
	if got, err := a.idle(piece); err != nil || got != want {
		t.Errorf("%s: idle %t, want %t: %v", name, got, want, err)
	}
	for to := piece.From + 1; want && to < piece.To; to += 29 { // flushed in the midst of a record
		if got, err := a.idle(format.Piece{Segment: segment, From: piece.From, To: to}); err != nil || !got {
			t.Errorf("%s, up to %d: idle %t: %v", name, to-piece.From, got, err)
		}
	}
}

func TestWhatCannotBeUnderstoodIsNotIdle(t *testing.T) {
	s := newServer(2 * wal.SegmentSize)
	s.proveWrite()
	page := s.segments[2]
	for name, spoil := range map[string]func(){
		"a record without a length":  func() { binary.LittleEndian.PutUint32(page[wal.SegmentHeader:], 0) },
		"one with less than nothing": func() { binary.LittleEndian.PutUint32(page[wal.SegmentHeader:], 23) },
		"the rest of one before": func() {
			binary.LittleEndian.PutUint16(page[2:], continued)
			binary.LittleEndian.PutUint32(page[remainder:], 8)
		},
	} {
		before := append([]byte(nil), page[:100]...)
		spoil()
		checkIdle(t, name, s, 2*wal.SegmentSize, false)
		copy(page, before)
	}
	checkIdle(t, "as it was", s, 2*wal.SegmentSize, true)
}
