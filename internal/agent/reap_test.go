package agent

import "testing"

func TestZombies(t *testing.T) {
	for name, c := range map[string]struct {
		stat string
		pid  int
		ok   bool
	}{
		"a child that has ended":           {"42 (sh) Z 1 42 42 0", 42, true},
		"a name with spaces and brackets":  {"42 (a ) Z 9 (b) Z 1 42", 42, true},
		"a child that runs":                {"42 (sh) S 1 42 42 0", 0, false},
		"somebody else's child":            {"42 (sh) Z 7 42 42 0", 0, false},
		"a line that was cut off":          {"42 (sh", 0, false},
		"a line with nothing after a name": {"42 (sh)", 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			pid, ok := zombieOf([]byte(c.stat), 1)
			if ok != c.ok || (ok && pid != c.pid) {
				t.Errorf("found %d, %t", pid, ok)
			}
		})
	}
}
