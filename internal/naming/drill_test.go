package naming

import (
	"strings"
	"testing"
	"time"
)

func TestTheNameOfADrillOfASchedule(t *testing.T) {
	due := time.Date(2026, 11, 26, 3, 0, 0, 0, time.UTC)
	if got := ScheduledDrill("shop", due); got != "shop-20261126-030000" {
		t.Errorf("it is %s", got)
	}
	long := strings.Repeat("n", MaxName-1)
	a, b := ScheduledDrill(long+"a", due), ScheduledDrill(long+"b", due)
	if a == b || len(a) > 51 || len(b) > 51 {
		t.Errorf("of names that differ at their ends: %s and %s", a, b)
	}
}
