// Package plot draws what was measured, as SVG: a row for each thing, a dot for each run, a bar for the median.
package plot

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

// Series is one of the things that are measured in each row.
type Series struct {
	// Name and Colour tell it apart; Shift, in pixels, does where a print has no colours.
	Name, Colour string
	Shift        float64
}

// Row has the values of each series, in their order.
type Row struct {
	Label  string
	Values [][]float64
}

// Plot is what is drawn.
type Plot struct {
	Title string
	// Unit follows each number of the scale.
	Unit   string
	Series []Series
	Rows   []Row
}

// SVG draws it.
func (p Plot) SVG() string {
	most := p.most()
	step := Tick(most)
	limit := math.Max(step, math.Ceil(most/step)*step)
	height := plotTop + rowHeight*float64(len(p.Rows)) + plotBottom
	x := func(v float64) float64 { return plotLeft + v/limit*(plotWidth-plotLeft-plotRight) }
	var svg strings.Builder
	fmt.Fprintf(&svg,
		`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" font-family="sans-serif" font-size="13">`+"\n",
		plotWidth, height)
	fmt.Fprintf(&svg, `<rect width="%.0f" height="%.0f" fill="white"/>`+"\n", plotWidth, height)
	fmt.Fprintf(&svg, `<text x="%.0f" y="24" font-size="16">%s</text>`+"\n", plotLeft, html.EscapeString(p.Title))
	for i, s := range p.Series {
		at := plotLeft + 190*float64(i)
		fmt.Fprintf(&svg, `<circle cx="%.1f" cy="44" r="5" fill="%s"/><text x="%.1f" y="49">%s</text>`+"\n", at+5,
			s.Colour, at+16, html.EscapeString(s.Name))
	}
	for v := 0.0; v <= limit+step/2; v += step {
		fmt.Fprintf(&svg, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="#ddd"/>`+"\n", x(v), plotTop,
			x(v), height-plotBottom)
		fmt.Fprintf(&svg, `<text x="%.1f" y="%.1f" text-anchor="middle">%g %s</text>`+"\n", x(v),
			height-plotBottom+20, v, html.EscapeString(p.Unit))
	}
	for i, row := range p.Rows {
		p.row(&svg, row, plotTop+rowHeight*(float64(i)+0.5), x)
	}
	svg.WriteString("</svg>\n")
	return svg.String()
}

// most is the largest value of all.
func (p Plot) most() (most float64) {
	for _, row := range p.Rows {
		for _, values := range row.Values {
			for _, v := range values {
				most = max(most, v)
			}
		}
	}
	return most
}

func (p Plot) row(svg *strings.Builder, row Row, y float64, x func(float64) float64) {
	fmt.Fprintf(svg, `<text x="%.1f" y="%.1f" text-anchor="end">%s</text>`+"\n", plotLeft-12, y+4,
		html.EscapeString(row.Label))
	for i, s := range p.Series {
		if len(row.Values[i]) == 0 {
			continue
		}
		for _, v := range row.Values[i] {
			fmt.Fprintf(svg, `<circle cx="%.1f" cy="%.1f" r="4" fill="%s" fill-opacity="0.55"/>`+"\n",
				x(v), y+s.Shift, s.Colour)
		}
		middle := x(Quantile(row.Values[i], 0.5))
		fmt.Fprintf(svg, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="%s" stroke-width="2.5"/>`+"\n",
			middle, y+s.Shift-7, middle, y+s.Shift+7, s.Colour)
	}
}

// Quantile is the value below which a share of all lie, by the nearest rank; NaN of none.
func Quantile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	rank := int(math.Ceil(q*float64(len(sorted)))) - 1
	return sorted[min(max(rank, 0), len(sorted)-1)]
}

// Tick is a round distance of which up to ten cover the range.
func Tick(most float64) float64 {
	for size := 0.1; ; size *= 10 {
		for _, factor := range []float64{1, 2, 5} {
			if most <= size*factor*10 {
				return size * factor
			}
		}
	}
}
