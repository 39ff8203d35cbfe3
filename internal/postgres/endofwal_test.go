package postgres

import (
	"testing"

	"toban.dev/internal/wal"
)

func TestWALFilesAreNamedByTheirNumber(t *testing.T) {
	for name, c := range map[string]struct {
		at      wal.LSN
		segment uint64
		want    string
	}{
		"16 MiB":        {0x1_03000148, wal.SegmentSize, "0000000100000003"},
		"1 GiB":         {0x1_C3000148, 1 << 30, "0000000100000003"},
		"the last byte": {0xA_FFFFFFFF, wal.SegmentSize, "0000000A000000FF"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := fileSuffix(c.at, c.segment); got != c.want {
				t.Errorf("got %s, expected %s", got, c.want)
			}
		})
	}
}

func TestStandbysOfARule(t *testing.T) {
	for rule, want := range map[string]int{
		"": 0, `ANY 1 ("a","b")`: 1, `any 2("a","b","c")`: 2, `FIRST 3 (a,b,c)`: 3,
		"2 (a,b)": 2, "a, b": 1, `"any 7 (x)"`: 1,
	} {
		if got := standbysOf(rule); got != want {
			t.Errorf("%s: %d, expected %d", rule, got, want)
		}
	}
}
