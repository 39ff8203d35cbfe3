package main

import (
	"encoding/xml"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"toban.dev/test/plot"
)

func TestQuantileIsAValueThatWasMeasured(t *testing.T) {
	values := []float64{5, 1, 4, 2, 3}
	for q, want := range map[float64]float64{0: 1, 0.5: 3, 0.95: 5, 1: 5} {
		if got := plot.Quantile(values, q); got != want {
			t.Errorf("quantile(%g) = %g, want %g", q, got, want)
		}
	}
	if got := plot.Quantile(nil, 0.5); !math.IsNaN(got) {
		t.Errorf("of nothing: %g", got)
	}
	if values[0] != 5 {
		t.Error("it sorted what it was given")
	}
}

var someRows = []entry{{usual, "one"}, {usual, "two <&>"}, {usual, "never made"}}

var someRuns = []Run{
	{
		Fault: "one", Service: 2, Multi: 1, Whole: 4, Acked: 10,
		ByItself: true, Linearizable: "Ok", Stages: Stages{Writable: 0.5},
	},
	{
		Fault: "one", Service: 3, Multi: 1.5, Whole: 5, Acked: 10, Lost: 1, Overlap: 2, Needless: 1, Missing: 2,
		Linearizable: "Illegal",
	},
	{Fault: "two <&>", Service: 0.02, Multi: 0.01, Acked: 5, ByItself: true, Linearizable: "Ok"},
}

func TestTheTableHasARowForEachFault(t *testing.T) {
	verdicts, parts := tablesOf(someRows, someRuns)
	if len(verdicts) != 4 || len(parts) != 2 {
		t.Fatalf("%d and %d rows", len(verdicts), len(parts))
	}
	want := []string{
		"one", "three", "2", "1", "2.00 / 3.00 / 3.00 s", "1.00 / 1.50 / 1.50 s",
		"–", "1 of 20", "2", "1", "4.00 / 5.00 s", "1, 2 missing",
	}
	if !slices.Equal(verdicts[1], want) {
		t.Errorf("row %q, want %q", verdicts[1], want)
	}
	if want := []string{"one", "three", "0.50 s", "–", "–", "–"}; !slices.Equal(parts[1], want) {
		t.Errorf("row %q, want %q", parts[1], want)
	}
	if last := verdicts[3]; last[0] != "never made" || !slices.Contains(last, notMeasured) {
		t.Errorf("a row without a run is %q", last)
	}
	pooled := []Run{{Fault: "one", Pooler: 0.4}, {Fault: "one", Pooler: 0.6}}
	if rows, _ := tablesOf(someRows, pooled); rows[1][6] != "pooler 0.40 / 0.60 / 0.60 s" {
		t.Errorf("through a pooler: %q", rows[1])
	}
	text := markdownTable(verdicts)
	if lines := strings.Split(strings.TrimSpace(text), "\n"); len(lines) != 5 ||
		strings.Count(lines[1], "---") != len(verdicts[0]) {
		t.Errorf("as Markdown:\n%s", text)
	}
}

func TestTheTableGoesBetweenTheMarks(t *testing.T) {
	const begin, end = "<!-- drill: begin -->", "<!-- drill: end -->"
	page := "before\n<!-- soak: begin -->\n<!-- soak: end -->" + begin + "\nold\n" + end + "\nafter\n"
	once := between(page, markDrill, "| new |\n")
	want := "before\n<!-- soak: begin -->\n<!-- soak: end -->" + begin + "\n\n| new |\n\n" + end + "\nafter\n"
	if once != want {
		t.Errorf("%q, want %q", once, want)
	}
	if twice := between(once, markDrill, "| new |\n"); twice != once {
		t.Errorf("again: %q", twice)
	}
	if got := between("no marks", markDrill, "| new |\n"); got != "| new |\n" {
		t.Errorf("a page without marks: %q", got)
	}
}

func TestThePlotIsXMLWithADotForEachRun(t *testing.T) {
	text := drawing(someRows, someRuns)
	decoder := xml.NewDecoder(strings.NewReader(text))
	for {
		_, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
	}
	if dots := strings.Count(text, `r="4"`); dots != 2*len(someRuns) {
		t.Errorf("%d dots", dots)
	}
	if strings.Contains(text, "never made") || strings.Contains(text, "NaN") {
		t.Error(text)
	}
}

func TestTicksAreRoundAndNotMany(t *testing.T) {
	for most, want := range map[float64]float64{0: 0.1, 0.9: 0.1, 3: 0.5, 12: 2, 60: 10, 240: 50} {
		if got := plot.Tick(most); math.Abs(got-want) > 1e-9 {
			t.Errorf("tick(%g) = %g, want %g", most, got, want)
		}
	}
}

func TestRunsAreReadAsTheyWereWritten(t *testing.T) {
	file := filepath.Join(t.TempDir(), "runs.json")
	if err := writeRuns(file, someRuns); err != nil {
		t.Fatal(err)
	}
	got, err := readRuns(file)
	if err != nil || len(got) != 3 || got[1].Service != 3 || got[0].Stages.Writable != 0.5 {
		t.Errorf("%+v, %v", got, err)
	}
	if err := writeRuns("", someRuns); err != nil {
		t.Errorf("without a file: %v", err)
	}
}

func TestChooseKnowsItsFaults(t *testing.T) {
	all := faults(options{})
	if got, err := choose(all, "", ""); err != nil || len(got) != len(all) {
		t.Errorf("all: %d, %v", len(got), err)
	}
	got, err := choose(all, "switchover,node-cut", "switchover")
	if err != nil || len(got) != 1 || got[0].name != "node-cut" {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := choose(all, "node-cute", ""); err == nil {
		t.Error("a fault that is not there was chosen")
	}
}

// The page about the faults has every fault, and those of what was measured have the place for their table.
func TestThePagesHaveEveryFaultAndTheMarks(t *testing.T) {
	page := func(name string) string {
		text, err := os.ReadFile("../../docs/" + name)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	about := page("drillsfaults.md")
	for _, f := range faults(options{}) {
		if !strings.Contains(about, "`"+f.name+"`") {
			t.Errorf("docs/drillsfaults.md has no %s", f.name)
		}
	}
	for name, mark := range map[string]string{"drills.md": markDrill, "soak.md": markSoak} {
		if between(page(name), mark, "") == "" {
			t.Errorf("docs/%s has no marks for the table", name)
		}
	}
}
