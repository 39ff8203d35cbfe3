package wal

import "testing"

func TestLSN(t *testing.T) {
	for _, text := range []string{"0/0", "16/B374D848", "FFFFFFFF/FFFFFFFF"} {
		if l, err := ParseLSN(text); err != nil || l.String() != text {
			t.Errorf("%s became %s, %v", text, l, err)
		}
	}
	for _, text := range []string{"", "1", "x/1", "1/x", "100000000/0"} {
		if _, err := ParseLSN(text); err == nil {
			t.Errorf("%q was taken for a WAL position", text)
		}
	}
}

func TestPositionsDoNotOverflow(t *testing.T) {
	for name, c := range map[string]struct {
		got, want LSN
	}{
		"a sum":                        {LSN(5).Add(6), 11},
		"up to the highest position":   {(MaxLSN - 6).Add(6), MaxLSN},
		"over it":                      {(MaxLSN - 6).Add(7), MaxLSN},
		"far over it":                  {MaxLSN.Add(1 << 63), MaxLSN},
		"a difference":                 {LSN(LSN(11).Since(5)), 6},
		"since a later one":            {LSN(LSN(5).Since(11)), 0},
		"the end of the last segment":  {Segment{1, 1<<40 - 1, SegmentSize}.End(), MaxLSN},
		"a number that no segment has": {Segment{1, 1 << 40, SegmentSize}.Start(), MaxLSN},
	} {
		if c.got != c.want {
			t.Errorf("%s: %s, expected %s", name, c.got, c.want)
		}
	}
}
