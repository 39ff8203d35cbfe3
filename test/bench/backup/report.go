package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"toban.dev/test/plot"
)

// The two ways that data goes. Each has limits of the machine.
const (
	wayBackup  = "backup"
	wayRestore = "restore"
)

// timed is a measure with how long it took in each round.
type timed struct {
	measure
	seconds []float64
}

func (t timed) median() float64 { return plot.Quantile(t.seconds, 0.5) }

func (b *bench) note(m measure, took time.Duration) {
	for i := range b.times {
		if b.times[i].name == m.name {
			b.times[i].seconds = append(b.times[i].seconds, took.Seconds())
			return
		}
	}
	b.times = append(b.times, timed{m, []float64{took.Seconds()}})
}

// limit is how long the machine itself needs for a way at least, in seconds: the longest of its limits.
func limit(all []timed, way string) (most float64) {
	for _, t := range all {
		if t.limit && t.way == way {
			most = max(most, t.median())
		}
	}
	return most
}

// table says what was measured: medians, the spread, and the share of the machine's limit.
func table(w io.Writer, all []timed, bytes int64) {
	fmt.Fprint(w, "| | median | from – to | MB/s | of the limit |\n| --- | --- | --- | --- | --- |\n")
	for _, t := range all {
		share := ""
		if !t.limit && t.way != "" {
			share = fmt.Sprintf("%.0f %%", 100*limit(all, t.way)/t.median())
		}
		fmt.Fprintf(w, "| %s | %.1f s | %.1f – %.1f s | %.0f | %s |\n", t.name, t.median(),
			plot.Quantile(t.seconds, 0), plot.Quantile(t.seconds, 1), float64(bytes)/1e6/t.median(), share)
	}
}

// drawing has the share of the machine's limit, in percent, that each tool has used in each round, both ways.
func drawing(all []timed) string {
	p := plot.Plot{
		Title: "Share of what the machine itself can do, each round", Unit: "%",
		Series: []plot.Series{
			{Name: wayBackup, Colour: "#b5482f", Shift: -7}, {Name: wayRestore, Colour: "#2f6db5", Shift: 7},
		},
	}
	rows := map[string]int{}
	for _, t := range all {
		if t.limit || t.way == "" {
			continue
		}
		if _, ok := rows[t.tool]; !ok {
			rows[t.tool] = len(p.Rows)
			p.Rows = append(p.Rows, plot.Row{Label: t.tool, Values: make([][]float64, len(p.Series))})
		}
		for i, s := range p.Series {
			if s.Name != t.way {
				continue
			}
			values := &p.Rows[rows[t.tool]].Values[i]
			for _, seconds := range t.seconds {
				*values = append(*values, 100*limit(all, t.way)/seconds)
			}
		}
	}
	return p.SVG()
}

// report prints the table, and writes the plot if that is wanted.
func (b *bench) report() error {
	var text strings.Builder
	fmt.Fprintf(&text, "\n%d MB of data, %d rounds\n\n", b.bytes/1e6, b.rounds)
	table(&text, b.times, b.bytes)
	fmt.Print(text.String())
	if b.plot == "" {
		return nil
	}
	return os.WriteFile(b.plot, []byte(drawing(b.times)), 0o644)
}
