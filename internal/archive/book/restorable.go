package book

import (
	"toban.dev/internal/ha"
)

// Restorable is how many backups of each kind can be restored.
func (c Catalogue) Restorable() map[string]int {
	counted, in := map[string]int{}, Restorable(c.AllWindows())
	for _, b := range c.Backups {
		if in[b.ID] {
			counted[b.Kind()]++
		}
	}
	return counted
}

// AllWindows are those of all branches.
func (c Catalogue) AllWindows() []Window {
	histories := c.TermHistories()
	if len(histories) == 0 {
		histories = [][]ha.TermStart{c.NewestTermHistory()}
	}
	var all []Window
	for _, history := range histories {
		all = append(all, c.Windows(history)...)
	}
	return all
}

// Restorable are the ids of the backups in windows.
func Restorable(windows []Window) map[string]bool {
	ids := map[string]bool{}
	for _, w := range windows {
		for _, b := range w.Backups {
			ids[b.ID] = true
		}
	}
	return ids
}
