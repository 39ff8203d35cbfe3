package backup

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"toban.dev/internal/ha"
)

// ErrOutside says that a moment can't be restored: it is in no window.
var ErrOutside = errors.New("outside of what can be restored")

// Wanted is what a restore has to lead to.
type Wanted struct {
	Target Target
	// Backup is the one to begin with, "" for the best.
	Backup string
	// Now is the clock: nothing that lies after it can be restored.
	Now time.Time
}

// Choice is from what to restore.
type Choice struct {
	TermHistory []ha.TermStart
	Backup      Backup
	// To is up to where WAL may be needed, Window where the backup was found.
	To     ha.LSN
	Window Window
}

// Choose finds the newest term history that leads to what is wanted, and the latest backup before that. Where a
// transaction or a named point lies is not known before it is replayed: then it is the oldest backup of the
// newest window. The error is ErrOutside, with what could be restored, if there is none.
func (c Catalogue) Choose(w Wanted) (Choice, error) {
	newest := true
	for _, history := range c.TermHistories() {
		for _, window := range c.windows(history) {
			if b, ok := w.in(window, newest); ok {
				choice := Choice{history, b, window.To, window}
				if w.Target.Immediate {
					choice.To = b.StopLSN
				}
				return choice, nil
			}
			newest = false
		}
	}
	return Choice{}, fmt.Errorf("restore %s: %w", w, c.outside(w.Backup))
}

func (w Wanted) String() string {
	if w.Backup != "" {
		return fmt.Sprintf("backup %s to %s", w.Backup, w.Target)
	}
	return "to " + w.Target.String()
}

// in is the backup of a window to begin with; false if the window does not lead to what is wanted. A moment after the
// last WAL of the newest window is in it: nothing was written since, or nothing that has got there.
func (w Wanted) in(window Window, newest bool) (Backup, bool) {
	t := w.Target
	open := newest && window.Missing == nil && !t.Time.After(w.Now)
	if t.LSN > window.To || t.Time.After(window.Until) && !open {
		return Backup{}, false
	}
	early := t.XID != "" || t.Name != ""
	for _, b := range slices.Backward(window.Backups) {
		switch {
		case t.LSN != 0 && b.StopLSN > t.LSN || !t.Time.IsZero() && b.Stopped.After(t.Time):
		case w.Backup == "" && early:
			return window.Backups[0], true
		case w.Backup == "" || w.Backup == b.ID:
			return b, true
		}
	}
	return Backup{}, false
}

// outside says what can be restored.
func (c Catalogue) outside(backup string) error {
	if backup != "" && !slices.ContainsFunc(c.Backups, func(b Backup) bool { return b.ID == backup }) {
		return fmt.Errorf("%w: the archive has no backup %s", ErrOutside, backup)
	}
	for _, history := range c.TermHistories() {
		if w, ok := c.Window(history); ok {
			return fmt.Errorf("%w: that is from %s (%s) to %s (%s)", ErrOutside,
				w.From, w.Since.UTC().Format(time.RFC3339), w.To, w.Until.UTC().Format(time.RFC3339))
		}
	}
	return fmt.Errorf("%w: the archive has no complete backup with the WAL that it needs", ErrOutside)
}
