package secrets

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
)

// A root is needed as long as something is of it, and as long as an agent may know the operator by it alone.
func TestWhichRootsAreNeeded(t *testing.T) {
	both, of := []string{"root", "root-2"}, func(names ...string) []string { return names }
	for name, c := range map[string]struct {
		use    rootUse
		needed []string
		reason string
		says   []string
	}{
		"one root": {rootUse{of("root"), "root", of("root"), of("root"), nil}, of("root"), "", nil},
		"one root, and an instance is away": {
			rootUse{of("root"), "root", of("root"), of("root"), of("x-1")}, of("root"), "", nil},
		"another is added": {
			rootUse{both, "root", of("root"), both, nil}, of("root"), v1.ReasonFormerRoot,
			of("rotate-password", "rotate-authority")},
		"the password is of it": {
			rootUse{both, "root-2", of("root"), both, nil}, both, v1.ReasonFormerRoot, of("rotate-authority")},
		"both authorities are trusted": {
			rootUse{both, "root-2", both, both, nil}, both, v1.ReasonFormerRoot, of("rotate-authority")},
		"without a password of its own": {
			rootUse{both, "", of("root"), both, nil}, of("root"), v1.ReasonFormerRoot, of("rotate-authority")},
		"an instance was not told": {
			rootUse{both, "root-2", of("root-2"), both, of("x-1")}, both, v1.ReasonFormerRoot, of("x-1")},
		"all were told": {rootUse{both, "root-2", of("root-2"), both, nil}, of("root-2"), v1.ReasonNewestRoot, nil},
		"it is known by the newest alone, and an instance is away": {
			rootUse{both, "root-2", of("root-2"), of("root-2"), of("x-1")}, of("root-2"), v1.ReasonNewestRoot, nil},
		"nobody can be asked, and nothing was told": {
			rootUse{both, "root", of("root"), nil, of("x-0")}, of("root"), v1.ReasonFormerRoot,
			of("x-0", "rotate-password", "rotate-authority")},
		"three": {
			rootUse{of("root", "root-2", "root-3"), "root-2", of("root-3"), of("root-2", "root-3"), nil},
			of("root-2", "root-3"), v1.ReasonFormerRoot, of("root-2", "rotate-password")},
	} {
		if got := c.use.needed(); !slices.Equal(got, c.needed) {
			t.Errorf("%s: %v is needed, want %v", name, got, c.needed)
		}
		v := c.use.verdict()
		isTrue := v.Status == metav1.ConditionTrue
		if v.Reason != c.reason || v.Reason != "" && isTrue != (v.Reason == v1.ReasonNewestRoot) {
			t.Errorf("%s: %+v, want %s", name, v, c.reason)
		}
		for _, part := range []string{"rotate-password", "rotate-authority", "x-"} {
			want := slices.ContainsFunc(c.says, func(say string) bool { return strings.HasPrefix(say, part) })
			if strings.Contains(v.Message, part) != want {
				t.Errorf("%s: it says %q", name, v.Message)
			}
		}
	}
}
