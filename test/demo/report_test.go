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

func TestReadPgbench(t *testing.T) {
	cases := map[string]struct {
		text string
		want bench
	}{
		"a run that ended": {
			"number of transactions actually processed: 1234\ntps = 411.5 (without initial connection time)\n",
			bench{transactions: 1234, tps: 411.5},
		},
		"a run that was cut off": {
			"number of transactions actually processed: 7/0\nRun was aborted\n", bench{transactions: 7},
		},
		"no run at all": {"pgbench: error: connection refused\n", bench{}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := readPgbench(c.text); got != c.want {
				t.Errorf("readPgbench = %+v, want %+v", got, c.want)
			}
		})
	}
}
