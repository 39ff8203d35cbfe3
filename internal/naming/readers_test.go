package naming

import (
	"strings"
	"testing"
)

func TestWhoIsAReader(t *testing.T) {
	for name, c := range map[string]struct {
		db, pod string
		want    bool
	}{
		"a reader":        {"shop", "shop-readers-0", true},
		"the last reader": {"shop", "shop-readers-49", true},
		"an instance":     {"shop", "shop-0", false},
		"an instance of a SampleDB called like them":  {"shop-readers", "shop-readers-0", false},
		"a reader of that one":                        {"shop-readers", "shop-readers-readers-0", true},
		"that reader is none of the shorter SampleDB": {"shop", "shop-readers-readers-0", false},
		"one without a number":                        {"shop", "shop-readers-x", false},
		"nothing":                                     {"shop", "", false},
	} {
		if got := IsReader(c.db, c.pod); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// The names of the longest SampleDB are legal, and no claim of a reader is one of an instance of any SampleDB.
func TestNamesOfReaders(t *testing.T) {
	longest := strings.Repeat("x", MaxName)
	for what, name := range map[string]string{
		"the Pod": Reader(longest, 49), "the slot": Slot(Reader(longest, 49)),
		"the label of the revision": Readers(longest) + "-1234567890",
	} {
		if len(name) > 63 {
			t.Errorf("%s has %d characters", what, len(name))
		}
	}
	for _, other := range []string{"shop", "shop-readers", "reader-shop-readers", "reader"} {
		for _, db := range []string{"shop", "shop-readers"} {
			if ReaderClaim(db, 0) == Claim(other, 0) {
				t.Errorf("the claims of a reader of %s and of an instance of %s have one name", db, other)
			}
		}
	}
}
