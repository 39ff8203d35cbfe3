package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"toban.dev/test/plot"
)

// of are the values of all runs.
func of(runs []Run, value func(Run) float64) []float64 {
	values := make([]float64, len(runs))
	for i, r := range runs {
		values[i] = value(r)
	}
	return values
}

func sum(runs []Run, value func(Run) int) int {
	total := 0
	for _, r := range runs {
		total += value(r)
	}
	return total
}

// notMeasured is what a row says that has no run.
const notMeasured = "not measured yet"

// tablesOf are the two tables: the verdicts, and where the time went. The first
// row is the head. A row without a run says so in the first.
func tablesOf(rows []entry, runs []Run) (verdicts, parts [][]string) {
	verdicts = [][]string{{"fault", "shape", "n", "by itself", "Service p50 / p95 / max", "multi-host p50 / p95 / max",
		"third way p50 / p95 / max", "lost", "overlap", "not linearizable", "whole p50 / max", "needless"}}
	parts = [][]string{{"fault", "shape", "writable", "multi-host", "EndpointSlice", "Service"}}
	for _, e := range rows {
		own := slices.DeleteFunc(slices.Clone(runs), func(r Run) bool { return !e.has(r) })
		if len(own) == 0 {
			verdicts = append(verdicts, []string{e.fault, e.shape, "0", "", notMeasured, "", "", "", "", "", "", ""})
			continue
		}
		verdicts = append(verdicts, append([]string{e.fault, e.shape}, verdictRow(own)...))
		if row := partsRow(own); row != nil {
			parts = append(parts, append([]string{e.fault, e.shape}, row...))
		}
	}
	return verdicts, parts
}

func verdictRow(own []Run) []string {
	spread := func(value func(Run) float64, quantiles ...float64) string {
		var texts []string
		for _, q := range quantiles {
			texts = append(texts, fmt.Sprintf("%.2f", plot.Quantile(of(own, value), q)))
		}
		return strings.Join(texts, " / ") + " s"
	}
	count := func(is func(Run) bool) int {
		return sum(own, func(r Run) int {
			if is(r) {
				return 1
			}
			return 0
		})
	}
	also := "–"
	if _, path := own[0].third(); path != "" {
		also = string(path) + " " + spread(func(r Run) float64 { third, _ := r.third(); return third }, 0.5, 0.95, 1)
	}
	return []string{
		fmt.Sprint(len(own)), fmt.Sprint(count(func(r Run) bool { return r.ByItself })),
		spread(func(r Run) float64 { return r.Service }, 0.5, 0.95, 1),
		spread(func(r Run) float64 { return r.Multi }, 0.5, 0.95, 1),
		also,
		fmt.Sprintf("%d of %d",
			sum(own, func(r Run) int { return r.Lost }), sum(own, func(r Run) int { return r.Acked })),
		fmt.Sprint(sum(own, func(r Run) int { return r.Overlap })),
		fmt.Sprint(count(func(r Run) bool { return r.Linearizable != "Ok" && r.Linearizable != "" })),
		spread(func(r Run) float64 { return r.Whole }, 0.5, 1),
		changes(own),
	}
}

// changes is the number of needless changes of the primary, and of those that were
// to come and did not.
func changes(own []Run) string {
	text := fmt.Sprint(sum(own, func(r Run) int { return r.Needless }))
	if n := sum(own, func(r Run) int { return r.Missing }); n > 0 {
		text += fmt.Sprintf(", %d missing", n)
	}
	return text
}

// partsRow has medians of the runs that had an outage.
func partsRow(own []Run) []string {
	var row []string
	seen := false
	for _, part := range []func(Run) float64{
		func(r Run) float64 { return r.Stages.Writable }, func(r Run) float64 { return r.Stages.Multi },
		func(r Run) float64 { return r.Stages.Slice }, func(r Run) float64 { return r.Stages.Service },
	} {
		values := slices.DeleteFunc(of(own, part), func(v float64) bool { return v == 0 })
		if len(values) == 0 {
			row = append(row, "–")
			continue
		}
		seen = true
		row = append(row, fmt.Sprintf("%.2f s", plot.Quantile(values, 0.5)))
	}
	if !seen {
		return nil
	}
	return row
}

// printTable prints a table for a terminal.
func printTable(out io.Writer, rows [][]string) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	_ = w.Flush() // a terminal: there is nobody to tell
}

// markdownTable is a table for a page.
func markdownTable(rows [][]string) string {
	var text strings.Builder
	for i, row := range rows {
		fmt.Fprintf(&text, "| %s |\n", strings.Join(row, " | "))
		if i == 0 {
			fmt.Fprintln(&text, "|"+strings.Repeat(" --- |", len(row)))
		}
	}
	return text.String()
}

// The names of the marks between which tables go: <!-- drill: begin --> and <!-- drill: end -->.
const (
	markDrill = "drill"
	markSoak  = "soak"
)

// between puts something between the marks of a page; a page without them is
// replaced.
func between(page, mark, text string) string {
	begin := fmt.Sprintf("<!-- %s: begin -->", mark)
	from, to := strings.Index(page, begin), strings.Index(page, fmt.Sprintf("<!-- %s: end -->", mark))
	if from < 0 || to < from {
		return text
	}
	return page[:from+len(begin)] + "\n\n" + text + "\n" + page[to:]
}

// present prints the tables of what was made, and writes those of all faults, with the runs
// from before, and the plot, where that is wanted.
func present(o options, all []fault, before, runs []Run) error {
	if len(runs) == 0 {
		return nil
	}
	verdicts, parts := tablesOf(made(runs), runs)
	fmt.Println()
	printTable(os.Stdout, verdicts)
	fmt.Println("\nWhere the time went, since the fault (medians):")
	printTable(os.Stdout, parts)
	runs = slices.Concat(before, runs)
	if soaked(runs) {
		if o.markdown == "" {
			return nil
		}
		return writePage(o.markdown, markSoak, markdownTable(soakTable(runs)))
	}
	rows, err := entries(all, runs)
	if err != nil {
		return err
	}
	if o.markdown != "" {
		if err := writeTables(o.markdown, rows, runs); err != nil {
			return err
		}
	}
	if o.plot != "" {
		return os.WriteFile(o.plot, []byte(drawing(rows, runs)), 0o644)
	}
	return nil
}

// writeTables writes both tables into a page.
func writeTables(file string, rows []entry, runs []Run) error {
	verdicts, parts := tablesOf(rows, runs)
	text := markdownTable(verdicts) + "\nWhere the time went: medians, since the fault.\n\n" + markdownTable(parts)
	return writePage(file, markDrill, text)
}

// writePage writes something between the marks of a page.
func writePage(file, mark, text string) error {
	page, err := os.ReadFile(file)
	if err != nil && !os.IsNotExist(err) {
		return fmt.Errorf("read %s: %w", file, err)
	}
	return os.WriteFile(file, []byte(between(string(page), mark, text)), 0o644)
}
