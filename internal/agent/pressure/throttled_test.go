package pressure

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// The kernel's other word may be a larger sum: /proc/pressure/cpu counts since the boot of the node.
func TestThrottlingIsSeenBesideALargerSumOfPressure(t *testing.T) {
	dir := t.TempDir()
	p, c := filepath.Join(dir, "pressure"), filepath.Join(dir, "stat")
	put := func(psi, throttled time.Duration) {
		some := fmt.Appendf(nil, "some avg10=0.00 avg60=0.00 avg300=0.00 total=%d\n", psi.Microseconds())
		held := fmt.Appendf(nil, "nr_periods 3\nthrottled_time %d\n", throttled.Nanoseconds())
		if err := errors.Join(os.WriteFile(p, some, 0o600), os.WriteFile(c, held, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	oldP, oldT := pressureFiles, throttledFiles
	defer func() { pressureFiles, throttledFiles = oldP, oldT }()
	pressureFiles, throttledFiles = []string{p}, []string{c}
	put(30*time.Hour, time.Minute)
	said := kernelStalls()
	var g Gauge
	now := time.Now()
	g.look(now, said())
	put(30*time.Hour, time.Minute+10*time.Second)
	waited := g.look(now.Add(10*time.Second), said())
	if waited < 8*time.Second {
		t.Errorf("held to its limit for all of 10s, and %s is seen", waited)
	}
}
