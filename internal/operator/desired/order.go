package desired

import "strings"

// RestartOrder compares two instances by when their servers restart: the primary comes last, since it hands over, and
// of the others the one with the last name first.
func RestartOrder(a, b, primary string) int {
	switch {
	case a == b:
		return 0
	case a == primary:
		return 1
	case b == primary:
		return -1
	}
	return strings.Compare(b, a)
}
