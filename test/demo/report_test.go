package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestReport(t *testing.T) {
	var out strings.Builder
	r := report{
		stages: []stage{{"applied → first write", 3500 * time.Millisecond}},
		rows:   1000000, outage: 1234 * time.Millisecond, deleted: "example-database-0", acknowledged: 1500, lost: 2,
	}
	r.print(screen{out: &out})
	for _, want := range []string{
		"3.50 s", "1,000,000 rows", "example-database-0 deleted: no writes for", "undeleted: takes writes after",
		"1.23 s", "1,500", "lost",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the report lacks %q:\n%s", want, &out)
		}
	}
	if strings.Contains(out.String(), "\x1b") {
		t.Error("colours where there is no terminal")
	}
}

func TestReadTimings(t *testing.T) {
	path := filepath.Join(t.TempDir(), "timings")
	if err := os.WriteFile(path, []byte("Kubernetes, three nodes ready\t21.5\nimages\t0.2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := readTimings(path)
	if err != nil || len(got) != 2 || got[0].took != 21500*time.Millisecond {
		t.Errorf("readTimings = %v, %v", got, err)
	}
}
