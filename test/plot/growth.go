package plot

import (
	"fmt"
	"html"
	"math"
	"strings"
)

// The measures of a panel, in pixels, and how many are in a row.
const (
	panelWidth  = 320.0
	panelHeight = 210.0
	panelLeft   = 62.0
	panelTop    = 40.0
	panelInner  = 120.0 // the height of the drawing in it
	panelColumn = 3
	growthTop   = 40.0
)

// Point is one value.
type Point struct{ X, Y float64 }

// Panel draws how one thing grows. Its scale begins at 0.
type Panel struct {
	Title, Unit string
	// Aim is drawn as a line, 0 for none.
	Aim    float64
	Points []Point
}

// Growth has a panel for each thing, with the same X, of which every factor of ten is as wide as any other.
type Growth struct {
	Title, X string
	Panels   []Panel
}

// SVG draws it.
func (g Growth) SVG() string {
	rows := math.Ceil(float64(len(g.Panels)) / panelColumn)
	width, height := panelWidth*panelColumn, growthTop+panelHeight*rows
	var svg strings.Builder
	fmt.Fprintf(&svg,
		`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" font-family="sans-serif" font-size="11">`+"\n",
		width, height)
	fmt.Fprintf(&svg, `<rect width="%.0f" height="%.0f" fill="white"/>`+"\n", width, height)
	fmt.Fprintf(&svg, `<text x="%.0f" y="24" font-size="16">%s</text>`+"\n", panelLeft, html.EscapeString(g.Title))
	for i, p := range g.Panels {
		x, y := panelWidth*float64(i%panelColumn), growthTop+panelHeight*float64(i/panelColumn)
		fmt.Fprintf(&svg, `<g transform="translate(%.0f %.0f)">`+"\n", x, y)
		p.draw(&svg, g.X)
		svg.WriteString("</g>\n")
	}
	svg.WriteString("</svg>\n")
	return svg.String()
}

// scales are the functions from values to pixels, and the round distance of the lines.
func (p Panel) scales() (x, y func(float64) float64, limit, step float64) {
	least, most, top := 1.0, 1.0, p.Aim
	if len(p.Points) > 0 {
		least = p.Points[0].X
	}
	for _, at := range p.Points {
		least, most, top = min(least, at.X), max(most, at.X), max(top, at.Y)
	}
	step = distance(top)
	limit = math.Max(step, math.Ceil(top/step-1e-9)*step)
	wide := math.Max(math.Log10(most/least), 1e-9)
	x = func(v float64) float64 {
		return panelLeft + math.Log10(v/least)/wide*(panelWidth-panelLeft-28)
	}
	y = func(v float64) float64 { return panelTop + panelInner*(1-v/limit) }
	return x, y, limit, step
}

// distance is a round one of which up to four cover the range.
func distance(most float64) float64 {
	for size := 1e-4; ; size *= 10 {
		for _, factor := range []float64{1, 2, 2.5, 5} {
			if most <= size*factor*4 {
				return size * factor
			}
		}
	}
}

func (p Panel) draw(svg *strings.Builder, label string) {
	x, y, limit, step := p.scales()
	right := panelWidth - 20
	fmt.Fprintf(svg, `<text x="%.0f" y="24" font-size="12">%s, %s</text>`+"\n", panelLeft, html.EscapeString(p.Title),
		html.EscapeString(p.Unit))
	for v := 0.0; v <= limit+step/2; v += step {
		fmt.Fprintf(svg, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="#ddd"/>`+"\n",
			panelLeft, y(v), right, y(v))
		fmt.Fprintf(svg, `<text x="%.1f" y="%.1f" text-anchor="end">%.4g</text>`+"\n", panelLeft-6, y(v)+4, v)
	}
	if p.Aim > 0 {
		fmt.Fprintf(svg, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="#b5482f" stroke-dasharray="5 4"/>`+"\n",
			panelLeft, y(p.Aim), right, y(p.Aim))
		fmt.Fprintf(svg, `<text x="%.1f" y="%.1f" fill="#b5482f">aim</text>`+"\n", panelLeft+4, y(p.Aim)-3)
	}
	var line []string
	for _, at := range p.Points {
		line = append(line, fmt.Sprintf("%.1f,%.1f", x(at.X), y(at.Y)))
		fmt.Fprintf(svg, `<circle cx="%.1f" cy="%.1f" r="3.5" fill="#2f6db5"/>`+"\n", x(at.X), y(at.Y))
		fmt.Fprintf(svg, `<text x="%.1f" y="%.1f" text-anchor="middle">%g</text>`+"\n", x(at.X), y(0)+15, at.X)
	}
	fmt.Fprintf(svg, `<polyline points="%s" fill="none" stroke="#2f6db5" stroke-width="1.5"/>`+"\n",
		strings.Join(line, " "))
	fmt.Fprintf(svg, `<text x="%.1f" y="%.1f" text-anchor="end">%s</text>`+"\n", right, y(0)+30,
		html.EscapeString(label))
}
