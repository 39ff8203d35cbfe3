package book

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"toban.dev/internal/archive/format"
	"toban.dev/internal/ha"
	"toban.dev/internal/wal"
)

// GapError says that WAL is missing which is needed.
type GapError struct{ format.Gap }

// Error says from where to where.
func (e *GapError) Error() string { return "the archive has no WAL " + e.String() }

// usable is WAL of a term history in one segment.
type usable struct {
	WAL
	// to is up to where in the segment it is of use, in bytes; term the place of its term in the term history, -1 for
	// one of another, with which it has that WAL in common.
	to   uint32
	term int
}

// Coverage is the WAL of a term history by the number of the segment.
type Coverage struct {
	history []ha.TermStart
	all     map[uint64][]usable
}

// Along gathers what the folders of a term history's terms have. What lies in the folder of a
// term is of use until the next leader's WAL begins: what its leader wrote there later was not continued. A term that
// the history leaves out may have archived what its leader had of the WAL before they part, in the place of one that
// did not come to it: after a restore in place that is in no other folder.
func (c Catalogue) Along(history []ha.TermStart) Coverage {
	w := Coverage{history, map[uint64][]usable{}}
	for i, start := range history {
		if term := c.Terms[start.Term]; term != nil {
			w.add(term.WAL, history[:i+1], format.Cutoff(history, i), i)
		}
	}
	// Of several the earliest goes before, which has archived it first.
	for _, number := range slices.Backward(slices.Sorted(maps.Keys(c.Terms))) {
		term := c.Terms[number]
		end := format.Parting(history, term.TermHistory)
		if end > 0 && !slices.ContainsFunc(history, func(s ha.TermStart) bool { return s.Term == number }) {
			w.add(term.WAL, term.TermHistory, end, -1)
		}
	}
	return w
}

// add takes the WAL of a leader with a term history, up to an LSN.
func (w Coverage) add(all []WAL, history []ha.TermStart, end wal.LSN, term int) {
	for _, p := range all {
		if p.Segment.Start().Add(uint64(p.From)) >= end ||
			p.Segment.Timeline != format.TimelineAt(history, p.Segment.Number) {
			continue
		}
		w.all[p.Segment.Number] = append(w.all[p.Segment.Number], usable{p, p.UpTo(end), term})
	}
}

// read says what a segment is read from, and how far that goes from its start: each time
// what goes furthest, which is a whole one before parts, and the latest term's of the same.
func (w Coverage) read(number uint64) (from []usable, to uint32) {
	all := slices.Clone(w.all[number])
	slices.SortStableFunc(all, func(a, b usable) int { return cmp.Compare(a.From, b.From) })
	next, best := 0, usable{}
	for {
		for ; next < len(all) && all[next].From <= to; next++ {
			if u := all[next]; u.to > best.to || u.to == best.to && u.term >= best.term {
				best = u
			}
		}
		if best.to <= to {
			return from, to
		}
		from, to = append(from, best), best.to
	}
}

// End is how far the WAL of a segment goes from its start, in bytes.
func (w Coverage) End(number uint64) uint32 {
	_, to := w.read(number)
	return to
}

// Covered follows the WAL from an LSN on. The server reads a segment from its start
// on, so that is what has to be there.
func (w Coverage) Covered(from wal.LSN) (to wal.LSN, missing *format.Gap) {
	s := format.SegmentAt(0, from)
	for {
		_, n := w.read(s.Number)
		if uint64(n) < format.SegmentSize {
			to = max(from, s.Start().Add(uint64(n)))
			break
		}
		s.Number++
	}
	next, more := w.after(to)
	if !more {
		return to, nil
	}
	return to, &format.Gap{From: to, To: next}
}

// after is where WAL begins that lies beyond an LSN where there is none.
func (w Coverage) after(lsn wal.LSN) (next wal.LSN, ok bool) {
	for _, in := range w.all {
		for _, u := range in {
			if at := u.Segment.Start().Add(uint64(u.From)); at >= lsn && (!ok || at < next) {
				next, ok = at, true
			}
		}
	}
	return next, ok
}

// Covered is up to where a term history's WAL is in the archive without a gap, from an LSN on;
// that LSN if there is none. A gap follows if there is WAL beyond.
func (c Catalogue) Covered(history []ha.TermStart, from wal.LSN) (to wal.LSN, missing *format.Gap) {
	return c.Along(history).Covered(from)
}

// TermHistories are those of the terms that have written WAL, the newest first.
func (c Catalogue) TermHistories() [][]ha.TermStart {
	var all [][]ha.TermStart
	for _, term := range slices.Backward(slices.Sorted(maps.Keys(c.Terms))) {
		if t := c.Terms[term]; len(t.WAL) > 0 && len(t.TermHistory) > 0 {
			all = append(all, t.TermHistory)
		}
	}
	return all
}

// NewestTermHistory is that of the latest leader which has written WAL; if none has, of the
// latest that meant to. It is nil for an empty archive.
func (c Catalogue) NewestTermHistory() []ha.TermStart {
	if all := c.TermHistories(); len(all) > 0 {
		return all[0]
	}
	return LatestTermHistory(c)
}

// LatestTermHistory is that of the latest leader, whether it has written WAL yet or not; nil for an empty archive.
func LatestTermHistory(c Catalogue) []ha.TermStart {
	for _, term := range slices.Backward(slices.Sorted(maps.Keys(c.Terms))) {
		if history := c.Terms[term].TermHistory; len(history) > 0 {
			return history
		}
	}
	return nil
}

// PlanWAL lists what to download in order to replay a term history's WAL from one LSN to another: a
// *GapError if it is not all there. The timeline is that of the last byte before to, so that a recovery that
// ends before a later leader began does not go along that one's timeline. What is listed may
// meanwhile be replaced by a longer part: an object that is gone is looked for in a new catalogue.
func (c Catalogue) PlanWAL(history []ha.TermStart, from, to wal.LSN) (WALPlan, error) {
	if len(history) == 0 {
		return WALPlan{}, errors.New("plan the WAL: there is no term history")
	}
	w := c.Along(history)
	if end, missing := w.Covered(from); end < to {
		if missing == nil {
			missing = &format.Gap{From: end, To: to}
		}
		return WALPlan{}, fmt.Errorf("plan the WAL from %s to %s: %w", from, to, &GapError{*missing})
	}
	last := len(history) - 1
	for last > 0 && (history[last].LSN >= to || history[last].LSN >= format.Cutoff(history, last)) {
		last--
	}
	limit := format.Cutoff(history, last)
	plan := WALPlan{Timeline: history[last].Timeline}
	if err := c.planHistories(history, last, &plan); err != nil {
		return WALPlan{}, err
	}
	history = history[:last+1]
	for s := format.SegmentAt(0, from); s.Start() < to; s.Number++ {
		s.Timeline = format.TimelineAt(history, s.Number)
		plan.Segments = append(plan.Segments, w.plan(s, limit))
	}
	return plan, nil
}

// plan says what a segment is made of, without what is at limit or beyond.
func (w Coverage) plan(s wal.Segment, limit wal.LSN) PlannedSegment {
	planned := PlannedSegment{Segment: s, File: s.String()}
	parts, _ := w.read(s.Number)
	for _, u := range parts {
		if s.Start().Add(uint64(u.From)) < limit {
			to := min(u.to, u.UpTo(limit))
			planned.Objects = append(planned.Objects, PlannedObject{u.Object.Name, u.Piece, to})
		}
	}
	return planned
}

// planHistories adds the history of each timeline but the first, up to the last-th of the term history, from the latest
// leader that has it, which may be a later one. The server must have that of the timeline it recovers along.
func (c Catalogue) planHistories(history []ha.TermStart, last int, plan *WALPlan) error {
	for i, start := range history[:last+1] {
		if start.LSN >= format.Cutoff(history, i) || start.Timeline <= 1 {
			continue
		}
		name := c.historyFile(start, history[i:])
		if name == "" && start.Timeline == plan.Timeline {
			return fmt.Errorf("plan the WAL: the archive has no %s", start.Timeline.HistoryFile())
		}
		if name != "" && !slices.Contains(plan.Histories, name) {
			plan.Histories = append(plan.Histories, name)
		}
	}
	return nil
}

// historyFile is the history of the timeline of a term, from the latest leader that has it of some, or from any other
// that has gone on with that term; "" if none has.
func (c Catalogue) historyFile(of ha.TermStart, leaders []ha.TermStart) string {
	for _, s := range slices.Backward(leaders) {
		if t := c.Terms[s.Term]; t != nil && t.Histories[of.Timeline].Name != "" {
			return t.Histories[of.Timeline].Name
		}
	}
	for _, number := range slices.Sorted(maps.Keys(c.Terms)) {
		t := c.Terms[number]
		i := slices.Index(t.TermHistory, of)
		if i >= 0 && of.LSN < format.Cutoff(t.TermHistory, i) && t.Histories[of.Timeline].Name != "" {
			return t.Histories[of.Timeline].Name
		}
	}
	return ""
}

// In says whether a backup's data is the beginning of a term history's.
func (c Catalogue) In(b format.Backup, history []ha.TermStart) bool {
	end := format.Parting(c.TermHistoryOf(b, history), history)
	return end > 0 && b.StopLSN <= end
}

// TermHistoryOf is the term history of the term in which a backup was taken. Its leader may not have come to
// write it down; then another's says it, that continues it.
func (c Catalogue) TermHistoryOf(b format.Backup, other []ha.TermStart) []ha.TermStart {
	if t := c.Terms[b.Term]; t != nil && len(t.TermHistory) > 0 {
		if endsOn(b, format.UpTo(t.TermHistory, b.StopLSN)) {
			return t.TermHistory
		}
		return leaderSince(b, c.Terms)
	}
	i := slices.IndexFunc(other, func(s ha.TermStart) bool { return s.Term == b.Term })
	return other[:i+1]
}

// leaderSince is the term history of the leader that was copied, where a backup is not of the timeline of the term that
// it names: it began before the archive knew of that leader, and says the term before. So it is the first since that
// was on that timeline there, and has WAL. Branches that were begun later may have a timeline of the same number, with
// other data.
func leaderSince(b format.Backup, terms map[uint64]*Term) []ha.TermStart {
	for _, number := range slices.Sorted(maps.Keys(terms)) {
		t := terms[number]
		if number > b.Term && len(t.WAL) > 0 && endsOn(b, format.UpTo(t.TermHistory, b.StopLSN)) {
			return t.TermHistory
		}
	}
	return nil
}

// endsOn says that the last of some terms was on the timeline on which a backup ended, or that the backup does not say
// which that was.
func endsOn(b format.Backup, terms []ha.TermStart) bool {
	return b.StopTimeline == 0 || len(terms) > 0 && terms[len(terms)-1].Timeline == b.StopTimeline
}

// Chain is a backup with all that it is made of, the full one first. It is an error if
// something of it is not there.
func (c Catalogue) Chain(id string) ([]format.Backup, error) {
	var chain []format.Backup
	for id != "" {
		i := slices.IndexFunc(c.Backups, func(b format.Backup) bool { return b.ID == id })
		if i < 0 || len(chain) > len(c.Backups) {
			return nil, fmt.Errorf("there is no backup %s", id)
		}
		b := c.Backups[i]
		if name := c.Lost(b); name != "" {
			return nil, &format.ObjectError{Name: name, What: format.Missing}
		}
		chain, id = append(chain, b), b.Parent
	}
	slices.Reverse(chain)
	return chain, nil
}

// Lost is an object of a backup that is not there, or not of its size; "" for none.
func (c Catalogue) Lost(b format.Backup) string {
	there := NewContents(b)
	for _, o := range c.Contents[b.ID] {
		there.Add(o)
	}
	return cmp.Or(there.Lost(), c.lacks[b.ID])
}

// Window is what can be restored without a gap, to any moment in between.
type Window struct {
	TermHistory []ha.TermStart
	// Backups are those it has, the oldest first.
	Backups []format.Backup
	// From and To are where the oldest is consistent, and where the WAL ends. Since and Until are about the same
	// in time: when the one stopped, and when a leader had written the other by its own clock. Where no leader has
	// noted that, Until is when the last WAL got into the bucket. It is never before a later backup stopped.
	From, To     wal.LSN
	Since, Until time.Time
	// Missing is the gap that it ends at, nil if it ends with the archive.
	Missing *format.Gap
}

// Window is the latest of a term history; false if it has none.
func (c Catalogue) Window(history []ha.TermStart) (Window, bool) {
	all := c.Windows(history)
	if len(all) == 0 {
		return Window{}, false
	}
	return all[0], true
}

// Windows are all of a term history, the latest first: there is more than one where there are gaps.
func (c Catalogue) Windows(history []ha.TermStart) []Window {
	if len(history) == 0 {
		return nil
	}
	var all []Window
	w := c.Along(history)
	backups := slices.Clone(c.Backups)
	slices.SortStableFunc(backups, func(a, b format.Backup) int { return cmp.Compare(b.StopLSN, a.StopLSN) })
	for _, b := range backups {
		if _, err := c.Chain(b.ID); err != nil || !c.In(b, history) {
			continue
		}
		to, missing := w.Covered(b.StartLSN)
		if to < b.StopLSN {
			continue
		}
		if len(all) == 0 || all[len(all)-1].To != to {
			all = append(all, Window{TermHistory: history, To: to, Until: c.passed(history, to), Missing: missing})
		}
		last := &all[len(all)-1]
		if last.Until.IsZero() {
			last.Until = w.Written(to)
		}
		last.From, last.Since = b.StopLSN, b.Stopped
		if b.Stopped.After(last.Until) { // nothing was written between
			last.Until = b.Stopped
		}
		last.Backups = slices.Insert(last.Backups, 0, b)
	}
	return all
}

// Written is when the WAL before an LSN got into the bucket: in a copied archive that is when it was copied.
func (w Coverage) Written(end wal.LSN) time.Time {
	from, _ := w.read(format.NumberAt(end - 1))
	var at time.Time
	for _, u := range from {
		if u.Object.Modified.After(at) {
			at = u.Object.Modified
		}
	}
	return at
}
