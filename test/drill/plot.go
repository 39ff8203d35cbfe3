package main

import (
	"slices"

	"toban.dev/test/plot"
)

// series are the two ways in, each in a colour of its own that a print without
// colours still tells apart by its place.
var series = []struct {
	plot.Series
	value func(Run) float64
}{
	{
		plot.Series{Name: "through the Service", Colour: "#b5482f", Shift: -7},
		func(r Run) float64 { return r.Service },
	},
	{plot.Series{Name: "multi-host", Colour: "#2f6db5", Shift: 7}, func(r Run) float64 { return r.Multi }},
}

// drawing is an SVG with a row for each fault and a dot for each run: how long nobody
// was acknowledged. A bar marks the median.
func drawing(rows []entry, runs []Run) string {
	p := plot.Plot{Title: "Longest time without an acknowledged write, each run", Unit: "s"}
	for _, s := range series {
		p.Series = append(p.Series, s.Series)
	}
	for _, e := range rows {
		own := slices.DeleteFunc(slices.Clone(runs), func(r Run) bool { return !e.has(r) })
		if len(own) == 0 {
			continue
		}
		row := plot.Row{Label: e.label()}
		for _, s := range series {
			row.Values = append(row.Values, of(own, s.value))
		}
		p.Rows = append(p.Rows, row)
	}
	return p.SVG()
}
