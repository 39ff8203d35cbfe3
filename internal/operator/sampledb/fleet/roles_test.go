package fleet

import "testing"

func TestOnlyThePrimaryHasItsLabel(t *testing.T) {
	for name, c := range map[string]struct {
		labelled []string
		want     bool
	}{
		"it has":              {[]string{"db-1"}, true},
		"nobody has":          {nil, false},
		"another has":         {[]string{"db-0"}, false},
		"another has as well": {[]string{"db-0", "db-1"}, false},
	} {
		if got := onlyPrimary("db-1", c.labelled); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
