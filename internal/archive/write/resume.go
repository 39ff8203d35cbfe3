package write

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"toban.dev/internal/archive/book"
	"toban.dev/internal/archive/bucket"
	"toban.dev/internal/archive/format"
	"toban.dev/internal/ha"
	"toban.dev/internal/wal"
)

// open finds out where the archive ends, and writes what a term begins with.
func (a *Archiver) open(ctx context.Context, flushed wal.LSN) error {
	if err := format.Claim(ctx, a.Bucket, a.Owner); err != nil {
		return err
	}
	oldest, err := a.Source.Oldest(ctx)
	if err != nil {
		return err
	}
	oldest = max(oldest, format.SegmentStart(format.NumberAt(a.TermHistory[0].LSN)))
	c, err := a.list(ctx, oldest, flushed)
	if err != nil {
		return err
	}
	if err := a.compareLast(ctx, c); err != nil {
		return err
	}
	position, gap, err := a.find(ctx, c, oldest)
	if err != nil {
		return err
	}
	if err := a.noteKey(ctx, position, flushed); err != nil {
		return err
	}
	if err := a.writeNotes(ctx, gap); err != nil {
		return err
	}
	a.change(func(s *State) { s.Gap = gap })
	a.take(c, format.NumberAt(position))
	if position == oldest && gap == nil && len(c.Terms) == 0 {
		a.began = position
	}
	a.reached(position)
	return nil
}

// reclaimEvery is how often it is seen whose the archive is. Who has lost archive.json, to a rule of the store by which
// old objects go or by a mistake, has no backups until it is back.
const reclaimEvery = 10 * time.Minute

// reclaim sees now and then that archive.json is there, and writes it anew where it is lost. That it can't be read does
// not keep WAL from the archive, which was ours when this began, and the next backup says so; that it is another's
// does.
func (a *Archiver) reclaim(ctx context.Context) error {
	if a.Now().Sub(a.claimed) < reclaimEvery {
		return nil
	}
	if err := format.Reclaim(ctx, a.Bucket, a.Owner); errors.Is(err, format.ErrTaken) {
		return err
	}
	a.claimed = a.Now()
	return nil
}

// writeNotes writes what a term begins with, the term history last: who finds that finds the gap too.
func (a *Archiver) writeNotes(ctx context.Context, gap *format.Gap) error {
	if gap != nil {
		if err := a.noteGap(ctx, *gap); err != nil {
			return err
		}
	}
	if err := a.noteBegin(ctx); err != nil {
		return err
	}
	if err := a.writeTermHistory(ctx); err != nil {
		return err
	}
	return a.writeHistories(ctx)
}

// list lists the WAL of the term history from a little before the oldest that the server has: nothing can be added to
// what lies before that. Names sort by term, and in a term by place. It is an *AheadError where something lies there
// that the server can't have written.
func (a *Archiver) list(ctx context.Context, oldest, flushed wal.LSN) (book.Catalogue, error) {
	c := book.Catalogue{Terms: map[uint64]*book.Term{}}
	from, after := a.listedFrom(oldest)
	for o, err := range a.Bucket.ListAfter(ctx, format.FolderWAL, after) {
		if err != nil {
			return c, fmt.Errorf("list the WAL: %w", err)
		}
		term, rest, ok := format.ParseTerm(o.Name)
		plain, _, _ := format.PlainName(rest)
		piece, isWAL := format.ParsePiece(plain)
		switch {
		case !ok:
		case term > a.term():
			return c, &AheadError{o.Name, fmt.Sprintf("is of a later term than %d", a.term())}
		case !isWAL || piece.Segment.Number < from || !slices.ContainsFunc(a.TermHistory, of(term)):
		case term == a.term() && piece.Segment.Start().Add(uint64(piece.To)) > flushed:
			return c, &AheadError{o.Name, fmt.Sprintf("goes beyond %s, where the WAL ends", flushed)}
		default:
			c.AddWAL(o, nil)
		}
	}
	return c, nil
}

func of(term uint64) func(ha.TermStart) bool {
	return func(s ha.TermStart) bool { return s.Term == term }
}

// listedFrom is the number of the first segment that is of interest, and the name behind which all lies that may be of
// use from there on: in the folder of the first term whose WAL goes so far.
func (a *Archiver) listedFrom(oldest wal.LSN) (number uint64, after string) {
	number = max(format.NumberAt(oldest), mostUploads) - mostUploads
	for i, s := range a.TermHistory {
		if format.Cutoff(a.TermHistory, i) > format.SegmentStart(number) {
			return number, format.TermFolder(s.Term) + format.SegmentOf(format.TimelineAt(a.TermHistory[:i+1], number),
				number).String()
		}
	}
	return number, format.TermFolder(a.term()) // never: nothing cuts the last one off
}

// compareLast sees that the last WAL in the own folder is what the server has there. If a volume has gone back in time,
// all behind that moment is something else, and so is at least that.
func (a *Archiver) compareLast(ctx context.Context, c book.Catalogue) error {
	own := c.Terms[a.term()]
	if own == nil || len(own.WAL) == 0 {
		return nil
	}
	last := slices.MaxFunc(own.WAL, func(x, y book.WAL) int {
		return cmp.Or(cmp.Compare(x.Segment.Number, y.Segment.Number), cmp.Compare(x.To, y.To))
	})
	return a.compareWAL(ctx, last.Piece, last.Object.Name)
}

// find says from where on there is WAL to archive: where the WAL in the archive ends that goes on from the start of the
// oldest that the server has, or there; and which WAL before that is missing. A stretch that begins later may have a
// hole before it which can still be filled: segments are written side by side, and some failed.
func (a *Archiver) find(
	ctx context.Context, c book.Catalogue, oldest wal.LSN,
) (position wal.LSN, gap *format.Gap, err error) {
	w := c.Along(a.TermHistory)
	position, _ = w.Covered(oldest)
	begin, whole := wholeBefore(w, oldest)
	if !whole {
		end, err := a.endBefore(ctx, begin)
		if err != nil || end == 0 { // else the archive begins there
			return position, nil, err
		}
		return position, &format.Gap{From: end, To: begin}, nil
	}
	gap, err = a.knownGap(ctx)
	if gap != nil && gap.To > position {
		gap = nil // the server has it, and archives it now
	}
	return position, gap, err
}

// wholeBefore says from where on all WAL up to the start of a segment is there, and whether that is as much as may have
// been written side by side: there is no hole before that of which nobody has made a note.
func wholeBefore(w book.Coverage, lsn wal.LSN) (begin wal.LSN, whole bool) {
	first := format.NumberAt(lsn)
	for number := first; number > 0 && first-number < mostUploads; number-- {
		if uint64(w.End(number-1)) < format.SegmentSize {
			return format.SegmentStart(number), false
		}
	}
	return lsn, true
}

// endBefore is where the WAL of the term history in the archive ends before an LSN, 0 where it has none. All names are
// gone through: a gap may be of any length.
func (f *termFolder) endBefore(ctx context.Context, lsn wal.LSN) (end wal.LSN, err error) {
	for o, err := range f.Bucket.List(ctx, format.FolderWAL) {
		if err != nil {
			return 0, fmt.Errorf("list the WAL: %w", err)
		}
		term, rest, _ := format.ParseTerm(o.Name)
		plain, _, _ := format.PlainName(rest)
		piece, isWAL := format.ParsePiece(plain)
		i := slices.IndexFunc(f.TermHistory, of(term))
		if !isWAL || i < 0 {
			continue
		}
		// What was not continued says that there was more, up to where the next leader began.
		to := min(piece.Segment.Start().Add(uint64(piece.To)), format.Cutoff(f.TermHistory, i))
		if to < lsn {
			end = max(end, to)
		}
	}
	return end, nil
}

// knownGap is the latest gap that the archive has a note of. Each leader takes over what the one before it knew.
func (f *termFolder) knownGap(ctx context.Context) (*format.Gap, error) {
	for _, s := range slices.Backward(f.TermHistory) {
		var gap *format.Gap
		began := false
		for _, prefix := range []string{format.GapPrefix, format.FileLineage} {
			for o, err := range f.Bucket.List(ctx, format.TermFolder(s.Term)+prefix) {
				if err != nil {
					return nil, fmt.Errorf("look for notes of gaps: %w", err)
				}
				_, name, _ := format.ParseTerm(o.Name)
				if noted, ok := format.ParseGap(name); ok && (gap == nil || noted.To >= gap.To) {
					gap = &noted
				}
				began = began || name == format.FileLineage
			}
		}
		if began || gap != nil {
			return gap, nil
		}
	}
	return nil, nil //nolint:nilnil // no gap is known
}

// noteGap writes a note of a gap.
func (f *termFolder) noteGap(ctx context.Context, gap format.Gap) error {
	err := f.Bucket.Create(ctx, f.folder+gap.Name(), []byte("The archive has no WAL "+gap.String()+".\n"))
	if err != nil && !errors.Is(err, bucket.ErrExists) {
		return fmt.Errorf("note a gap: %w", err)
	}
	return nil
}

// take goes on at a segment with what the own folder has from there on.
func (a *Archiver) take(c book.Catalogue, from uint64) {
	a.next, a.own = from, map[format.Piece]bool{}
	if own := c.Terms[a.term()]; own != nil {
		for _, p := range own.WAL {
			if p.Segment.Number >= from {
				a.own[p.Piece] = true
			}
		}
	}
	a.done = a.partsEnd(a.segment(from))
}

// writeTermHistory writes lineage.json, or sees that it is there.
func (f *termFolder) writeTermHistory(ctx context.Context) error {
	text, err := format.FormatTermHistory(f.TermHistory)
	if err != nil {
		return err
	}
	name := f.folder + format.FileLineage
	err = f.Bucket.Create(ctx, name, text)
	if !errors.Is(err, bucket.ErrExists) {
		return err
	}
	there, err := format.ReadWhole(ctx, f.Bucket, name)
	if err == nil && string(there) != string(text) {
		err = &AheadError{name, fmt.Sprintf("is of another term history: %s", bytes.TrimSpace(there))}
	}
	return err
}

// writeHistories writes the history of each timeline that this leader has. That of its own must be there. It is not
// encrypted: lineage.json says the same, and so no key has to stay as long as a term may last.
func (f *termFolder) writeHistories(ctx context.Context) error {
	own := f.TermHistory[len(f.TermHistory)-1].Timeline
	for i, s := range f.TermHistory {
		if s.Timeline <= 1 || s.LSN >= format.Cutoff(f.TermHistory, i) {
			continue
		}
		content, err := f.Source.History(s.Timeline)
		if errors.Is(err, fs.ErrNotExist) && s.Timeline != own {
			continue
		}
		if err != nil {
			return fmt.Errorf("read %s: %w", s.Timeline.HistoryFile(), err)
		}
		if err := f.create(ctx, s.Timeline.HistoryFile(), content); err != nil {
			return err
		}
	}
	return nil
}

// AheadError says that an archive has what its leader can't have written (docs/archive.md, "An archive that is ahead").
type AheadError struct {
	// Name is an object there, What how it was noticed.
	Name, What string
}

// Error says what to do: nothing is archived.
func (e *AheadError) Error() string {
	return fmt.Sprintf("the archive is ahead of this server: %s %s. A volume has gone back in time; nothing is "+
		"archived, so that nothing there is lost", e.Name, e.What)
}

// stamp tells the content of an object, for who can't read it: an HMAC by what only this database system knows, ""
// where that is not known. Who could guess the content could try with a plain hash whether that is right.
func (f *termFolder) stamp(plain string, content []byte) string {
	return format.StampWith(f.Secret, plain, content)
}

// compareWAL sees that an object has the WAL that the server has in its place. What the server has no more is not
// compared.
func (f *termFolder) compareWAL(ctx context.Context, p format.Piece, name string) error {
	content, err := f.readWAL(p)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read %s, to compare it with the archive: %w", p, err)
	}
	return f.compare(ctx, name, p.String(), content)
}

// compare sees that an object has a content: an *AheadError if it has another. One that is encrypted is compared by its
// stamp, if it has one, and else taken for what it should be.
func (f *termFolder) compare(ctx context.Context, name, plain string, content []byte) error {
	stored, err := format.ReadMost(ctx, f.Bucket, name, format.SealedLimit+1)
	if err != nil {
		return fmt.Errorf("compare with the archive: %w", err)
	}
	same := false
	if _, encrypted, _ := format.PlainName(name); encrypted {
		there, here := format.StampOf(stored), f.stamp(plain, content)
		same = there == "" || here == "" || there == here
	} else {
		there, err := format.Decode(&format.Decoder{}, name, stored, int64(len(content)))
		same = err == nil && bytes.Equal(there, content)
	}
	if !same {
		return &AheadError{name, "has other content than it would get"}
	}
	return nil
}
