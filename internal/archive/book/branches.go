package book

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"toban.dev/internal/ha"
	"toban.dev/internal/wal"
)

// Branch is the WAL from one restore in place to the next, over all elections between.
type Branch struct {
	// Name is the number of the term that it begins with.
	Name uint64
	// From is where it has left another branch, Since when, by its first leader's clock where that has noted it, else
	// about when; both are zero for one that has left none. Left is the same of the next branch, zero for the newest.
	From        wal.LSN
	Since, Left time.Time
	// Windows are those that begin on it or reach into it, the latest first. They begin where the branch does: what
	// lies before is of the branch that it has left.
	Windows []Window
	// Histories are the term histories of its leaders, the newest first.
	Histories [][]ha.TermStart
}

// branchStart is the place in a term history of the term that begins its branch.
func branchStart(history []ha.TermStart) int {
	for i := len(history) - 1; i > 0; i-- {
		if history[i].Term > history[i-1].Term+ha.RestoreTerms {
			return i
		}
	}
	return 0
}

// Branches are all there are, the newest first.
func (c Catalogue) Branches() []Branch {
	var all []Branch
	add := func(history []ha.TermStart) {
		name := history[branchStart(history)].Term
		i := slices.IndexFunc(all, func(b Branch) bool { return b.Name == name })
		if i < 0 {
			i, all = len(all), append(all, c.newBranch(history))
		}
		all[i].Histories = append(all[i].Histories, history)
	}
	histories := c.TermHistories()
	for _, history := range histories {
		add(history)
	}
	// One of whose own leaders no term history is there is known by those that have left it.
	known := slices.Clone(all)
	for _, history := range histories {
		for i := branchStart(history); i > 0; i = branchStart(history[:i]) {
			name := history[branchStart(history[:i])].Term
			if !slices.ContainsFunc(known, func(b Branch) bool { return b.Name == name }) {
				add(history[:i])
			}
		}
	}
	for i := range all {
		for _, other := range all {
			if other.Name > all[i].Name {
				all[i].Left = earlier(all[i].Left, other.Since)
			}
		}
		all[i].Windows = c.branchWindows(all[i])
	}
	return all
}

func (c Catalogue) newBranch(history []ha.TermStart) Branch {
	start := branchStart(history)
	b := Branch{Name: history[start].Term}
	if start > 0 {
		b.From, b.Since = history[start].LSN, c.begun(b.Name)
	}
	return b
}

// begun is when a branch began by its first leader's clock. Where that has not noted it, it is when the first sign of
// the branch was written, which may be the store's time: a later one in a copied archive.
func (c Catalogue) begun(name uint64) (first time.Time) {
	if term := c.Terms[name]; term != nil && !term.began().IsZero() {
		return term.began()
	}
	seen := func(at time.Time) { first = earlier(first, at) }
	of := map[uint64]bool{}
	for number, term := range c.Terms {
		history := term.TermHistory
		of[number] = number == name || len(history) > 0 && history[branchStart(history)].Term == name
		if !of[number] {
			continue
		}
		seen(term.Note.Modified)
		for _, n := range term.clockNotes() {
			seen(n.At)
		}
		for _, w := range term.WAL {
			seen(w.Object.Modified)
		}
	}
	for _, b := range c.Backups {
		if of[b.Term] {
			seen(b.Started)
		}
	}
	return first
}

func (c Catalogue) branchWindows(b Branch) []Window {
	var all []Window
	for _, w := range c.windowsOf(b, b.Histories[0]) {
		if w.To <= b.From {
			continue
		}
		w.From = max(w.From, b.From)
		if w.Since.Before(b.Since) {
			w.Since = b.Since
		}
		all = append(all, w)
	}
	return all
}

// windowsOf are those of a term history of a branch. On one that was left there is nothing from after that.
func (c Catalogue) windowsOf(b Branch, history []ha.TermStart) []Window {
	all := c.Windows(history)
	for i := range all {
		if !b.Left.IsZero() && all[i].Until.After(b.Left) {
			all[i].Until = b.Left
		}
	}
	return all
}

// has says that a branch was the database's at a time, or has begun by then.
func (b Branch) has(at time.Time) bool { return !at.Before(b.Since) }

// describe says in a sentence what each branch covers.
func describe(branches []Branch) string {
	var words []string
	for _, b := range branches {
		if len(b.Windows) == 0 {
			words = append(words, fmt.Sprintf("branch %d has no backup from which it can be restored", b.Name))
		}
		for _, w := range b.Windows {
			words = append(words, fmt.Sprintf("branch %d from %s (%s) to %s (%s)", b.Name,
				w.From, w.Since.UTC().Format(time.RFC3339), w.To, w.Until.UTC().Format(time.RFC3339)))
		}
	}
	return strings.Join(words, "; ")
}
