package server_test

import (
	"testing"

	"golang.org/x/sync/errgroup"
)

// The archiver and what tends the server make the same slot, each in a session of its own.
func TestTwoMakeTheSameSlotAtOnce(t *testing.T) {
	n, _ := pair(t, 0)
	one, other := n.session(), n.session()
	defer one.Close()
	defer other.Close()
	for range 50 {
		var both errgroup.Group
		both.Go(func() error { return one.EnsureSlot(t.Context(), "toban_archive") })
		both.Go(func() error { return other.EnsureSlots(t.Context(), []string{"toban_archive"}) })
		must(n, both.Wait())
		must(n, one.EnsureSlots(t.Context(), nil))
	}
}
