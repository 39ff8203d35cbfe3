package tablerestore

import (
	"errors"
	"strings"
	"testing"
)

func TestWhatIsSaidOfLargeObjects(t *testing.T) {
	for name, c := range map[string]struct {
		found         largeObjects
		replace       bool
		says, refused string
	}{
		"none":                 {largeObjects{0, 0}, true, "", ""},
		"beside, all there":    {largeObjects{3, 0}, false, "name 3 large objects by their OIDs", ""},
		"beside, some gone":    {largeObjects{3, 2}, false, "2 of them are not there any more", ""},
		"in place, all there":  {largeObjects{3, 0}, true, "are as they are now", ""},
		"in place, some gone":  {largeObjects{3, 2}, true, "", "2 of them are not there any more"},
		"in place, what to do": {largeObjects{1, 1}, true, "", "lo_from_bytea"},
	} {
		says, err := c.found.verdict("public.t", c.replace)
		if !strings.Contains(says, c.says) || (says == "") != (c.says == "") || (err != nil) != (c.refused != "") ||
			err != nil && (!errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), c.refused)) {
			t.Errorf("%s: %q, %v", name, says, err)
		}
	}
}

func TestLargeObjectsAreCountedOnce(t *testing.T) {
	n := &namedOIDs{among: map[uint32]bool{1: true, 23: true, 4: true}, seen: map[uint32]bool{}}
	for _, text := range []string{"1\n2", "3\n\\N\n23\n5\n", "", "2\n", "4294967295\n"} {
		if got, err := n.Write([]byte(text)); got != len(text) || err != nil {
			t.Fatal(got, err)
		}
	}
	if len(n.seen) != 2 || !n.seen[1] || !n.seen[23] {
		t.Errorf("they are %v", n.seen)
	}
}
