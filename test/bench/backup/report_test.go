package main

import (
	"strings"
	"testing"
)

// The share of the limit is that of the slowest limit of the same way.
func TestSharesOfTheLimit(t *testing.T) {
	limitOf := func(way string) measure { return measure{name: "limit of " + way, way: way, limit: true} }
	one := func(way, tool string) measure { return measure{name: tool + " " + way, way: way, tool: tool} }
	all := []timed{
		{limitOf(wayBackup), []float64{1, 2, 9}},
		{measure{name: "limit: another", way: wayBackup, limit: true}, []float64{3, 3, 3}},
		{one(wayBackup, "Toban"), []float64{6, 5, 7}},
		{limitOf(wayRestore), []float64{4, 4, 4}},
		{one(wayRestore, "Toban"), []float64{5, 5, 4}},
		{one(wayRestore, "<another>"), []float64{8, 8, 8}},
		{measure{name: "neither way"}, []float64{1, 1, 1}},
	}
	var text strings.Builder
	table(&text, all, 600e6)
	for _, want := range []string{
		"| Toban backup | 6.0 s | 5.0 – 7.0 s | 100 | 50 % |", "| Toban restore | 5.0 s | 4.0 – 5.0 s | 120 | 80 % |",
		"| <another> restore | 8.0 s | 8.0 – 8.0 s | 75 | 50 % |", "| neither way | 1.0 s | 1.0 – 1.0 s | 600 |  |",
		"| limit of backup | 2.0 s | 1.0 – 9.0 s | 300 |  |",
	} {
		if !strings.Contains(text.String(), want+"\n") {
			t.Errorf("there is no\n%s in\n%s", want, text.String())
		}
	}
	svg := drawing(all)
	if dots := strings.Count(svg, `r="4"`); dots != 9 || strings.Contains(svg, "NaN") ||
		!strings.Contains(svg, "&lt;another&gt;") {
		t.Errorf("%d dots in\n%s", dots, svg)
	}
}
