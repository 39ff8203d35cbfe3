package main

import (
	"strings"
	"testing"
	"time"
)

// What the tests' own children have used counts, and the exit code is passed on.
func TestWhatIsUsedIsMeasured(t *testing.T) {
	folder := t.TempDir()
	t.Setenv(measured, folder)
	const busy = "i=0; while [ $i -lt 200000 ]; do i=$((i + 1)); done"
	code, err := measure([]string{"/bin/sh", "-c", "(" + busy + "); exit 3"}, folder)
	if err != nil || code != 3 {
		t.Fatalf("the tests end with %d, %v", code, err)
	}
	all, err := readMeasured(folder)
	if err != nil || len(all) != 1 || all[0].seconds <= 0 || !strings.HasSuffix(all[0].folder, "hack/gotest") {
		t.Fatalf("it is noted %+v, %v", all, err)
	}
	var out strings.Builder
	tellUsed(&out, []used{{"/x/long", 61}, {"/x/short", 1}}, 70*time.Second)
	const want = "    61 s of a processor  /x/long\n" +
		"    70 s of a processor, in all: the tests 62 s, to build them 8 s\n"
	if out.String() != want {
		t.Errorf("it tells\n%s", out.String())
	}
}
