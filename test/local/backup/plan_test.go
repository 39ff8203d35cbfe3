package backup_test

import (
	"math"

	"toban.dev/internal/archive/book"
	"toban.dev/internal/archive/format"
)

// plan is all WAL from the start of a backup on.
func (a *archive) plan(b format.Backup) book.WALPlan {
	a.Helper()
	c, err := book.Read(a.Context(), a)
	must(a, err)
	history := c.NewestTermHistory()
	to, gap := c.Covered(history, b.StartLSN)
	if gap != nil || to < b.StopLSN || to == math.MaxUint64 {
		a.Fatalf("the archive has WAL up to %s, with the gap %v", to, gap)
	}
	plan, err := c.PlanWAL(history, b.StartLSN, to)
	must(a, err)
	return plan
}
