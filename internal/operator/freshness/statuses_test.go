package freshness

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

// A request that has ended is not in the annotations of the moment in which the status says so.
func TestTheAnnotationsAreThoseOfTheStatus(t *testing.T) {
	var w Statuses[string]
	asks := func(version string) *metav1.ObjectMeta {
		o := object(version)
		o.Annotations = map[string]string{"restart": "all"}
		return o
	}
	w.Note(object("12"), "restarted")
	for version, want := range map[string]string{"11": "", "12": "all"} {
		cached := asks(version)
		w.Latest(cached, "restarting")
		if got := cached.Annotations["restart"]; got != want {
			t.Errorf("cache at %s: it asks for %q, want %q", version, got, want)
		}
		w.Note(object("12"), "restarted")
	}
	noted := asks("14")
	w.Note(noted, "restarting")
	delete(noted.Annotations, "restart")
	cached := object("13")
	w.Latest(cached, "")
	if cached.Annotations["restart"] != "all" {
		t.Error("what was noted changes with its object")
	}
}
