package backup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"toban.dev/internal/bucket"
	"toban.dev/internal/ha"
)

// open finds out where the archive ends, and writes what a term begins with.
func (a *Archiver) open(ctx context.Context) error {
	if err := Claim(ctx, a.Bucket, a.Owner); err != nil {
		return err
	}
	oldest, err := a.Source.Oldest(ctx)
	if err != nil {
		return err
	}
	oldest = max(oldest, SegmentAt(0, a.TermHistory[0].LSN).Start())
	position, gap, err := a.find(ctx, oldest)
	if err != nil {
		return err
	}
	if err := a.writeTermHistory(ctx); err != nil {
		return err
	}
	if err := a.writeHistories(ctx); err != nil {
		return err
	}
	a.change(func(s *State) { s.Gap = gap })
	a.next = SegmentAt(0, position).Number
	a.reached(position)
	return nil
}

// find says from where on there is WAL to archive: where the stretch ends that has the start of the oldest WAL there
// is, or there; and which WAL before that is missing. A stretch that begins later may have a hole before it which can
// still be filled: segments are written side by side, and some failed.
func (a *Archiver) find(ctx context.Context, oldest ha.LSN) (position ha.LSN, gap *Gap, err error) {
	c, err := a.list(ctx)
	if err != nil {
		return 0, nil, err
	}
	before := c.left(a.TermHistory, oldest)
	for i, stretch := range c.along(a.TermHistory).stretches() {
		if stretch.From > oldest {
			break
		}
		if i > 0 {
			gap = &Gap{before, stretch.From}
		}
		if stretch.To >= oldest {
			a.takeOwn(c, SegmentAt(0, stretch.To).Number)
			return stretch.To, gap, nil
		}
		before = stretch.To
	}
	a.takeOwn(c, SegmentAt(0, oldest).Number)
	if before == 0 {
		return oldest, nil, nil // the archive begins here
	}
	return oldest, &Gap{before, oldest}, nil
}

// list lists the WAL of the term history's terms. All of it: a hole may be older than the term before.
func (a *Archiver) list(ctx context.Context) (Catalogue, error) {
	c := Catalogue{Terms: map[uint64]*Term{}}
	a.own, a.garbage = map[Piece]string{}, nil
	for o, err := range a.Bucket.List(ctx, FolderWAL) {
		if err != nil {
			return c, fmt.Errorf("list the WAL: %w", err)
		}
		term, _, ok := ParseTerm(o.Name)
		ours := func(s ha.TermStart) bool { return s.Term == term }
		if ok && slices.ContainsFunc(a.TermHistory, ours) && !strings.HasSuffix(o.Name, "/"+FileLineage) {
			c.addWAL(o, nil)
		}
	}
	return c, nil
}

// left is where the term history left the last of its terms that has WAL in the archive, if that was before an LSN, and
// 0 otherwise: when nothing of that WAL was continued, all from there on is missing.
func (c Catalogue) left(history []ha.TermStart, before ha.LSN) ha.LSN {
	for i, s := range slices.Backward(history) {
		if t := c.Terms[s.Term]; t != nil && len(t.WAL) > 0 && cutoff(history, i) < before {
			return cutoff(history, i)
		}
	}
	return 0
}

// takeOwn notes what the own folder has from a segment on, and which parts there are of no use any more.
func (a *Archiver) takeOwn(c Catalogue, from uint64) {
	own := c.Terms[a.TermHistory[len(a.TermHistory)-1].Term]
	if own == nil {
		return
	}
	for _, p := range own.WAL {
		superseded := slices.ContainsFunc(own.WAL, func(o WAL) bool {
			return o.Segment == p.Segment && o.From <= p.From && o.To >= p.To && o.Piece != p.Piece
		})
		if superseded {
			a.garbage = append(a.garbage, p.Object.Name)
		} else if p.Segment.Number >= from {
			a.own[p.Piece] = p.Object.Name
		}
	}
}

// stretches are the WAL without gaps, in order.
func (w walOf) stretches() []Gap {
	var all []Gap
	for _, number := range w.numbers() {
		_, n := w.read(number)
		start := Segment{Number: number}.Start()
		if n == 0 {
			continue
		}
		if last := len(all) - 1; last >= 0 && all[last].To == start {
			all[last].To += ha.LSN(n)
		} else {
			all = append(all, Gap{start, start + ha.LSN(n)})
		}
	}
	return all
}

// writeTermHistory writes lineage.json, or sees that it is there.
func (a *Archiver) writeTermHistory(ctx context.Context) error {
	text, err := formatTermHistory(a.TermHistory)
	if err != nil {
		return err
	}
	name := a.folder + FileLineage
	err = a.Bucket.Create(ctx, name, text)
	if !errors.Is(err, bucket.ErrExists) {
		return err
	}
	there, err := readWhole(ctx, a.Bucket, name)
	if err == nil && string(there) != string(text) {
		err = fmt.Errorf("%s is of another term history: %s", name, there)
	}
	return err
}

// writeHistories writes the history of each timeline that this leader has. That of its own must be there.
func (a *Archiver) writeHistories(ctx context.Context) error {
	own := a.TermHistory[len(a.TermHistory)-1].Timeline
	for i, s := range a.TermHistory {
		if s.Timeline <= 1 || s.LSN >= cutoff(a.TermHistory, i) {
			continue
		}
		content, err := a.Source.History(s.Timeline)
		if errors.Is(err, fs.ErrNotExist) && s.Timeline != own {
			continue
		}
		if err != nil {
			return fmt.Errorf("read %s: %w", HistoryFile(s.Timeline), err)
		}
		if err := a.create(ctx, HistoryFile(s.Timeline), content); err != nil {
			return err
		}
	}
	return nil
}
