package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"strings"
	"time"

	"toban.dev/test/plot"
)

// report is all that was measured in one run.
type report struct {
	Date       string     `json:"date"`
	Load       float64    `json:"load"` // of the machine, before
	Namespaces int        `json:"namespaces"`
	Archived   int        `json:"archived,omitempty"` // of a hundred SampleDBs
	Sizes      []measured `json:"sizes"`
}

// measured is what was measured of one size. Times are in seconds and memory in MB, unless the name says so.
type measured struct {
	SampleDBs int `json:"sampleDBs"`
	Instances int `json:"instances"`
	// Ready is from the first one made until all are ready.
	Ready float64 `json:"ready"`
	// ColdStart is from the operator's start until it has looked at all, ColdMemory and ColdCPU what that took.
	ColdStart  float64   `json:"coldStart"`
	ColdMemory float64   `json:"coldMemory"`
	ColdCPU    float64   `json:"coldCPU"`
	Edits      latencies `json:"edits"`
	Rest       resting   `json:"rest"`
	Storm      storm     `json:"storm"`
	Trouble    latencies `json:"trouble"`
}

// resting is what the operator costs at rest. Own is memory without the pages of its program's file.
type resting struct {
	Seconds  float64  `json:"seconds"`
	Memory   float64  `json:"memory"`
	Own      float64  `json:"own"`
	Cores    float64  `json:"cores"`
	Requests requests `json:"requests"`
}

// wholeRound is how long a rest must be to have the looks in it: a SampleDB is looked at every 5 to 10 minutes.
const wholeRound = 5 * time.Minute

// whole is a value that depends on these looks, NaN where the rest was too short to have them.
func (r resting) whole(value float64) float64 {
	if r.Seconds < wholeRound.Seconds() {
		return math.NaN()
	}
	return value
}

func (r resting) perMinute(n int) float64 { return float64(n) * 60 / max(r.Seconds, 1) }

// storm is how long it took until the last ConfigMap was written, the last server was restarted, and all were ready.
type storm struct {
	Written   float64   `json:"written"`
	Restarted float64   `json:"restarted"`
	Ready     float64   `json:"ready"`
	Memory    float64   `json:"memory"`
	Edits     latencies `json:"edits"`
}

// latencies are those of edits, in milliseconds: until the operator has written the ConfigMap, and until the agents
// have it.
type latencies struct {
	Edits     int     `json:"edits"`
	P50       float64 `json:"p50"`
	P99       float64 `json:"p99"`
	Most      float64 `json:"most"`
	AgentsP50 float64 `json:"agentsP50"`
	AgentsP99 float64 `json:"agentsP99"`
}

func latenciesOf(written, taken []float64) latencies {
	if len(written) == 0 {
		return latencies{}
	}
	return latencies{
		Edits: len(written), P50: plot.Quantile(written, 0.5), P99: plot.Quantile(written, 0.99),
		Most: plot.Quantile(written, 1), AgentsP50: plot.Quantile(taken, 0.5), AgentsP99: plot.Quantile(taken, 0.99),
	}
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func megabytes(bytes int64) float64 { return float64(bytes) / 1e6 }

// cost is one that grows with the number of SampleDBs.
type cost struct {
	name, unit string
	// aim is for 1,000 SampleDBs, 0 for none.
	aim    float64
	digits int
	of     func(measured) float64
}

// costs are those of the table and the plot.
func costs() []cost {
	return []cost{
		{"all created → all Ready", "s", 0, 1, func(m measured) float64 { return m.Ready }},
		{"cold start", "s", 60, 1, func(m measured) float64 { return m.ColdStart }},
		{"memory, most since the cold start", "MB", 250, 0, func(m measured) float64 { return m.Storm.Memory }},
		{"memory at rest", "MB", 250, 0, func(m measured) float64 { return m.Rest.Memory }},
		{"processor at rest", "core", 0.05, 3, func(m measured) float64 { return m.Rest.whole(m.Rest.Cores) }},
		{"writes at rest (its own lease)", "/min", 0, 1, func(m measured) float64 {
			return m.Rest.perMinute(m.Rest.Requests.Writes - m.Rest.Requests.Refused)
		}},
		{"tries to create what exists, at rest", "/min", 0, 1, func(m measured) float64 {
			return m.Rest.whole(m.Rest.perMinute(m.Rest.Requests.Refused))
		}},
		{"reads at rest", "/min", 0, 1, func(m measured) float64 {
			return m.Rest.whole(m.Rest.perMinute(m.Rest.Requests.Reads))
		}},
		{"edit → written, p50", "ms", 0, 0, func(m measured) float64 { return m.Edits.P50 }},
		{"edit → written, p99", "ms", 1000, 0, func(m measured) float64 { return m.Edits.P99 }},
		{"edit → all agents have it, p99", "ms", 1000, 0, func(m measured) float64 { return m.Edits.AgentsP99 }},
		{"storm: the last ConfigMap", "s", 0, 1, func(m measured) float64 { return m.Storm.Written }},
		{"storm: the last restart", "s", 0, 1, func(m measured) float64 { return m.Storm.Restarted }},
		{"edit in the storm, p50", "ms", 0, 0, func(m measured) float64 { return m.Storm.Edits.P50 }},
		{"edit in the storm, p99", "ms", 0, 0, func(m measured) float64 { return m.Storm.Edits.P99 }},
		{"edit while a tenth hangs, p50", "ms", 0, 0, func(m measured) float64 { return m.Trouble.P50 }},
		{"edit while a tenth hangs, p99", "ms", 1000, 0, func(m measured) float64 { return m.Trouble.P99 }},
	}
}

// table has a row for each cost, and a column for each size.
func table(r report) string {
	var text strings.Builder
	text.WriteString("| SampleDBs (instances) |")
	for _, m := range r.Sizes {
		fmt.Fprintf(&text, " %d (%d) |", m.SampleDBs, m.Instances)
	}
	text.WriteString(" aim at 1,000 |\n|" + strings.Repeat(" --- |", len(r.Sizes)+2) + "\n")
	for _, c := range costs() {
		fmt.Fprintf(&text, "| %s |", c.name)
		for _, m := range r.Sizes {
			if value := c.of(m); math.IsNaN(value) {
				text.WriteString(" – |")
			} else {
				fmt.Fprintf(&text, " %.*f %s |", c.digits, value, c.unit)
			}
		}
		if c.aim > 0 {
			fmt.Fprintf(&text, " %g %s |\n", c.aim, c.unit)
		} else {
			text.WriteString(" |\n")
		}
	}
	return text.String()
}

// drawing has a panel for each cost.
func drawing(r report) string {
	var panels []plot.Panel
	for _, c := range costs() {
		p := plot.Panel{Title: c.name, Unit: c.unit, Aim: c.aim}
		for _, m := range r.Sizes {
			if value := c.of(m); !math.IsNaN(value) {
				p.Points = append(p.Points, plot.Point{X: float64(m.SampleDBs), Y: value})
			}
		}
		panels = append(panels, p)
	}
	title := "One operator: each cost by the number of SampleDBs"
	return plot.Growth{Title: title, X: "SampleDBs", Panels: panels}.SVG()
}

func readReport(file string) (out report, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return out, err
	}
	return out, json.Unmarshal(text, &out)
}

// present prints the table, and writes the files that are wanted.
func (o options) present(r report) error {
	fmt.Print(table(r))
	if o.json != "" && !o.render {
		text, err := json.MarshalIndent(r, "", "  ")
		if err != nil {
			return err
		}
		if err := os.WriteFile(o.json, append(text, '\n'), 0o644); err != nil {
			return err
		}
	}
	if o.plot != "" {
		if err := os.WriteFile(o.plot, []byte(drawing(r)), 0o644); err != nil {
			return err
		}
	}
	if o.markdown == "" {
		return nil
	}
	page, err := os.ReadFile(o.markdown)
	if err != nil {
		return err
	}
	return os.WriteFile(o.markdown, []byte(between(string(page), table(r))), 0o644)
}

// between puts a text between the marks of a page. A page without them stays as it is.
func between(page, text string) string {
	const begin, end = "<!-- scale: begin -->", "<!-- scale: end -->"
	from, to := strings.Index(page, begin), strings.Index(page, end)
	if from < 0 || to < from {
		return page
	}
	return page[:from+len(begin)] + "\n\n" + text + "\n" + page[to:]
}
