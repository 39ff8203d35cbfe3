package sampledb

import (
	"toban.dev/internal/operator/desired"
)

// sidesHold is what everything says that would have the sides of a blue/green upgrade differ. Nothing of it is lost:
// it is done when there is one side again.
const sidesHold = "waits for the end of the blue/green upgrade, because the other side would not have it; " +
	"to have it sooner, accept the upgrade, or go back"

// restoreHeld says that spec.restore has to wait, because an earlier state is nothing that another side could follow.
// One that has begun goes on, and what brings back a database whose data is lost waits for nothing.
func (s *restoreFacts) restoreHeld() bool {
	spec := s.db.Spec.Restore
	return spec != nil && !spec.Latest && !spec.Survivor && !s.isRestored(spec.ID) &&
		desired.TwoSides(s.db) && s.restoringInstance() == ""
}
