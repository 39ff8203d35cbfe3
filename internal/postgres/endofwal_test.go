package postgres

import "testing"

const testSegment = 16 << 20

func TestARecordEndsAfterTheHeadersOfThePagesItGoesOver(t *testing.T) {
	at := tail{page: 8192, segment: testSegment}
	for name, c := range map[string]struct{ replayed, length, want uint64 }{
		"within a page":                         {0x3000148, 100, 0x3000148 + 100},
		"to the very end of a page":             {0x3001F00, 0x100, 0x3002000},
		"one byte on the next page":             {0x3001F00, 0x101, 0x3002000 + 24 + 1},
		"over three pages":                      {0x3001F00, 0x100 + 8168 + 50, 0x3004000 + 24 + 50},
		"begins after a page's header":          {0x3002000, 100, 0x3002000 + 24 + 100},
		"begins after a file's header":          {0x3000000, 100, 0x3000000 + 40 + 100},
		"one byte in the next file":             {0x3FFFF00, 0x101, 0x4000000 + 40 + 1},
		"the beginning and the next page's all": {0x3002000, 8168 + 8168, 0x3006000},
	} {
		t.Run(name, func(t *testing.T) {
			if got := at.end(at.first(c.replayed), c.length); got != c.want {
				t.Errorf("ends at %X, expected %X", got, c.want)
			}
		})
	}
}

func TestWALFilesAreNamedByTheirNumber(t *testing.T) {
	for name, c := range map[string]struct {
		replayed, segment uint64
		want              string
	}{
		"16 MiB":        {0x1_03000148, testSegment, "0000000100000003"},
		"1 GiB":         {0x1_C3000148, 1 << 30, "0000000100000003"},
		"the last byte": {0xA_FFFFFFFF, testSegment, "0000000A000000FF"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := (tail{replayed: c.replayed, segment: c.segment}).fileSuffix(); got != c.want {
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
