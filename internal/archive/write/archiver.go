// Package write archives the WAL of a leader as that is written: what is due, side by side and in order, with the notes
// of its term. It finds where the archive ends, compares what is there already, and says how far it is behind. What the
// leader knows of its WAL it is given as a Source.
package write

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"toban.dev/internal/archive/bucket"
	"toban.dev/internal/archive/format"
	"toban.dev/internal/ha"
	"toban.dev/internal/pause"
	"toban.dev/internal/wal"
)

const (
	// perStep is how many segments are archived before the server is asked again how far it is.
	perStep = 64
	// samples is how many moments are remembered at which more WAL was seen.
	samples = 512
)

// Source is the WAL of the leader. Its methods may be called at the same time.
type Source interface {
	// Flushed is up to where it is on disk.
	Flushed(ctx context.Context) (wal.LSN, error)
	// Oldest is where the oldest segment begins that there is.
	Oldest(ctx context.Context) (wal.LSN, error)
	// Open opens a segment in pg_wal by its name; fs.ErrNotExist if it is gone.
	Open(name string) (File, error)
	// History is the content of a timeline's history file; fs.ErrNotExist if it is not there.
	History(timeline wal.Timeline) ([]byte, error)
}

// File is a segment. Whoever has segments need not know this package for it.
type File = interface {
	io.ReaderAt
	io.Closer
}

// ArchiverOptions say what is archived, and where.
type ArchiverOptions struct {
	// Bucket is rooted at the archive, which must be that of Owner.
	Bucket  bucket.Bucket
	Owner   format.Owner
	Encoder *format.Encoder
	Source  Source
	// TermHistory is the leader's, as it is when its server is a primary. Its last term, in which
	// its timeline began, is the term that is written under.
	TermHistory []ha.TermStart
	// MaxLag is for how long a commit may wait in a segment that is not complete. With 0 everything is archived at
	// once, what the server writes by itself too.
	MaxLag time.Duration
	// Secret is what only this database system knows. What is encrypted is compared by it; nil if it is not known.
	Secret []byte
	// Changed, if set, is called when the state has changed, not by several at once.
	Changed func(State)
	// Now is the clock; nil is the system's.
	Now func() time.Time
}

// State is how far the archive is.
type State struct {
	// Archived is up to where the WAL is in the archive, 0 until that is known. Flushed is up to where it is on disk.
	Archived, Flushed wal.LSN
	// ArchivedAt: all WAL that was seen on disk at that moment is in the archive, or idle.
	ArchivedAt time.Time
	// Behind is for how long WAL has waited that is not idle, to a tenth of a second.
	Behind time.Duration
	// Gap is the latest of the term history that this leader knows of.
	Gap *format.Gap
	// Err is why nothing is archived, since Since; nil if all is well.
	Err   error
	Since time.Time
}

// Slot is up to where the server need not keep WAL for the archive: the start of the segment
// that is archived next, 0 if that is not known.
func (s State) Slot() wal.LSN { return format.SegmentStart(format.NumberAt(s.Archived)) }

// Lag is how much WAL is not archived, in bytes.
func (s State) Lag() uint64 { return uint64(max(s.Flushed, s.Archived) - s.Archived) }

// Archiver archives the WAL of a leader in its term. Step and Run must not be called by several.
type Archiver struct {
	termFolder
	lag
	opened bool
	// claimed is when archive.json was last seen.
	claimed time.Time
	memory  *semaphore.Weighted
	// next is the segment to archive, and done up to where parts have it, in bytes. own are the pieces from there on
	// that were found in the own folder, or written before their turn.
	next uint64
	done uint32
	own  map[format.Piece]bool
	wait wait
	// began is where an archive begins that had nothing yet, 0 for one that had.
	began wal.LSN
}

// termFolder is the folder in which a leader writes in its term.
type termFolder struct {
	*ArchiverOptions
	folder string
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
	return &Archiver{
		termFolder: termFolder{&o, format.TermFolder(o.TermHistory[len(o.TermHistory)-1].Term)},
		lag:        lag{options: &o}, memory: semaphore.NewWeighted(archiveMemory),
	}, nil
}

// term is the one that is written under.
func (f *termFolder) term() uint64 { return f.TermHistory[len(f.TermHistory)-1].Term }

// The pause after an error, the first and the longest.
const (
	firstPause   = time.Second
	longestPause = 10 * time.Second
)

// Run archives until ctx ends, and looks for new WAL in this interval.
func (a *Archiver) Run(ctx context.Context, every time.Duration) {
	var watching sync.WaitGroup
	watching.Go(func() { a.watch(ctx, every) })
	defer watching.Wait()
	again := firstPause
	for ctx.Err() == nil {
		behind, err := a.Step(ctx)
		wait := every
		switch {
		case err != nil:
			wait, again = again, min(2*again, longestPause)
		case behind:
			wait, again = 0, firstPause
		default:
			again = firstPause
		}
		pause.For(ctx, wait)
	}
}

// Finish archives what is left of a server that has stopped, up to the end of its WAL: at once, whatever MaxLag says.
// Run must have ended. Where archiving has failed before, nothing is tried, and that error is returned.
func (a *Archiver) Finish(ctx context.Context, end wal.LSN) error {
	if err := a.State().Err; err != nil {
		return err
	}
	a.MaxLag, a.Source = 0, stoppedSource{a.Source, end}
	stopped := a.Now()
	for behind := true; behind; {
		var err error
		if behind, err = a.Step(ctx); err != nil {
			return err
		}
	}
	return a.noteClock(ctx, format.ClockNote{LSN: end, At: stopped})
}

// stoppedSource is the WAL of a server that has stopped: its files, up to its end.
type stoppedSource struct {
	Source
	end wal.LSN
}

func (s stoppedSource) Flushed(context.Context) (wal.LSN, error) { return s.end, nil }

// Step archives what is due, and says whether there is more. After an error it can
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
	flushed, err := a.look(ctx)
	if err != nil {
		return false, err
	}
	if !a.opened {
		if err := a.open(ctx, flushed); err != nil {
			return false, fmt.Errorf("look where the archive ends: %w", err)
		}
		a.opened, a.claimed = true, a.Now()
	}
	if err := a.reclaim(ctx); err != nil {
		return false, err
	}
	last := format.NumberAt(flushed)
	end := min(last, a.next+perStep)
	err = a.archiveSegments(ctx, end)
	if err == nil && end < last {
		return true, nil
	}
	if err == nil {
		err = a.archiveTail(ctx, flushed)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return true, a.skip(ctx, err)
	}
	return false, err
}

func (a *Archiver) segment(number uint64) wal.Segment {
	return format.SegmentOf(format.TimelineAt(a.TermHistory, number), number)
}

// rest is the part of a segment to archive once that is complete: the one that no earlier part has.
func (a *Archiver) rest(number uint64) format.Piece {
	from := a.done
	if number != a.next {
		from = a.partsEnd(a.segment(number))
	}
	piece := format.WholeSegment(a.segment(number))
	piece.From = from
	return piece
}

// partsEnd is where the own pieces of a segment end, from its start on.
func (a *Archiver) partsEnd(s wal.Segment) uint32 {
	end := uint32(0)
	for last := end; ; last = end {
		for p := range a.own {
			if p.Segment == s && p.From <= last {
				end = max(end, p.To)
			}
		}
		if end == last {
			return end
		}
	}
}

// name is that of the object of a piece.
func (f *termFolder) name(p format.Piece) string { return f.folder + f.Encoder.Name(p.String()) }

// advance moves the position to the start of a segment.
func (a *Archiver) advance(number uint64) {
	a.next, a.wait = number, wait{}
	for p := range a.own {
		if p.Segment.Number < number {
			delete(a.own, p)
		}
	}
	a.done = a.partsEnd(a.segment(number))
	a.reached(format.SegmentStart(number))
}

// archiveTail archives what there is of the last segment, if that is due.
func (a *Archiver) archiveTail(ctx context.Context, flushed wal.LSN) error {
	s := a.segment(a.next)
	piece := format.WholeSegment(s)
	piece.From = a.done
	if flushed <= s.Start().Add(uint64(piece.From)) {
		return nil
	}
	piece.To = piece.UpTo(flushed)
	if due, err := a.due(piece); err != nil || !due {
		return err
	}
	if err := a.archive(ctx, piece); err != nil {
		return err
	}
	a.done, a.wait = piece.To, wait{}
	a.reached(flushed)
	return nil
}

// skip goes on at the oldest segment that there is, if the next is gone (invariant 3). An archive that has nothing yet
// begins there: a checkpoint may remove the first segments while the archiver starts. A bucket that has lost what was
// archived, or does not list it for a moment, is not such an archive.
func (a *Archiver) skip(ctx context.Context, cause error) error {
	oldest, err := a.Source.Oldest(ctx)
	if err != nil {
		return fmt.Errorf("look for the oldest WAL: %w", err)
	}
	start := format.SegmentStart(a.next)
	if oldest <= start {
		return cause
	}
	end, err := a.endBefore(ctx, oldest)
	if err != nil {
		return err
	}
	if end != 0 || a.State().Archived > a.began {
		gap := &format.Gap{From: max(start, a.State().Archived), To: oldest}
		if err := a.noteWaiting(ctx); err != nil {
			return err
		}
		if err := a.noteGap(ctx, *gap); err != nil {
			return err
		}
		a.change(func(s *State) { s.Gap = gap })
	} else {
		a.began = oldest
	}
	a.advance(format.NumberAt(oldest))
	return nil
}
