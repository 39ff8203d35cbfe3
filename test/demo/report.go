package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// stage is a part of the way, and how long it took.
type stage struct {
	name string
	took time.Duration
}

// counts are the rows of pgbench's tables.
type counts struct{ accounts, history int64 }

// report is what is told at the end.
type report struct {
	stages []stage

	rows          int64
	filled        time.Duration
	before, after counts
	transactions  int64
	tps           float64
	deleted       string
	outage        time.Duration
	back          time.Duration
	acknowledged  int
	lost          int
	// removed is how long the deletion took, with the last backup, undeleted until it took writes again.
	removed, undeleted time.Duration
	returned           counts
}

func (r report) print(s screen) {
	s.chapter("What happened")
	for _, st := range r.stages {
		s.line("%-42s %10s", st.name, seconds(st.took))
	}
	s.line("%-42s %10s  %s rows", "pgbench: tables filled", seconds(r.filled), group(r.rows))
	fmt.Fprintln(s.out)
	s.line("%-42s %10.0f  a second; %s in all", "pgbench: transactions (TPC-B)", r.tps, group(r.transactions))
	s.line("%-42s %10s  as a client saw it", r.deleted+" deleted: no writes for", seconds(r.outage))
	s.line("%-42s %10s", "… and all instances ready after", seconds(r.back))
	fmt.Fprintln(s.out)
	s.line("%-42s %10s  %s before", "rows in pgbench_accounts", group(r.after.accounts), group(r.before.accounts))
	s.line("%-42s %10s  %s before", "rows in pgbench_history", group(r.after.history), group(r.before.history))
	fmt.Fprintln(s.out)
	s.line("%-42s %10s  with a last backup", "the database deleted: gone after", seconds(r.removed))
	s.line("%-42s %10s  with its rows, roles and passwords", "undeleted: takes writes after", seconds(r.undeleted))
	s.line("%-42s %10s  as before",
		"rows in pgbench_accounts and _history", group(r.returned.accounts+r.returned.history))
	fmt.Fprintln(s.out)
	s.line("%-42s %10s", "rows acknowledged to the writer", group(int64(r.acknowledged)))
	colour := "1;32"
	if r.lost > 0 {
		colour = "1;31"
	}
	s.line("%s", s.paint(colour, fmt.Sprintf("%-42s %10d", "acknowledged rows lost", r.lost)))
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.2f s", d.Seconds()) }

// group writes a number with a comma for each thousand.
func group(n int64) string {
	digits := strconv.FormatInt(n, 10)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// readTimings reads what hack/up.sh measured.
func readTimings(path string) ([]stage, error) {
	if path == "" {
		return nil, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the timings: %w", err)
	}
	var stages []stage
	for l := range strings.SplitSeq(strings.TrimSpace(string(text)), "\n") {
		name, number, _ := strings.Cut(l, "\t")
		took, err := strconv.ParseFloat(number, 64)
		if err != nil {
			return nil, fmt.Errorf("understand the timing %q: %w", l, err)
		}
		stages = append(stages, stage{name: name, took: time.Duration(took * float64(time.Second))})
	}
	return stages, nil
}
