// Package steps is how a change of a database goes from step to step: a table with a row for each, and the one function
// that reads it. What a change does is in its rows (docs/architecture.md, "Changes"); who acts looks at the phase, and
// kubectl toban plan at the headings. It knows no Kubernetes, and no PostgreSQL.
package steps

import (
	"fmt"
	"time"

	"toban.dev/internal/change/window"
)

// Phase is the name of a step, as the status has it.
type Phase string

// Task is work that a step asks for, where its phase does not say which.
type Task string

// Why is the name of a reason.
type Why string

// Work is how far something is that a step needs: a Job, a backup, the nodes with the image.
type Work struct {
	// Started says that there is one, Done that it has ended well.
	Started, Done bool
	// Failed is why it has ended without success, "" where it has not.
	Failed string
	// Says is how far it is, for people.
	Says string
	// Silent is for how long who does it has not answered, 0 where he does; Lost is why Kubernetes does not know what
	// has become of him, "" where it does.
	Silent time.Duration
	Lost   string
}

// Reason is something that may hold, and then decides.
type Reason struct {
	// Is says that it holds.
	Is bool
	// To is the step to which it leads, "" for none: what waits stays where it is, what fails does as the row says.
	To Phase
	// Why is its name, "" where nobody asks for it, Says what is said of it.
	Why  Why
	Says string
	// At is when it ends by itself, zero for never.
	At time.Time
}

// Row is a step. It is decided in the order of its fields from Fails on: the first that holds counts. More than one row
// may have the same phase.
type Row struct {
	Phase Phase
	// Heading is what happens in it, for those who ask before; Writes what becomes of writes meanwhile.
	Heading string
	Writes  Writes
	// Kept says that a change that is here stays here, whatever becomes of the steps before. All others are looked at
	// from the first on each time, so that what was done and is gone is done again.
	Kept bool
	// Begins is what is said when the step before is done: what this one asks for is done after that is on record. ""
	// for a step that is looked at with the one before.
	Begins string
	// Until is when its patience ends, zero where it has none or need not be looked at then.
	Until time.Time
	// Former is why it was left before, which is said for as long as it waits.
	Former string

	// Fails are reasons to give it up. Fail is what becomes of it then, nil for the same as in the whole table.
	Fails []Reason
	Fail  func(why string) Decision
	// Window is what is said while the window is closed for which it waits, with %s for when it opens, "" for a step
	// that does not wait for it. What has failed before is seen before.
	Window string
	// Work is what has to be done, nil for nothing, Task its name. Says is said meanwhile, and how far the work is.
	Work *Work
	Task Task
	Says string
	// Waits are what it waits for, or what leads elsewhere.
	Waits []Reason
}

// Table is a change: its steps in their order.
type Table struct {
	Now time.Time
	// Window is the one for which some steps wait, nil where they need not.
	Window *window.Window
	Rows   []Row
	// Fail is what becomes of the change when a step fails.
	Fail func(why string) Decision
}

// Decision is the step that a change is in now, and what is to be said about it.
type Decision struct {
	Phase Phase
	Says  string
	// Why is the name of the reason, "" where it has none.
	Why Why
	// Failure is why it has failed, PutOff that it was put off for that.
	Failure string
	PutOff  bool
	// Task is what is to be done now, "" for nothing besides what the phase itself asks for.
	Task Task
	// At is when that changes by itself, zero for never.
	At time.Time
}

// WhyOutsideWindow is the name of the reason that a window is closed.
const WhyOutsideWindow Why = "OutsideWindow"

// Decide says in which step a change is that was in one. It is in the last one, with nothing to be said, when all are
// done.
func (t Table) Decide(from Phase) Decision {
	first := t.keeps(from)
	for n := first; n < len(t.Rows); n++ {
		row := t.Rows[n]
		if n > first && row.Begins != "" {
			return Decision{Phase: row.Phase, Says: row.Begins, At: row.Until}
		}
		if d, decides := t.look(row); decides {
			return d
		}
	}
	return Decision{Phase: t.Rows[len(t.Rows)-1].Phase}
}

// keeps is the first row to look at.
func (t Table) keeps(from Phase) int {
	for n, row := range t.Rows {
		if row.Kept && row.Phase == from {
			return n
		}
	}
	return 0
}

// look is about one step; false where it is done.
func (t Table) look(row Row) (Decision, bool) {
	for _, reason := range row.Fails {
		if reason.Is {
			return t.fail(row, reason.Says), true
		}
	}
	if row.Work != nil && row.Work.Failed != "" {
		return t.fail(row, row.Work.Failed), true
	}
	waits := Decision{Phase: row.Phase, Failure: row.Former, At: row.Until}
	if row.Window != "" && t.Window != nil && !t.Window.Open(t.Now) {
		waits.At = t.Window.Next(t.Now)
		waits.Why, waits.Says = WhyOutsideWindow, fmt.Sprintf(row.Window, waits.At.UTC().Format(time.RFC3339))
		return waits, true
	}
	if row.Work != nil && !row.Work.Done {
		waits.Task, waits.Says = row.Task, row.Says+Because(row.Work.Says)
		return waits, true
	}
	for _, reason := range row.Waits {
		if !reason.Is {
			continue
		}
		waits.Why, waits.Says = reason.Why, reason.Says
		if reason.To != "" {
			waits.Phase = reason.To
		}
		if !reason.At.IsZero() {
			waits.At = reason.At
		}
		return waits, true
	}
	return Decision{}, false
}

func (t Table) fail(row Row, why string) Decision {
	if row.Fail != nil {
		return row.Fail(why)
	}
	return t.Fail(why)
}

// Because is what follows a sentence as its reason, "" for none.
func Because(text string) string {
	if text == "" {
		return ""
	}
	return ": " + text
}
