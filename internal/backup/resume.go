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
	oldest = max(oldest, SegmentAt(0, a.Lineage[0].LSN).Start())
	position, gap, err := a.find(ctx, oldest)
	if err != nil {
		return err
	}
	if err := a.writeLineage(ctx); err != nil {
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

// find lists the folders of the lineage's terms, and says from where on there is WAL to
// archive: where the stretch ends that has the start of the oldest WAL there is, or there. A stretch that begins
// later may have a hole before it which can still be filled: segments are written side by side, and some failed.
func (a *Archiver) find(ctx context.Context, oldest ha.LSN) (position ha.LSN, gap *Gap, err error) {
	c := Catalogue{Terms: map[uint64]*Term{}}
	a.own, a.garbage = map[Piece]string{}, nil
	for i := len(a.Lineage) - 1; i >= 0; i-- {
		// What such a term has all lies before the oldest segment, and is of use only to see that there is a gap.
		if cutoff(a.Lineage, i) < oldest && len(c.along(a.Lineage).all) > 0 {
			continue
		}
		if err := a.listTerm(ctx, &c, a.Lineage[i].Term); err != nil {
			return 0, nil, err
		}
	}
	before := ha.LSN(0)
	for _, stretch := range c.along(a.Lineage).stretches() {
		if stretch.From > oldest {
			break
		}
		if before != 0 {
			gap = &Gap{before, stretch.From}
		}
		if stretch.To >= oldest {
			a.takeOwn(c, SegmentAt(0, stretch.To).Number)
			return stretch.To, gap, nil
		}
		before = stretch.To
	}
	gap = nil
	if own := a.Lineage[len(a.Lineage)-1]; before == 0 && own.LSN < oldest && c.wrote() {
		before = own.LSN // of what it has written itself all is lost, and what the archive has was not continued
	}
	if before != 0 {
		gap = &Gap{before, oldest}
	}
	a.takeOwn(c, SegmentAt(0, oldest).Number)
	return oldest, gap, nil
}

// wrote says that there is WAL in the archive, of use or not.
func (c Catalogue) wrote() bool {
	for _, t := range c.Terms {
		if len(t.WAL) > 0 {
			return true
		}
	}
	return false
}

func (a *Archiver) listTerm(ctx context.Context, c *Catalogue, term uint64) error {
	for o, err := range a.Bucket.List(ctx, TermFolder(term)) {
		if err != nil {
			return fmt.Errorf("list the WAL of term %d: %w", term, err)
		}
		if !strings.HasSuffix(o.Name, "/"+FileLineage) {
			c.addWAL(o, nil)
		}
	}
	return nil
}

// takeOwn notes what the own folder has from a segment on, and which parts there are of no use any more.
func (a *Archiver) takeOwn(c Catalogue, from uint64) {
	own := c.Terms[a.Lineage[len(a.Lineage)-1].Term]
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

// writeLineage writes lineage.json, or sees that it is there.
func (a *Archiver) writeLineage(ctx context.Context) error {
	text, err := formatLineage(a.Lineage)
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
		err = fmt.Errorf("%s is of another lineage: %s", name, there)
	}
	return err
}

// writeHistories writes the history of each timeline that this leader has. That of its own must be there.
func (a *Archiver) writeHistories(ctx context.Context) error {
	own := a.Lineage[len(a.Lineage)-1].Timeline
	for i, s := range a.Lineage {
		if s.Timeline <= 1 || s.LSN >= cutoff(a.Lineage, i) {
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
