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
	if !g.look(now.Add(10*time.Second), said()) {
		t.Error("held to its limit for all of 10s, and it is not seen")
	}
	for _, file := range []string{p, c} { // too many open files
		if err := os.Rename(file, file+".away"); err != nil {
			t.Fatal(err)
		}
	}
	g.look(now.Add(11*time.Second), said())
	for _, file := range []string{p, c} {
		if err := os.Rename(file+".away", file); err != nil {
			t.Fatal(err)
		}
	}
	if g.look(now.Add(12*time.Second), said()) {
		t.Error("where the kernel's word could not be read, all the time since the boot counts as waiting")
	}
}
