package pods

import (
	"math"
	"testing"

	"toban.dev/internal/protocol"
)

// The numbers come from a Pod.
func TestPercent(t *testing.T) {
	for name, c := range map[string]struct {
		done, total int64
		want        int32
	}{
		"a part":                     {29, 100, 29},
		"nearly all":                 {999, 1000, 99},
		"all":                        {7, 7, 100},
		"more than all":              {8, 7, 100},
		"it is not known how much":   {8, 0, 0},
		"less than nothing":          {-8, 7, 0},
		"more than fits a hundred":   {math.MaxInt64 / 2, math.MaxInt64, 50},
		"the most that there can be": {math.MaxInt64, math.MaxInt64, 100},
	} {
		if got := Percent(protocol.BackupProgress{Done: c.done, Total: c.total}); got != c.want {
			t.Errorf("%s: %d, expected %d", name, got, c.want)
		}
	}
}
