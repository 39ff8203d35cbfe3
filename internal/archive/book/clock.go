package book

import (
	"strings"
	"time"

	"toban.dev/internal/archive/format"
	"toban.dev/internal/ha"
	"toban.dev/internal/wal"
)

// clockNotes are those of a term.
func (t *Term) clockNotes() (notes []format.ClockNote) {
	for _, o := range t.Clocks {
		if note, ok := format.ParseClockNote(o.Name[strings.LastIndexByte(o.Name, '/')+1:]); ok {
			notes = append(notes, note)
		}
	}
	return notes
}

// began is when the leader of a term began, by its own clock; zero if nobody has noted it.
func (t *Term) began() (first time.Time) {
	for _, n := range t.clockNotes() {
		if n.Began {
			first = earlier(first, n.At)
		}
	}
	return first
}

// earlier is the first of two times, of which zero is none.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// passed is when the WAL of a term history had reached an LSN, by the clock of a leader; zero if none has noted it.
// What lies before that LSN has no later commit.
func (c Catalogue) passed(history []ha.TermStart, lsn wal.LSN) (first time.Time) {
	for i, start := range history {
		term := c.Terms[start.Term]
		if term == nil || lsn > format.Cutoff(history, i) {
			continue // that is of another leader
		}
		for _, n := range term.clockNotes() {
			if n.LSN >= lsn {
				first = earlier(first, n.At)
			}
		}
	}
	return first
}
