package transfer

import (
	"testing"
)

func TestStreams(t *testing.T) {
	for name, c := range map[string]struct {
		processors int
		free       uint64
		limit      string
		want       int
	}{
		"a large machine":              {64, 256 << 30, "max\n", mostStreams},
		"two processors":               {2, 64 << 30, "max\n", leastStreams},
		"six processors":               {6, 64 << 30, "max\n", 12},
		"with less memory":             {6, 8 << 30, "max\n", 10},
		"a small machine":              {2, 1 << 30, "max\n", 2},
		"a container of 1 GiB":         {64, 256 << 30, "1073741824\n", 2},
		"a container of 256 MiB":       {64, 256 << 30, "268435456\n", 1},
		"a small machine's container":  {2, 1 << 30, "17179869184\n", 2},
		"a machine that does not tell": {2, 0, "", 2},
	} {
		t.Run(name, func(t *testing.T) {
			if n := streams(c.processors, c.free, []byte(c.limit)); n != c.want {
				t.Errorf("%d streams, expected %d", n, c.want)
			}
		})
	}
}
