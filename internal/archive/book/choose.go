package book

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"toban.dev/internal/archive/format"
	"toban.dev/internal/ha"
	"toban.dev/internal/wal"
)

// ErrOutside says that a moment can't be restored: it is in no window.
var ErrOutside = errors.New("outside of what can be restored")

// ErrSeveral says that a moment is on several branches, with other data on each.
var ErrSeveral = errors.New("it is on several branches, with other data on each")

// Wanted is what a restore has to lead to.
type Wanted struct {
	Target Target
	// Branch is the one that is meant, or a term whose leader's WAL is; 0 where none is named.
	Branch uint64
	// Backup is the one to begin with, "" for the best.
	Backup string
	// Young are backups that are consistent only after the target, as a server has said that began with them.
	Young []string
	// AtLeast is up to where the archive has had WAL, as is known from elsewhere; 0 where that is not asked.
	AtLeast wal.LSN
	// Now is the clock: nothing that lies after it can be restored.
	Now time.Time
}

// falls is an error where an archive ends before what it has had: it has lost objects, or another one is read.
func (w Wanted) falls(c Choice) error {
	if c.To >= w.AtLeast {
		return nil
	}
	return fmt.Errorf("restore %s: %w: without a gap the archive reaches only to %s, and it has had WAL up to %s",
		w, ErrOutside, c.To, w.AtLeast)
}

// Choice is from what to restore.
type Choice struct {
	TermHistory []ha.TermStart
	// Branch is the one that it goes along.
	Branch uint64
	Backup format.Backup
	// To is up to where WAL may be needed, Window where the backup was found. Open says that nothing is known to have
	// been written beyond it: else a time after its last commit is one that WAL is missing of.
	To     wal.LSN
	Window Window
	Open   bool
}

// Choose finds the branch that has what is wanted, there the newest term history that leads to it, and the latest
// backup before it. Where a transaction or a named point lies is not known before it is replayed: then it is the oldest
// backup of the newest window. The error is ErrOutside, with what could be restored, if there is none, and ErrSeveral
// if branches differ in it and none is named.
func (c Catalogue) Choose(w Wanted) (Choice, error) {
	return choosing{c, w}.choose()
}

// On is the way to what is wanted along a branch, whatever others have.
func (c Catalogue) On(b Branch, w Wanted) (Choice, bool) {
	return choosing{c, w}.on(b, c.Branches()[0].Histories[0])
}

// choosing looks for what is wanted in an archive.
type choosing struct {
	Catalogue
	Wanted
}

func (c choosing) choose() (Choice, error) {
	w, branches := c.Wanted, c.Branches()
	if len(branches) == 0 {
		return Choice{}, fmt.Errorf("restore %s: %w: the archive has no complete backup with the WAL that it needs",
			w, ErrOutside)
	}
	if err := c.mayBeNewer(branches); err != nil {
		return Choice{}, fmt.Errorf("restore %s: %w", w, err)
	}
	candidates := w.candidates(branches)
	if w.Branch != 0 {
		one, ok := findBranch(branches, w.Branch)
		if !ok {
			return Choice{}, fmt.Errorf("restore %s: %w: the archive has no such branch, but %s",
				w, ErrOutside, describe(branches))
		}
		candidates = []Branch{one}
	}
	newest := branches[0].Histories[0]
	if c.hidesNewer(newest) {
		newest = nil
	}
	found, on := c.leading(candidates, newest)
	elsewhere := len(found) == 1 && w.Branch == 0 && !w.Target.Time.IsZero() && on[0].Name != latest(candidates).Name
	switch {
	case len(found) == 0 || elsewhere:
		return Choice{}, fmt.Errorf("restore %s: %w", w, c.outside(branches))
	case len(found) > 1:
		return Choice{}, fmt.Errorf("restore %s: %w. Name the one that is meant, with branch in the target "+
			"(--branch of kubectl toban restore): %s", w, ErrSeveral, describe(on))
	}
	return found[0], w.falls(found[0])
}

// hidesNewer says that another leader may have gone on beyond the newest term history: its WAL is there, and what that
// continues can't be read. Then nothing is the end. By its own clock it may have begun later than what is wanted.
func (c choosing) hidesNewer(newest []ha.TermStart) bool {
	for number, term := range c.Terms {
		there := len(term.WAL) > 0 || term.Note.Name != ""
		if number <= newest[len(newest)-1].Term || len(term.TermHistory) > 0 || !there {
			continue
		}
		if began := term.began(); began.IsZero() || !c.Target.Time.Before(began) {
			return true
		}
	}
	return false
}

// leading are the ways to what is wanted along each of some branches which lead to other data, and those branches.
func (c choosing) leading(branches []Branch, newest []ha.TermStart) (found []Choice, on []Branch) {
	for _, b := range branches {
		choice, ok := c.on(b, newest)
		same := func(other Choice) bool { return c.Target.same(choice.TermHistory, other.TermHistory) }
		if ok && !slices.ContainsFunc(found, same) {
			found, on = append(found, choice), append(on, b)
		}
	}
	return found, on
}

// same says that two term histories lead to the same data at a target. Of what is the newest branch's, or a backup's,
// the first is as good as another.
func (t Target) same(a, b []ha.TermStart) bool {
	return t.Time.IsZero() && (t.LSN == 0 || slices.Equal(format.UpTo(a, t.LSN), format.UpTo(b, t.LSN)))
}

// on is the way to what is wanted along a branch, by the newest of its term histories that leads there.
func (c choosing) on(b Branch, newest []ha.TermStart) (Choice, bool) {
	for _, history := range b.Histories {
		open := slices.Equal(history, newest)
		for _, window := range c.windowsOf(b, history) {
			open = open && window.Missing == nil
			if c.Branch == 0 && !c.Target.Time.IsZero() && window.To <= b.From {
				continue // a time of what it has of the branch before is that one's
			}
			if from, ok := c.in(window, open); ok {
				choice := Choice{TermHistory: history, Branch: b.Name, Backup: from, To: window.To, Window: window,
					Open: open}
				if c.Target.Immediate {
					choice.To = from.StopLSN
				}
				return choice, true
			}
			open = false
		}
	}
	return Choice{}, false
}

// mayBeNewer is an error where what is wanted may have been written by a leader of whom only the term is known, because
// its term history can't be understood.
func (c choosing) mayBeNewer(branches []Branch) error {
	t, history := c.Target, branches[0].Histories[0]
	if c.Branch != 0 || c.Backup != "" || t.LSN != 0 {
		return nil
	}
	for _, u := range c.Unread {
		term := c.Terms[u.Term]
		if u.Term <= history[len(history)-1].Term || term == nil || term.TermHistory != nil {
			continue
		}
		if begun := c.begun(u.Term); !begun.IsZero() && (t.Time.IsZero() || !t.Time.Before(begun)) {
			return fmt.Errorf("%w: %s can't be understood (%s), and its leader may have written that: put it back "+
				"from a copy, or name a branch: %s", ErrOutside, u.Name, u.Problem, describe(branches))
		}
	}
	return nil
}

// latest is the branch that has begun last.
func latest(branches []Branch) Branch {
	return slices.MaxFunc(branches, func(a, b Branch) int { return a.Since.Compare(b.Since) })
}

// findBranch is the branch of a name, or one term's leader's, as that had it.
func findBranch(branches []Branch, name uint64) (Branch, bool) {
	for _, b := range branches {
		if b.Name == name {
			return b, true
		}
	}
	for _, b := range branches {
		for _, history := range b.Histories {
			if i := slices.IndexFunc(history, func(s ha.TermStart) bool { return s.Term == name }); i >= 0 {
				b.Histories = [][]ha.TermStart{history[:i+1]}
				return b, true
			}
		}
	}
	return Branch{}, false
}

// candidates are the branches that what is wanted may be on where none is named. A time is on the one that had begun
// last by then, and on no other unless clocks differ. The end, a transaction and a named point are the newest's, unless
// a backup is named.
func (w Wanted) candidates(branches []Branch) []Branch {
	t := w.Target
	switch {
	case !t.Time.IsZero():
		return slices.DeleteFunc(slices.Clone(branches), func(b Branch) bool { return !b.has(t.Time) })
	case t.LSN != 0, w.Backup != "":
		return branches
	}
	return branches[:1]
}

// String is for people.
func (w Wanted) String() string {
	words := w.Target.String()
	if w.Branch != 0 {
		words += fmt.Sprintf(" of branch %d", w.Branch)
	}
	if w.Backup != "" {
		return fmt.Sprintf("backup %s to %s", w.Backup, words)
	}
	return "to " + words
}

// in is the backup of a window to begin with; false if the window does not lead to what is wanted. A moment after the
// last WAL of one that is open is in it: nothing was written since, or nothing that has got there.
func (w Wanted) in(window Window, open bool) (format.Backup, bool) {
	t := w.Target
	open = open && !t.Time.After(w.Now)
	if t.LSN > window.To || t.Time.After(window.Until) && !open {
		return format.Backup{}, false
	}
	early := t.XID != "" || t.Name != ""
	for _, b := range slices.Backward(window.Backups) {
		switch {
		case slices.Contains(w.Young, b.ID):
		case t.LSN != 0 && b.StopLSN > t.LSN || !t.Time.IsZero() && b.Stopped.After(t.Time):
		case w.Backup == "" && early:
			// Where the first one was too young already, no later one of the window has the target either.
			first := window.Backups[0]
			return first, !slices.Contains(w.Young, first.ID)
		case w.Backup == "" || w.Backup == b.ID:
			return b, true
		}
	}
	return format.Backup{}, false
}

// outside says what can be restored.
func (c choosing) outside(branches []Branch) error {
	if c.Backup != "" && !slices.ContainsFunc(c.Backups, func(b format.Backup) bool { return b.ID == c.Backup }) {
		return fmt.Errorf("%w: the archive has no backup %s", ErrOutside, c.Backup)
	}
	if !slices.ContainsFunc(branches, func(b Branch) bool { return len(b.Windows) > 0 }) {
		return fmt.Errorf("%w: the archive has no complete backup with the WAL that it needs", ErrOutside)
	}
	words := "that is " + describe(branches)
	if len(branches) > 1 {
		words += ". For the end of a branch name it without a moment (branch alone in the target; --branch with " +
			"--to latest)"
	}
	return fmt.Errorf("%w: %s", ErrOutside, words)
}
