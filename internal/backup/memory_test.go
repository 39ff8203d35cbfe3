package backup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"toban.dev/internal/archive/bucket"
	"toban.dev/internal/ha"
	"toban.dev/internal/wal"
)

var errInjected = errors.New("the bucket is away")

type stored struct {
	content  []byte
	modified time.Time
}

// memoryBucket is a bucket in memory. Each call asks fault what to do.
type memoryBucket struct {
	mutex   sync.Mutex
	objects map[string]stored
	clock   time.Time
	changed int // how often an object was written whose name had one
	// fault is asked before and after what a call does; an error is returned.
	fault func(after bool) error
}

func newMemoryBucket() *memoryBucket {
	return &memoryBucket{
		objects: map[string]stored{}, clock: time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC),
		fault: func(bool) error { return nil },
	}
}

func (m *memoryBucket) do(ctx context.Context, what func() error) error {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err := m.fault(false); err != nil {
		return err
	}
	if err := what(); err != nil {
		return err
	}
	return m.fault(true)
}

func (m *memoryBucket) Put(ctx context.Context, name string, content []byte) error {
	return m.do(ctx, func() error {
		if _, ok := m.objects[name]; ok {
			m.changed++
		}
		m.objects[name] = stored{bytes.Clone(content), m.clock}
		return nil
	})
}

func (m *memoryBucket) Create(ctx context.Context, name string, content []byte) error {
	return m.do(ctx, func() error {
		if _, ok := m.objects[name]; ok {
			return fmt.Errorf("create %s: %w", name, bucket.ErrExists)
		}
		m.objects[name] = stored{bytes.Clone(content), m.clock}
		return nil
	})
}

func (m *memoryBucket) Get(ctx context.Context, name string) (r io.ReadCloser, err error) {
	err = m.do(ctx, func() error {
		o, ok := m.objects[name]
		if !ok {
			return fmt.Errorf("get %s: %w", name, bucket.ErrNotExist)
		}
		r = io.NopCloser(bytes.NewReader(o.content))
		return nil
	})
	return r, err
}

func (m *memoryBucket) List(ctx context.Context, prefix string) iter.Seq2[bucket.Object, error] {
	return m.ListAfter(ctx, prefix, "")
}

func (m *memoryBucket) ListAfter(ctx context.Context, prefix, after string) iter.Seq2[bucket.Object, error] {
	return func(yield func(bucket.Object, error) bool) {
		var found []bucket.Object
		err := m.do(ctx, func() error {
			for name, o := range m.objects {
				if name > after && strings.HasPrefix(name, prefix) {
					found = append(found, bucket.Object{Name: name, Size: int64(len(o.content)), Modified: o.modified})
				}
			}
			return nil
		})
		slices.SortFunc(found, func(a, b bucket.Object) int { return strings.Compare(a.Name, b.Name) })
		for i, o := range found {
			if err != nil && i == len(found)/2 {
				break // some were listed before the error
			}
			if !yield(o, nil) {
				return
			}
		}
		if err != nil {
			yield(bucket.Object{}, err)
		}
	}
}

func (m *memoryBucket) Delete(ctx context.Context, names ...string) error {
	for _, name := range names {
		if err := m.do(ctx, func() error { delete(m.objects, name); return nil }); err != nil {
			return err
		}
	}
	return nil
}

// without gives the same objects, and no failures.
func (m *memoryBucket) without() *memoryBucket {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	calm := newMemoryBucket()
	calm.objects, calm.clock = maps.Clone(m.objects), m.clock
	return calm
}

// testWAL writes what a term history's WAL is from an LSN on: each byte depends on its place and
// the term it was written in.
func testWAL(history []ha.TermStart, at wal.LSN, into []byte) {
	owner := func(lsn wal.LSN) (term uint64, until wal.LSN) {
		until = ^wal.LSN(0)
		for i := range history {
			if s := history[i]; s.LSN <= lsn {
				term, until = s.Term, cutoff(history, i)
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
	segment, ok := wal.ParseSegment(name, segmentSize)
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
