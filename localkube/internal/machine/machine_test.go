package machine

import (
	"slices"
	"testing"
)

func TestHasCapability(t *testing.T) {
	cases := map[string]struct {
		status string
		has    bool
	}{
		"all":                   {"Name:\tx\nCapEff:\t000001ffffffffff\n", true},
		"all but this":          {"CapEff:\t000001fffeffffff\n", false},
		"none":                  {"CapEff:\t0000000000000000\n", false},
		"a status without them": {"Name:\tx\n", false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := hasCapability(c.status, capSysResource); got != c.has {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestPackagesAreNamedOnce(t *testing.T) {
	needs := []Need{{"/nowhere/b", "two"}, {"no-such-program", "one"}, {"/nowhere/a", "two"}, {"sh", "dash"}}
	if got, want := Missing(needs), []string{"one", "two"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := Packages(needs), []string{"dash", "one", "two"}; !slices.Equal(got, want) {
		t.Errorf("of all needs the packages are %q, want %q", got, want)
	}
}
