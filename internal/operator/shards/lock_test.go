package shards

import (
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestAHolderSaysOfHowManyShardsItIsOne(t *testing.T) {
	for identity, want := range map[string]int{
		Shard{}.Identity("toban-operator-7d9f", "1b2c"):     1,
		Shard{0, 1}.Identity("toban-operator-7d9f", "1b2c"): 1,
		Shard{2, 3}.Identity("host_shard-of", "1b2c"):       3,
		Shard{15, 16}.Identity("host", "1b2c"):              16,
		"toban-operator-7d9f_1b2c":                          1, // of a release that knows no shards
		"toban-operator-7d9f_1b2c_shard-1-of-x":             1,
		"":                                                  1,
	} {
		if got := countOf(identity); got != want {
			t.Errorf("%q is one of %d, want %d", identity, got, want)
		}
	}
}

// A lease counts as held until it was given up, or until it has not changed for as long as it is good for. What its
// times say does not matter: they are of another clock.
func TestALeaseIsHeldUntilItRunsOut(t *testing.T) {
	now := time.Date(2026, 11, 26, 3, 0, 0, 0, time.UTC)
	l := Lock{Now: func() time.Time { return now }}
	lease := func(version, holder string, renewed time.Time) *coordinationv1.Lease {
		seconds, at := int32(60), metav1.NewMicroTime(renewed)
		return &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Name: "toban-operator", ResourceVersion: version},
			Spec: coordinationv1.LeaseSpec{
				HolderIdentity: &holder, LeaseDurationSeconds: &seconds, RenewTime: &at,
			},
		}
	}
	for _, step := range []struct {
		what   string
		after  time.Duration
		lease  *coordinationv1.Lease
		holder string
	}{
		{"one that looks old by its own clock", 0, lease("7", "a", now.Add(-time.Hour)), "a"},
		{"nearly as long as it is good for", 59 * time.Second, lease("7", "a", now.Add(-time.Hour)), "a"},
		{"renewed", time.Second, lease("8", "a", now.Add(-time.Hour)), "a"},
		{"not renewed again", 60 * time.Second, lease("8", "a", now.Add(time.Hour)), ""},
		{"taken over", 0, lease("9", "b", now), "b"},
		{"given up", 0, lease("10", "", now), ""},
		{"never held", 0, &coordinationv1.Lease{}, ""},
	} {
		now = now.Add(step.after)
		if got := l.holder(step.lease); got != step.holder {
			t.Errorf("%s: it is held by %q, want %q", step.what, got, step.holder)
		}
	}
}
