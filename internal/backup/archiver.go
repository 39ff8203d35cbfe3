package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"sync"
	"time"

	"toban.dev/internal/bucket"
	"toban.dev/internal/ha"
)

// How WAL is archived.
const (
	// parallel is how many segments are compressed and written at the same time. Each needs the segment, 16 MiB; what
	// it is compressed to, at most 17 MiB, and half of a segment more while that grows; and where it is encrypted, as
	// much again: 60 MiB, and 180 MiB in all, if nothing can be compressed. Usual WAL takes half of that. A part needs
	// no more than one segment does.
	parallel = 3
	// perStep is how many segments are archived before the server is asked again how far it is.
	perStep = 64
	// samples is how many moments are remembered at which more WAL was seen.
	samples = 512
)

// partSize is from where on a part is not made longer any more, in bytes; less in tests.
var partSize uint32 = 1 << 20

// Source is the WAL of the leader.
type Source interface {
	// Flushed is up to where it is on disk.
	Flushed(ctx context.Context) (ha.LSN, error)
	// Oldest is where the oldest segment begins that there is.
	Oldest(ctx context.Context) (ha.LSN, error)
	// Open opens a segment in pg_wal by its name; fs.ErrNotExist if it is gone.
	Open(name string) (File, error)
	// History is the content of a timeline's history file; fs.ErrNotExist if it is not there.
	History(timeline uint32) ([]byte, error)
}

// File is a segment.
type File interface {
	io.ReaderAt
	io.Closer
}

// ArchiverOptions say what is archived, and where.
type ArchiverOptions struct {
	// Bucket is rooted at the archive, which must be that of Owner.
	Bucket  bucket.Bucket
	Owner   Owner
	Encoder *Encoder
	Source  Source
	// TermHistory is the leader's, as it is when its server is a primary. Its last term, in which
	// its timeline began, is the term that is written under.
	TermHistory []ha.TermStart
	// Changed, if set, is called when the state has changed, not by several at once.
	Changed func(State)
	// Now is the clock; nil is the system's.
	Now func() time.Time
}

// State is how far the archive is.
type State struct {
	// Archived is up to where the WAL is in the archive, 0 until that is known. Flushed is up to where it is on disk.
	Archived, Flushed ha.LSN
	// ArchivedAt: all WAL that was seen on disk at that moment is in the archive. The lag in time
	// is what has passed since.
	ArchivedAt time.Time
	// Gap is the latest of the term history that this leader knows of.
	Gap *Gap
	// Err is why nothing is archived, since Since; nil if all is well.
	Err   error
	Since time.Time
}

// Slot is up to where the server need not keep WAL for the archive: the start of the segment
// that is archived next, 0 if that is not known.
func (s State) Slot() ha.LSN { return SegmentAt(0, s.Archived).Start() }

// Lag is how much WAL is not archived, in bytes.
func (s State) Lag() uint64 { return uint64(max(s.Flushed, s.Archived) - s.Archived) }

type sample struct {
	lsn ha.LSN
	at  time.Time
}

// Archiver archives the WAL of a leader in its term. Step and Run must not be called by several.
type Archiver struct {
	ArchiverOptions
	folder string
	opened bool
	// next is the segment to archive; own are its pieces and those after it in the own folder, garbage
	// the names of parts there that others have replaced.
	next    uint64
	own     map[Piece]string
	garbage []string
	seen    []sample

	mutex sync.Mutex
	state State
}

// NewArchiver makes an archiver; nothing is read yet.
func NewArchiver(o ArchiverOptions) (*Archiver, error) {
	if len(o.TermHistory) == 0 || o.TermHistory[len(o.TermHistory)-1].Timeline == 0 {
		return nil, errors.New("archive WAL: the leader has no timeline yet")
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	o.TermHistory = slices.Clone(o.TermHistory)
	return &Archiver{ArchiverOptions: o, folder: TermFolder(o.TermHistory[len(o.TermHistory)-1].Term)}, nil
}

// State is how far the archive is.
func (a *Archiver) State() State {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	return a.state
}

func (a *Archiver) change(change func(*State)) {
	a.mutex.Lock()
	before := a.state
	change(&a.state)
	after := a.state
	a.mutex.Unlock()
	if a.Changed != nil && before != after {
		a.Changed(after)
	}
}

// The pause after an error, the first and the longest.
const (
	firstPause   = time.Second
	longestPause = 10 * time.Second
)

// Run archives until ctx ends, and looks for new WAL in this interval.
func (a *Archiver) Run(ctx context.Context, every time.Duration) {
	pause := firstPause
	for ctx.Err() == nil {
		behind, err := a.Step(ctx)
		wait := every
		switch {
		case err != nil:
			wait, pause = pause, min(2*pause, longestPause)
		case behind:
			wait, pause = 0, firstPause
		default:
			pause = firstPause
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
		timer.Stop()
	}
}

// Step archives what is new, and says whether there is more. After an error it can
// be called again; State has the error too.
func (a *Archiver) Step(ctx context.Context) (behind bool, err error) {
	behind, err = a.step(ctx)
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	a.change(func(s *State) {
		if err == nil {
			s.Err, s.Since = nil, time.Time{}
			return
		}
		if s.Err == nil {
			s.Since = a.Now()
		}
		if s.Err == nil || s.Err.Error() != err.Error() {
			s.Err = err
		}
	})
	return behind, err
}

func (a *Archiver) step(ctx context.Context) (behind bool, err error) {
	flushed, err := a.Source.Flushed(ctx)
	if err != nil {
		return false, fmt.Errorf("ask how far the WAL is on disk: %w", err)
	}
	a.saw(flushed)
	if !a.opened {
		if err := a.open(ctx); err != nil {
			return false, fmt.Errorf("look where the archive ends: %w", err)
		}
		a.opened = true
	}
	last := SegmentAt(0, flushed).Number
	end := min(last, a.next+perStep)
	err = a.archiveSegments(ctx, end)
	if errors.Is(err, fs.ErrNotExist) {
		return true, a.skip(ctx, err)
	}
	if err != nil || end < last {
		return err == nil, errors.Join(err, a.clean(ctx))
	}
	if err := a.archiveTail(ctx, flushed); errors.Is(err, fs.ErrNotExist) {
		return true, a.skip(ctx, err)
	} else if err != nil {
		return false, err
	}
	return false, a.clean(ctx)
}

// saw notes how far the WAL is now.
func (a *Archiver) saw(flushed ha.LSN) {
	if n := len(a.seen); n == 0 || a.seen[n-1].lsn < flushed {
		a.seen = append(a.seen, sample{flushed, a.Now()})
	}
	if len(a.seen) > samples {
		// Every second one goes, but not the first, which the lag goes by.
		kept := a.seen[:0]
		for i, s := range a.seen {
			if i%2 == 0 || i == len(a.seen)-1 {
				kept = append(kept, s)
			}
		}
		a.seen = kept
	}
	a.change(func(s *State) { s.Flushed = flushed })
	a.reached(a.State().Archived)
}

// reached moves the archived position, which never goes back.
func (a *Archiver) reached(lsn ha.LSN) {
	flushed := a.State().Flushed
	var at time.Time
	for len(a.seen) > 0 && a.seen[0].lsn <= lsn {
		at = a.seen[0].at
		if len(a.seen) == 1 && lsn >= flushed {
			at = a.Now() // all that there is
			break
		}
		a.seen = a.seen[1:]
	}
	a.change(func(s *State) {
		s.Archived = max(s.Archived, lsn)
		if at.After(s.ArchivedAt) {
			s.ArchivedAt = at
		}
	})
}

// archiveSegments archives the complete segments before the one with the number end,
// several at a time. The position moves over them in their order.
func (a *Archiver) archiveSegments(ctx context.Context, end uint64) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var first error
	var pending []chan error
	number := a.next
	for first == nil && number < end || len(pending) > 0 {
		if first == nil && number < end && len(pending) < parallel {
			pending = append(pending, a.begin(ctx, a.segment(number)))
			number++
			continue
		}
		err := <-pending[0]
		pending = pending[1:]
		done := Piece{a.segment(number - 1 - uint64(len(pending))), 0, uint32(segmentSize)}
		if err == nil {
			a.own[done] = a.name(done)
		}
		if err == nil && first == nil {
			a.advance(done.Segment.Number + 1)
		}
		if err != nil && first == nil {
			first = err
			cancel() // what the others do is not lost: what is written is found to exist
		}
	}
	return first
}

func (a *Archiver) segment(number uint64) Segment {
	return Segment{timelineAt(a.TermHistory, number), number}
}

// name is that of the object of a piece.
func (a *Archiver) name(p Piece) string { return a.folder + a.Encoder.Name(p.String()) }

// begin archives a segment at the side, unless it is in the own folder.
func (a *Archiver) begin(ctx context.Context, s Segment) chan error {
	result := make(chan error, 1)
	piece := Piece{s, 0, uint32(segmentSize)}
	if a.own[piece] != "" {
		result <- nil
		return result
	}
	go func() { result <- a.archive(ctx, piece) }()
	return result
}

// advance moves the position to the start of a segment. The parts of those before go.
func (a *Archiver) advance(number uint64) {
	a.next = number
	for p, name := range a.own {
		if p.Segment.Number >= number {
			continue
		}
		if !p.Whole() && a.own[Piece{p.Segment, 0, uint32(segmentSize)}] != "" {
			a.garbage = append(a.garbage, name)
			delete(a.own, p)
		}
	}
	for p := range a.own {
		if p.Segment.Number < number {
			delete(a.own, p)
		}
	}
	a.reached(Segment{Number: number}.Start())
}

// archiveTail archives what there is of the last segment, as a longer version of the last part
// if that is short. A part has all that came since, so that there are few requests when much does.
func (a *Archiver) archiveTail(ctx context.Context, flushed ha.LSN) error {
	s := a.segment(a.next)
	if flushed <= s.Start() {
		return nil
	}
	to := uint32(flushed - s.Start())
	last := a.lastPart(s)
	if last.To >= to {
		return nil
	}
	from := last.To
	if last.To-last.From < partSize {
		from = last.From
	}
	piece := Piece{s, from, to}
	if err := a.archive(ctx, piece); err != nil {
		return err
	}
	a.own[piece] = a.name(piece)
	if from < last.To {
		a.garbage = append(a.garbage, a.own[last])
		delete(a.own, last)
	}
	a.reached(flushed)
	return nil
}

// lastPart is the one at which the own parts of a segment, from its start on, end.
func (a *Archiver) lastPart(s Segment) Piece {
	last := Piece{Segment: s}
	for {
		next := last
		for p := range a.own {
			if p.Segment == s && p.From <= last.To && p.To > next.To {
				next = p
			}
		}
		if next == last {
			return last
		}
		last = next
	}
}

// archive writes a piece. That it is there already is what a lost answer leaves.
func (a *Archiver) archive(ctx context.Context, p Piece) error {
	content, err := a.readWAL(p)
	if err != nil {
		return fmt.Errorf("read %s: %w", p, err)
	}
	return a.create(ctx, p.String(), content)
}

func (a *Archiver) create(ctx context.Context, plain string, content []byte) error {
	sealed, err := a.Encoder.Encode(content)
	if err != nil {
		return fmt.Errorf("archive %s: %w", plain, err)
	}
	name := a.folder + a.Encoder.Name(plain)
	if err := a.Bucket.Create(ctx, name, sealed); err != nil && !errors.Is(err, bucket.ErrExists) {
		return fmt.Errorf("archive %s: %w", name, err)
	}
	return nil
}

// clean deletes the parts that others have replaced.
func (a *Archiver) clean(ctx context.Context) error {
	if len(a.garbage) == 0 {
		return nil
	}
	if err := a.Bucket.Delete(ctx, a.garbage...); err != nil {
		return fmt.Errorf("delete parts that were replaced: %w", err)
	}
	a.garbage = nil
	return nil
}

// skip goes on at the oldest segment that there is, if the next is gone (invariant 3).
func (a *Archiver) skip(ctx context.Context, cause error) error {
	oldest, err := a.Source.Oldest(ctx)
	if err != nil {
		return fmt.Errorf("look for the oldest WAL: %w", err)
	}
	start := Segment{Number: a.next}.Start()
	if oldest <= start {
		return cause
	}
	gap := &Gap{max(start, a.State().Archived), oldest}
	a.change(func(s *State) { s.Gap = gap })
	a.advance(SegmentAt(0, oldest).Number)
	return nil
}
