package process

import (
	"context"
	"errors"
	"slices"

	"github.com/spf13/cobra"

	"toban.dev/internal/agent"
	"toban.dev/internal/work"
	"toban.dev/internal/work/initjob"
)

// annexWork is what annexes do in Pods (docs/packages.md, "Core and annexes"). Each goes with its folder, its file and
// its line here, which a test of hack/house takes out.
var annexWork = []podWork{
	tableRestore,
	faultDrill,
	blueGreen,
	majorUpgrade,
	secondStore,
	archiveScrub,
	passwords,
	undelete,
}

// podWork is what an annex does in Pods.
type podWork struct {
	kinds []kind
	// verbs are those of other processes that its work starts, by the verb that they are below.
	verbs map[string]func() *cobra.Command
	// refused are errors by which its work would end again.
	refused []error
	// unlink removes from what was restored the links that it had to other servers; nil where there are none.
	unlink func(ctx context.Context, connect initjob.Connect) error
	// verified is done at the end of a verification; nil for nothing.
	verified func(context.Context, *work.Verification)
	// agent gives an agent what it does for the annex; nil for nothing.
	agent func(*agent.Options)
}

// unlink removes the links of all annexes.
func unlink(ctx context.Context, connect initjob.Connect) error {
	for _, a := range annexWork {
		if a.unlink == nil {
			continue
		}
		if err := a.unlink(ctx, connect); err != nil {
			return err
		}
	}
	return nil
}

// Refused says that what a Pod does would fail again in the same way: its exit code is naming.ExitRefused.
func Refused(err error) bool {
	return work.Refused(err) || slices.ContainsFunc(annexWork, func(a podWork) bool {
		return slices.ContainsFunc(a.refused, func(refused error) bool { return errors.Is(err, refused) })
	})
}

// besides does what all annexes do at the end of a verification.
func besides(ctx context.Context, v *work.Verification) {
	for _, a := range annexWork {
		if a.verified != nil {
			a.verified(ctx, v)
		}
	}
}
