package write

import (
	"context"
	"iter"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"toban.dev/internal/archive/archivetest"
	"toban.dev/internal/archive/book"
	"toban.dev/internal/archive/bucket"
	"toban.dev/internal/archive/bucket/buckettest"
	"toban.dev/internal/archive/format"
	"toban.dev/internal/ha"
	"toban.dev/internal/pause"
	"toban.dev/internal/wal"
)

// countingBucket counts what is asked of it. A write takes a while.
type countingBucket struct {
	*buckettest.Memory
	takes                      time.Duration
	puts, bytes, listed, lists atomic.Int64
	underWay, mostUnderWay     atomic.Int64
	hangs                      atomic.Bool
}

func (c *countingBucket) Create(ctx context.Context, name string, content []byte) error {
	c.puts.Add(1)
	c.bytes.Add(int64(len(content)))
	c.mostUnderWay.Store(max(c.mostUnderWay.Load(), c.underWay.Add(1)))
	defer c.underWay.Add(-1)
	if c.takes > 0 {
		time.Sleep(c.takes)
	}
	for c.hangs.Load() && pause.For(ctx, time.Second) {
		continue
	}
	return c.Memory.Create(ctx, name, content)
}

func (c *countingBucket) List(ctx context.Context, prefix string) iter.Seq2[bucket.Object, error] {
	return c.ListAfter(ctx, prefix, "")
}

func (c *countingBucket) ListAfter(ctx context.Context, prefix, after string) iter.Seq2[bucket.Object, error] {
	c.lists.Add(1)
	return func(yield func(bucket.Object, error) bool) {
		for o, err := range c.Memory.ListAfter(ctx, prefix, after) {
			c.listed.Add(1)
			if !yield(o, err) {
				return
			}
		}
	}
}

// every does something again and again, in virtual time.
func every(ctx context.Context, interval time.Duration, do func()) {
	go func() {
		for pause.For(ctx, interval) {
			do()
		}
	}()
}

// archiveFor runs an archiver for an hour of virtual time while a server writes, and returns how far behind it was.
func archiveFor(
	t *testing.T, b bucket.Bucket, s *server, maxLag time.Duration, write func(ctx context.Context),
) (behind time.Duration) {
	encoder, err := format.NewEncoder("")
	if err != nil {
		t.Fatal(err)
	}
	a, err := NewArchiver(ArchiverOptions{Bucket: b, Owner: archivetest.Owner, Encoder: encoder, Source: s,
		MaxLag:      maxLag,
		TermHistory: []ha.TermStart{{Term: 1, Timeline: 1}}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	write(ctx)
	go func() {
		for pause.For(ctx, time.Second) {
			state := a.State()
			if state.Err != nil {
				t.Error(state.Err)
			}
			behind = max(behind, state.Behind)
		}
	}()
	a.Run(ctx, 500*time.Millisecond)
	synctest.Wait()
	return behind
}

// idleServer writes what a server does while nobody writes to it.
func idleServer(ctx context.Context, s *server) {
	every(ctx, 10*time.Second, s.proveWrite)
	every(ctx, 15*time.Second, s.snapshot)
	every(ctx, 5*time.Minute, s.checkpoint)
}

// TestWhatAnHourCosts is that of docs/backup.md, "How far behind, and what that costs".
func TestWhatAnHourCosts(t *testing.T) {
	for _, c := range []struct {
		name     string
		maxLag   time.Duration
		size     int // of what a user writes
		interval time.Duration
		most     int64 // PUTs
	}{
		{"nobody writes", 10 * time.Second, 0, 0, 20},
		{"a commit in a minute", 10 * time.Second, 100, time.Minute, 65},
		{"4 KiB in a second", 10 * time.Second, 4 << 10, time.Second, 365},
		{"4 KiB in a second, at most a second behind", time.Second, 4 << 10, time.Second, 3605},
		{"4 KiB in a second, at most a minute behind", time.Minute, 4 << 10, time.Second, 65},
		{"128 KiB in a second", 10 * time.Second, 128 << 10, time.Second, 400},
	} {
		synctest.Test(t, func(t *testing.T) {
			b := &countingBucket{Memory: buckettest.NewMemory(), takes: 50 * time.Millisecond}
			s := newServer(wal.SegmentSize)
			behind := archiveFor(t, b, s, c.maxLag, func(ctx context.Context) {
				idleServer(ctx, s)
				if c.size > 0 {
					every(ctx, c.interval, func() { s.commit(s.insert(c.size)) })
				}
			})
			whole := compressedWhole(t, s)
			t.Logf("%s: %d PUTs, %d KiB of WAL, %d KiB uploaded, %d KiB if each segment were one; %s behind",
				c.name, b.puts.Load(), (s.at-wal.SegmentSize)>>10, b.bytes.Load()>>10, whole>>10, behind)
			if n := b.puts.Load(); n > c.most || n < 2 {
				t.Errorf("%s: %d PUTs, at most %d are wanted", c.name, n, c.most)
			}
			if c.size >= 4<<10 && b.bytes.Load() > whole*3/2 {
				t.Errorf("%s: %d bytes uploaded, and %d if each segment were one object", c.name, b.bytes.Load(), whole)
			}
			if behind > c.maxLag+time.Second {
				t.Errorf("%s: %s behind, at most %s is wanted", c.name, behind, c.maxLag)
			}
			catalogue, err := book.Read(t.Context(), b.Memory)
			if err != nil {
				t.Fatal(err)
			}
			to, gap := catalogue.Covered(catalogue.NewestTermHistory(), wal.SegmentSize)
			if gap != nil || c.size == 0 && s.at-to > 10<<10 {
				t.Errorf("%s: the archive goes to %s of %s, %v", c.name, to, s.at, gap)
			}
		})
	}
}

// compressedWhole is what the WAL would take if each segment were compressed as one.
func compressedWhole(t *testing.T, s *server) (size int64) {
	encoder, err := format.NewEncoder("")
	if err != nil {
		t.Fatal(err)
	}
	for number, content := range s.segments {
		if number == format.NumberAt(s.at) {
			content = content[:s.at%wal.SegmentSize]
		}
		stored, err := encoder.Encode(content)
		if err != nil {
			t.Fatal(err)
		}
		size += int64(len(stored))
	}
	return size
}

// What waits for a store that hangs is behind, longer and longer.
func TestLagGrowsWhileAStoreHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, s := &countingBucket{Memory: buckettest.NewMemory()}, newServer(wal.SegmentSize)
		var told atomic.Int64
		a := newTestArchiver(t, b, s, []ha.TermStart{{Term: 1, Timeline: 1}})
		a.MaxLag = 10 * time.Second
		a.Changed = func(state State) { told.Store(int64(state.Behind)) }
		ctx, cancel := context.WithCancel(t.Context())
		idleServer(ctx, s)
		every(ctx, time.Second, func() { s.commit(s.insert(100)) })
		done := make(chan struct{})
		go func() { a.Run(ctx, 500*time.Millisecond); close(done) }()
		time.Sleep(time.Minute)
		b.hangs.Store(true)
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		at, _ := s.Flushed(ctx)
		if now := a.State(); now.Behind < 4*time.Minute+50*time.Second || now.Flushed+4<<10 < at || now.Err != nil ||
			time.Duration(told.Load()) != now.Behind {
			t.Errorf("after five minutes %+v, told %s", now, time.Duration(told.Load()))
		}
		b.hangs.Store(false)
		time.Sleep(30 * time.Second)
		synctest.Wait()
		if now := a.State(); now.Behind > 11*time.Second {
			t.Errorf("when the store is back %+v", now)
		}
		cancel()
		<-done
	})
}

// As many segments are under way as wait, within the memory that there is.
func TestUploadsGrowWithWhatWaits(t *testing.T) {
	for _, c := range []struct{ segments, most int64 }{{1, 1}, {6, 6}, {64, mostUploads}} {
		synctest.Test(t, func(t *testing.T) {
			b := &countingBucket{Memory: buckettest.NewMemory(), takes: 250 * time.Millisecond}
			segment := make([]byte, wal.SegmentSize)
			a := newTestArchiver(t, b, &benchSource{wal.LSN(c.segments) * wal.SegmentSize, segment},
				[]ha.TermStart{{Term: 1, Timeline: 1}})
			mustStep(t, a)
			if a.State().Archived != wal.LSN(c.segments)*wal.SegmentSize || b.mostUnderWay.Load() != c.most {
				t.Errorf("of %d segments %d were under way at once: %+v", c.segments, b.mostUnderWay.Load(), a.State())
			}
		})
	}
}

// What can't be compressed is under way as far as memory goes.
func TestUploadsAreBoundedByMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &countingBucket{Memory: buckettest.NewMemory(), takes: time.Hour}
		segment := make([]byte, wal.SegmentSize)
		_, _ = rand.NewChaCha8([32]byte{3}).Read(segment)
		a := newTestArchiver(t, b, &benchSource{20 * wal.SegmentSize, segment}, []ha.TermStart{{Term: 1, Timeline: 1}})
		mustStep(t, a)
		// All but the last leave room for one more to be compressed.
		const most = (archiveMemory-encodeMemory)/wal.SegmentSize + 1
		if n := b.mostUnderWay.Load(); n > most || n < most/2 {
			t.Errorf("%d uploads of %d bytes were under way at once", n, wal.SegmentSize)
		}
	})
}

// generatedBucket lists a million segments that are not there.
type generatedBucket struct {
	*countingBucket
	terms    int
	segments uint64 // of each term
}

func (g generatedBucket) List(ctx context.Context, prefix string) iter.Seq2[bucket.Object, error] {
	return g.ListAfter(ctx, prefix, "")
}

func (g generatedBucket) ListAfter(_ context.Context, prefix, after string) iter.Seq2[bucket.Object, error] {
	return func(yield func(bucket.Object, error) bool) {
		g.lists.Add(1)
		for name := range g.names(prefix, after) {
			if name <= after || !strings.HasPrefix(name, prefix) {
				continue
			}
			g.listed.Add(1)
			if !yield(bucket.Object{Name: name, Size: 5 << 20}, nil) {
				return
			}
		}
	}
}

// names are at least those behind a name that begin with a prefix.
func (g generatedBucket) names(prefix, after string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for term := 1; term <= g.terms; term++ {
			folder := format.TermFolder(uint64(term))
			if folder+"~" < after || !strings.HasPrefix(folder, prefix) && !strings.HasPrefix(prefix, folder) {
				continue
			}
			first := uint64(term-1) * g.segments
			if s, ok := wal.ParseSegment(strings.TrimPrefix(after, folder), format.SegmentSize); ok {
				first = s.Number // all before that is not listed
			}
			for n := first; n < uint64(term)*g.segments; n++ {
				if !yield(folder + format.SegmentOf(wal.Timeline(term), n).String() + ".zst.age") {
					return
				}
			}
			if !yield(folder+wal.Timeline(term).HistoryFile()+".zst.age") || !yield(folder+format.FileLineage) {
				return
			}
		}
	}
}

// A new leader looks at few names, however many there are.
func TestAFailoverOnALargeArchive(t *testing.T) {
	const terms, each, local = 10, 100_000, 200
	var history []ha.TermStart
	for term := range wal.LSN(terms + 1) {
		history = append(history, ha.TermStart{Term: uint64(term) + 1, Timeline: wal.Timeline(term) + 1,
			LSN: term * each * wal.SegmentSize})
	}
	end := history[terms].LSN
	b := generatedBucket{&countingBucket{Memory: buckettest.NewMemory()}, terms, each}
	if err := format.Reclaim(t.Context(), b.Memory, archivetest.Owner); err != nil {
		t.Fatal(err)
	}
	source := &archivetest.Source{Terms: history, End: end + 100, Begin: end - local*wal.SegmentSize}
	a := newTestArchiver(t, b, source, history)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	began := time.Now()
	if err := a.open(t.Context(), source.End); err != nil {
		t.Fatal(err)
	}
	took := time.Since(began)
	runtime.ReadMemStats(&after)
	t.Logf("a million segments: %d listings of %d names in all, %s, %d KiB allocated in all, the test's names too",
		b.lists.Load(), b.listed.Load(), took, (after.TotalAlloc-before.TotalAlloc)>>10)
	if a.State().Archived != end || a.State().Gap != nil {
		t.Errorf("the archive ends at %s: %+v", end, a.State())
	}
	if b.lists.Load() > 10 || b.listed.Load() > local+mostUploads+20 {
		t.Errorf("%d listings gave %d names", b.lists.Load(), b.listed.Load())
	}
	// Where nothing joins, the end is looked for among all names, and none is kept.
	source.Begin = end + 10*wal.SegmentSize
	source.End = source.Begin + 100
	a = newTestArchiver(t, b, source, history)
	runtime.GC()
	runtime.ReadMemStats(&before)
	began = time.Now()
	if err := a.open(t.Context(), source.End); err != nil {
		t.Fatal(err)
	}
	took = time.Since(began)
	runtime.GC()
	runtime.ReadMemStats(&after)
	more := (int64(after.HeapAlloc) - int64(before.HeapAlloc)) >> 10
	t.Logf("... and a gap before it: %s, %d KiB more in use", took, more)
	if want := (format.Gap{From: end, To: source.Begin}); a.State().Gap == nil || *a.State().Gap != want {
		t.Errorf("the gap is %v, want %v", a.State().Gap, want)
	}
	names := slices.Collect(func(yield func(string) bool) {
		for name := range b.Objects {
			if strings.Contains(name, format.GapPrefix) && !yield(name) {
				return
			}
		}
	})
	if len(names) != 1 {
		t.Errorf("notes of gaps: %q", names)
	}
}

// vanishing is a leader's pg_wal of which checkpoints remove the first segments, each right after somebody has looked
// which is the oldest.
type vanishing struct {
	*archivetest.Source

	left []wal.LSN
}

func (s *vanishing) Oldest(context.Context) (wal.LSN, error) {
	was := s.Begin
	if len(s.left) > 0 {
		s.Begin, s.left = s.left[0], s.left[1:]
	}
	return was, nil
}

// A new archive begins where the server still has WAL, and lacks nothing. One that has some has a gap then.
func TestWALThatVanishesWhileAnArchiverStarts(t *testing.T) {
	archivetest.SmallSegments(t)
	const segment = 32768
	history := []ha.TermStart{{Term: 1, Timeline: 1}}
	b := buckettest.NewMemory()
	source := &archivetest.Source{Terms: history, End: 3*segment + 100}
	a := newTestArchiver(t, b, &vanishing{source, []wal.LSN{segment, 2 * segment}}, history)
	mustStep(t, a)
	if s := a.State(); s.Gap != nil || s.Archived != source.End {
		t.Errorf("a new archive goes to %s, and has a gap %v", s.Archived, s.Gap)
	}
	source.End = 9*segment + 100
	a = newTestArchiver(t, b, &vanishing{source, []wal.LSN{8 * segment}}, history)
	mustStep(t, a)
	if want := (format.Gap{From: 3*segment + 100, To: 8 * segment}); a.State().Gap == nil || *a.State().Gap != want {
		t.Errorf("an archive with WAL has a gap %v, want %v", a.State().Gap, want)
	}
	clear(b.Objects) // also where its bucket has lost it, or does not list it for a moment
	source.End, source.Begin = 20*segment+100, 15*segment
	mustStep(t, a)
	if want := (format.Gap{From: 9*segment + 100, To: 15 * segment}); a.State().Gap == nil || *a.State().Gap != want {
		t.Errorf("an archive whose WAL is away has a gap %v, want %v", a.State().Gap, want)
	}
}

// An archive that ends right where the server's WAL begins is not a new one: a gap behind that is not hidden either.
func TestAGapBehindAnArchiveThatEndsWithASegment(t *testing.T) {
	archivetest.SmallSegments(t)
	const segment = 32768
	history := []ha.TermStart{{Term: 1, Timeline: 1}}
	b := buckettest.NewMemory()
	source := &archivetest.Source{Terms: history, End: 3 * segment}
	mustStep(t, newTestArchiver(t, b, source, history))
	source.End, source.Begin = 9*segment+100, 3*segment
	a := newTestArchiver(t, b, &emptying{vanishing{source, []wal.LSN{5 * segment}}, b}, history)
	mustStep(t, a)
	if want := (format.Gap{From: 3 * segment, To: 5 * segment}); a.State().Gap == nil || *a.State().Gap != want {
		t.Errorf("it has a gap %v, want %v", a.State().Gap, want)
	}
}

// emptying has a bucket list nothing any more when the oldest WAL is looked for once more.
type emptying struct {
	vanishing
	bucket *buckettest.Memory
}

func (s *emptying) Oldest(ctx context.Context) (wal.LSN, error) {
	if len(s.left) == 0 {
		clear(s.bucket.Objects)
	}
	return s.vanishing.Oldest(ctx)
}

// Each leader takes over the gap that the one before it knew of, until it has the WAL itself.
func TestAGapIsKnownToTheNextLeaders(t *testing.T) {
	archivetest.SmallSegments(t)
	const segment = 32768
	first := []ha.TermStart{{Term: 1, Timeline: 1}}
	b := buckettest.NewMemory()
	source := &archivetest.Source{Terms: first, End: 2*segment + 100}
	a := newTestArchiver(t, b, source, first)
	mustStep(t, a)
	source.End, source.Begin = 100*segment+5, 60*segment // the bucket was away for long
	mustStep(t, a)
	gap := format.Gap{From: 2*segment + 100, To: 60 * segment}
	for _, c := range []struct {
		term   uint64
		oldest wal.LSN
		want   *format.Gap
	}{{2, 99 * segment, &gap}, {3, 60 * segment, &gap}, {4, 30 * segment,
		&format.Gap{From: 2*segment + 100, To: 30 * segment}},
		{5, 100 * segment, &format.Gap{From: 2*segment + 100, To: 30 * segment}}, {6, 0, nil},
		{7, 100 * segment, nil}} {
		start := ha.TermStart{Term: c.term, Timeline: wal.Timeline(c.term), LSN: 100*segment + 5}
		history := append(slices.Clone(first), start)
		a := newTestArchiver(t, b, &archivetest.Source{Terms: history, End: 101 * segment, Begin: c.oldest}, history)
		mustStep(t, a)
		got := a.State().Gap
		if (got == nil) != (c.want == nil) || got != nil && *got != *c.want {
			t.Errorf("the leader of term %d knows of a gap %v, want %v", c.term, got, c.want)
		}
		first = history
	}
}
