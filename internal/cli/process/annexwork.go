package process

import (
	"errors"
	"slices"

	"toban.dev/internal/work"
)

// annexWork is what annexes do in Pods (docs/packages.md, "Core and annexes"). Each goes with its folder, its file and
// its line here, which a test of hack/house takes out.
var annexWork = []podWork{
	tableRestore,
	faultDrill,
}

// podWork is what an annex does in Pods.
type podWork struct {
	kinds []kind
	// refused are errors by which its work would end again.
	refused []error
}

// Refused says that what a Pod does would fail again in the same way: its exit code is naming.ExitRefused.
func Refused(err error) bool {
	return work.Refused(err) || slices.ContainsFunc(annexWork, func(a podWork) bool {
		return slices.ContainsFunc(a.refused, func(refused error) bool { return errors.Is(err, refused) })
	})
}
