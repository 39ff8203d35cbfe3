package written

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func object(version string) *metav1.ObjectMeta {
	return &metav1.ObjectMeta{UID: "a", ResourceVersion: version}
}

func TestAStatusCountsUntilTheCacheHasIt(t *testing.T) {
	var w Statuses[string]
	if got := w.Latest(object("9"), "cached"); got != "cached" {
		t.Errorf("nothing written: %s", got)
	}
	w.Note(object("12"), "written")
	for _, c := range []struct{ version, want string }{
		{"9", "written"},
		{"11", "written"}, // a change between, by somebody else
		{"12", "cached"},
		{"9", "cached"}, // it was seen once: nothing is kept
	} {
		if got := w.Latest(object(c.version), "cached"); got != c.want {
			t.Errorf("cache at %s: %s, want %s", c.version, got, c.want)
		}
	}
	w.Note(object("12"), "written")
	w.Forget("a")
	if got := w.Latest(object("9"), "cached"); got != "cached" {
		t.Errorf("forgotten: %s", got)
	}
	w.Note(object("opaque"), "written")
	if got := w.Latest(object("9"), "cached"); got != "cached" {
		t.Errorf("versions that can't be compared: %s", got)
	}
}
