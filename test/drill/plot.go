package main

import (
	"fmt"
	"html"
	"math"
	"slices"
	"strings"
)

// The plot's measures, in pixels.
const (
	plotWidth  = 960.0
	plotLeft   = 230.0 // room for the names
	plotRight  = 30.0
	plotTop    = 70.0
	plotBottom = 50.0
	rowHeight  = 34.0
)

// series are the two ways in, each in a colour of its own that a print without
// colours still tells apart by its place.
var series = []struct {
	name, colour string
	shift        float64
	value        func(Run) float64
}{
	{"through the Service", "#b5482f", -7, func(r Run) float64 { return r.Service }},
	{"multi-host", "#2f6db5", 7, func(r Run) float64 { return r.Multi }},
}

// plot is an SVG with a row for each fault and a dot for each run: how long nobody
// was acknowledged. A bar marks the median.
func plot(rows []entry, runs []Run) string {
	shown, most := plotted(rows, runs)
	step := tick(most)
	limit := math.Max(step, math.Ceil(most/step)*step)
	height := plotTop + rowHeight*float64(len(shown)) + plotBottom
	x := func(v float64) float64 { return plotLeft + v/limit*(plotWidth-plotLeft-plotRight) }
	var svg strings.Builder
	fmt.Fprintf(&svg,
		`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" font-family="sans-serif" font-size="13">`+"\n",
		plotWidth, height)
	fmt.Fprintf(&svg, `<rect width="%.0f" height="%.0f" fill="white"/>`+"\n", plotWidth, height)
	fmt.Fprintf(&svg,
		`<text x="%.0f" y="24" font-size="16">Longest time without an acknowledged write, each run</text>`+"\n",
		plotLeft)
	for i, s := range series {
		at := plotLeft + 190*float64(i)
		fmt.Fprintf(&svg, `<circle cx="%.1f" cy="44" r="5" fill="%s"/><text x="%.1f" y="49">%s</text>`+"\n", at+5,
			s.colour, at+16, s.name)
	}
	for v := 0.0; v <= limit+step/2; v += step {
		fmt.Fprintf(&svg, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="#ddd"/>`+"\n", x(v), plotTop,
			x(v), height-plotBottom)
		fmt.Fprintf(&svg, `<text x="%.1f" y="%.1f" text-anchor="middle">%g s</text>`+"\n", x(v),
			height-plotBottom+20, v)
	}
	for i, e := range shown {
		row(&svg, e, plotTop+rowHeight*(float64(i)+0.5), runs, x)
	}
	svg.WriteString("</svg>\n")
	return svg.String()
}

// plotted are the rows that have runs, and the longest time of all.
func plotted(rows []entry, runs []Run) (shown []entry, most float64) {
	for _, e := range rows {
		if slices.ContainsFunc(runs, e.has) {
			shown = append(shown, e)
		}
	}
	for _, r := range runs {
		most = max(most, r.Service, r.Multi)
	}
	return shown, most
}

// row is one of the tables'.
func row(svg *strings.Builder, e entry, y float64, runs []Run, x func(float64) float64) {
	fmt.Fprintf(svg, `<text x="%.1f" y="%.1f" text-anchor="end">%s</text>`+"\n", plotLeft-12, y+4,
		html.EscapeString(e.label()))
	own := slices.DeleteFunc(slices.Clone(runs), func(r Run) bool { return !e.has(r) })
	for _, s := range series {
		values := of(own, s.value)
		for _, v := range values {
			fmt.Fprintf(svg, `<circle cx="%.1f" cy="%.1f" r="4" fill="%s" fill-opacity="0.55"/>`+"\n",
				x(v), y+s.shift, s.colour)
		}
		middle := x(quantile(values, 0.5))
		fmt.Fprintf(svg, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="%s" stroke-width="2.5"/>`+"\n",
			middle, y+s.shift-7, middle, y+s.shift+7, s.colour)
	}
}

// tick is a round distance of which up to ten cover the range.
func tick(most float64) float64 {
	for size := 0.1; ; size *= 10 {
		for _, factor := range []float64{1, 2, 5} {
			if most <= size*factor*10 {
				return size * factor
			}
		}
	}
}
