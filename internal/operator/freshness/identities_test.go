package freshness

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestWhoIsGoneIsKnownByItsName(t *testing.T) {
	var i Identities
	named := func(uid types.UID) metav1.Object { return &metav1.ObjectMeta{Namespace: "n", Name: "x", UID: uid} }
	key := types.NamespacedName{Namespace: "n", Name: "x"}
	if got := i.Leave(key); got != "" {
		t.Errorf("nobody was met, and %s leaves", got)
	}
	for _, c := range []struct{ uid, former types.UID }{{"a", ""}, {"a", ""}, {"b", "a"}} {
		if got := i.Meet(named(c.uid)); got != c.former {
			t.Errorf("%s is met: the former is %q, want %q", c.uid, got, c.former)
		}
	}
	if first, second := i.Leave(key), i.Leave(key); first != "b" || second != "" {
		t.Errorf("it leaves as %q, then %q", first, second)
	}
}
