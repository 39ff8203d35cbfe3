package machine

import (
	"testing"

	"toban.dev/internal/ha"
)

// Who follows takes over the leader's lineage, so nobody may before it says where the leader's WAL begins, on the leader's own disk.
func TestALeaderIsFollowedWhenItsLineageIsOnDisk(t *testing.T) {
	t.Parallel()
	r := elected(t)
	r.holds = func(e Effect) bool { _, is := e.(Store); return is }
	promotion := wants[Command](r)[len(wants[Command](r))-1]
	r.step(Done{ID: promotion.ID, Timeline: 2, Begins: 100})
	stores := wants[Store](r)
	last := stores[len(stores)-1]
	if want := (ha.Start{Term: 5, LSN: 100, Timeline: 2}); last.Memory.Lineage[len(last.Memory.Lineage)-1] != want {
		t.Fatalf("it stores %+v", last.Memory.Lineage)
	}
	if r.Peer().Leading {
		t.Error("it is followed before")
	}
	r.step(Stored{ID: last.ID})
	if !r.Peer().Leading {
		t.Errorf("it is not followed after: %s", r.Instance)
	}
}
