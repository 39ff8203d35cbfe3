package steps

import "slices"

// Writes is what becomes of the writes of clients.
type Writes string

// What may become of writes, from the least to the worst.
const (
	WritesGoOn     Writes = "GoOn"     // they do
	WritesHandOver Writes = "HandOver" // another instance takes over in order: a second or two without
	WritesPause    Writes = "Pause"    // none for 3 s at most, when clients move and when they move back
	WritesDown     Writes = "Down"     // none until the step is done
)

// Writes is the worst that becomes of writes in any step.
func (t Table) Writes() Writes {
	order := []Writes{"", WritesGoOn, WritesHandOver, WritesPause, WritesDown}
	worst := 1
	for _, row := range t.Rows {
		worst = max(worst, slices.Index(order, row.Writes))
	}
	return order[worst]
}

// Headings say what happens, in the order of the steps.
func (t Table) Headings() (out []string) {
	for _, row := range t.Rows {
		if row.Heading != "" {
			out = append(out, row.Heading)
		}
	}
	return out
}
